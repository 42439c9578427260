//! What a module keeps over a reload.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether an operator has disabled a module, and how often it failed. A module of the same name in
/// the next configuration has the same one: a module that was disabled because it breaks requests
/// must not come back with a reload that is about something else.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    is_disabled: AtomicBool,
    failures: AtomicU64,
}

impl Switch {
    /// Whether an operator has disabled it.
    pub(crate) fn is_disabled(&self) -> bool {
        self.is_disabled.load(Ordering::Relaxed)
    }

    /// Disables or enables it for requests that begin from now on.
    pub(super) fn set_enabled(&self, enabled: bool) {
        self.is_disabled.store(!enabled, Ordering::Relaxed);
    }

    /// Calls that failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// A call failed.
    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}
