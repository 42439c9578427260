//! What is known of a module under every configuration that has it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether an operator has disabled a module, and how often it failed. Modules of the same name in
/// one configuration and the next share it: a module that was disabled because it breaks requests
/// must not come back with a reload that is about something else.
#[derive(Debug, Default)]
pub(crate) struct ModuleStatus {
    is_disabled: AtomicBool,
    failures: AtomicU64,
}

impl ModuleStatus {
    /// Whether an operator has disabled it.
    pub(crate) fn is_disabled(&self) -> bool {
        self.is_disabled.load(Ordering::Relaxed)
    }

    /// Disables or enables it for new requests.
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
