//! A hook that notes the phases of requests, and waits at each.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use weir_policy::{Phase, Phases};
use weir_proxy::{Hook, HookFuture, Hooks};

/// Notes each phase it is called at, and lets the worker's other tasks go first.
#[derive(Default)]
pub(crate) struct NotedPhases(Mutex<Vec<Phase>>);

impl NotedPhases {
    /// It, at `phases`.
    pub(crate) fn at(phases: Phases) -> (Arc<Self>, Hooks) {
        let noted = Arc::<Self>::default();
        (Arc::clone(&noted), Hooks::new(phases, noted))
    }

    /// It, at every phase.
    pub(crate) fn at_all() -> (Arc<Self>, Hooks) {
        Self::at(Phase::ALL.into_iter().fold(Phases::NONE, Phases::with))
    }

    /// The phases so far.
    pub(crate) fn so_far(&self) -> Vec<Phase> {
        self.0.lock().expect("no panic").clone()
    }

    /// The phases so far, from now on none.
    pub(crate) fn take(&self) -> Vec<Phase> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl Hook for NotedPhases {
    fn reached(&self, phase: Phase) -> HookFuture<'_> {
        self.0.lock().expect("no panic").push(phase);
        let mut has_waited = false;
        Box::pin(poll_fn(move |cx| {
            if has_waited {
                return Poll::Ready(());
            }
            has_waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}
