//! Whether the device takes anything.

use crate::lock::lock;
use std::sync::{Condvar, Mutex, PoisonError};

/// A device that can be stopped.
#[derive(Debug, Default)]
pub(super) struct Device {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Device {
    pub(super) fn set_stopped(&self, is_stopped: bool) {
        *lock(&self.is_stopped) = is_stopped;
        self.changed.notify_all();
    }

    /// Returns while it works.
    pub(super) fn wait(&self) {
        let is_stopped = lock(&self.is_stopped);
        let waited = self.changed.wait_while(is_stopped, |stopped| *stopped);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
