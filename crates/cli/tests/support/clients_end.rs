//! The end of clients that request without end.

use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the clients of a scope that all is over, when dropped: so a test that fails ends, instead
/// of waiting for them forever.
pub(crate) struct ClientsEnd<'a>(&'a AtomicBool);

impl<'a> ClientsEnd<'a> {
    /// Sets `done` when dropped.
    pub(crate) const fn new(done: &'a AtomicBool) -> Self {
        Self(done)
    }
}

impl Drop for ClientsEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
