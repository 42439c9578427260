//! Hooks on the phases of requests: where an extension may take part.
//!
//! Nothing sets a hook yet but tests. Without one a request pays for a test of an empty set; with
//! one it leaves the fast path (`client::fast`), since a hook may wait. A hook is called for the
//! requests of clients, not for validations in the background or fetches of a missing range.

use std::pin::Pin;
use std::sync::Arc;
use weir_policy::{Phase, Phases};

/// What is called when a request reaches a phase.
pub trait Hook: Send + Sync {
    /// A request has reached `phase`. It continues when the future is ready.
    fn reached(&self, phase: Phase) -> HookFuture<'_>;
}

/// What a request waits for at a phase.
pub type HookFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The hook of a proxy, and the phases at which it is called. None by default.
#[derive(Clone, Default)]
pub struct Hooks {
    pub(crate) phases: Phases,
    pub(crate) hook: Option<Arc<dyn Hook>>,
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
