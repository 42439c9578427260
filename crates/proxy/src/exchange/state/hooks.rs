//! Calls the hooks of the phases that a request reaches.

use super::RequestState;
use crate::settings::hooks::Hooks;
use std::pin::Pin;

impl RequestState {
    /// Whether a phase is hooked. A hook is not called for requests without a client.
    pub(crate) fn is_hooked(&self) -> bool {
        !self.settings.hooks.phases.is_empty() && !self.background
    }

    /// Calls the hook for the phases that it has reached since the last call, in their order. A
    /// phase is passed once a later one was reached: the hook is not called for it any more. To be
    /// called only where [`Self::is_hooked`]: without a hook not even a future is made. It is
    /// boxed, as all that await it would be as large.
    pub(crate) fn run_hooks(&mut self) -> Pin<Box<dyn Future<Output = ()>>> {
        let reached = self.log.reached();
        let Hooks { phases, hook } = self.settings.hooks.clone();
        let due = phases.intersection(reached).behind(self.passed);
        self.passed = reached;
        Box::pin(async move {
            let Some(hook) = hook else { return };
            for phase in due.iter() {
                hook.reached(phase).await;
            }
        })
    }
}
