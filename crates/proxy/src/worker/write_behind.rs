//! Responses that are stored and still read, and whose last content is being written to disk.
//!
//! Without this, that content would stay in memory, and in the account of the store, until the
//! slowest reader has read it. The store does the same for its own responses.

use crate::fetch::in_flight::InFlightResponse;
use std::cell::RefCell;
use std::sync::Weak;

/// Those that a worker has stored. What waits to be written is bounded by the queue of the disk,
/// and so is their number.
#[derive(Debug, Default)]
pub(crate) struct WriteBehind(RefCell<Vec<Weak<InFlightResponse>>>);

impl WriteBehind {
    /// `response` is read, and is stored.
    pub(crate) fn push(&self, response: Weak<InFlightResponse>) {
        self.0.borrow_mut().push(response);
    }

    /// Gives back the memory of what was written. Called each second.
    pub(crate) fn give_back(&self) {
        let all = self.0.take();
        let is_pending = |response: &Weak<InFlightResponse>| {
            let response = response.upgrade();
            response.is_some_and(|response| response.give_back_written())
        };
        let pending = all.into_iter().filter(is_pending);
        self.0.borrow_mut().extend(pending);
    }
}
