//! Responses that are stored and read, and whose last content is still being written to disk.
//!
//! Their readers would have it in memory until they have read it, however slowly, and it would be
//! in the account of the store for as long.

use crate::fetch::in_flight::InFlightResponse;
use std::cell::RefCell;
use std::sync::Weak;

/// Those that a worker has stored. There is one for a response in flight at most.
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
