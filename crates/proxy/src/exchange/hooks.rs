//! Hooks on the phases of requests: where an extension may take part.
//!
//! Nothing sets a hook yet but tests. Without one a request pays for a test of an empty set; with
//! one it leaves the fast path (`client::fast`), since a hook may wait. A hook is called for the
//! requests of clients, not for validations in the background or fetches of a missing range.

use crate::exchange::state::RequestState;
use std::pin::Pin;
use std::sync::Arc;
use weir_policy::{Phase, Phases};

/// What is called when a request reaches a phase.
pub trait Hook: Send + Sync {
    /// A request has reached `phase`. It goes on when the future is ready.
    fn reached(&self, phase: Phase) -> HookFuture<'_>;
}

/// What a request waits for at a phase.
pub type HookFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The hook of a proxy, and the phases at which it is called. None by default.
#[derive(Clone, Default)]
pub struct Hooks {
    phases: Phases,
    hook: Option<Arc<dyn Hook>>,
}

impl Hooks {
    /// `hook` at `phases`.
    #[must_use]
    pub fn new(phases: Phases, hook: Arc<dyn Hook>) -> Self {
        let hook = Some(hook);
        Self { phases, hook }
    }

    /// The hooked phases.
    pub(crate) fn phases(&self) -> Phases {
        self.phases
    }
}

/// Calls the hook for the phases that the request has reached since the last call, in their order.
/// A phase is passed once a later one was reached: the hook is not called for it any more.
pub(crate) async fn run(exchange: &mut RequestState) {
    if exchange.settings.hooks.phases.is_empty() || exchange.background {
        return;
    }
    let reached = exchange.log.reached();
    let Hooks { phases, hook } = exchange.settings.hooks.clone();
    let due = phases.intersection(reached).behind(exchange.passed);
    exchange.passed = reached;
    let Some(hook) = hook else { return };
    for phase in due.iter() {
        hook.reached(phase).await;
    }
}
