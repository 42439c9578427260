//! Responses that have come faster than the disk has taken them, and are not stored yet.
//!
//! Their content is held in memory, in the account of the store, which bounds what arrives; their
//! number, too.

use crate::fetch::in_flight::InFlightResponse;
use std::cell::RefCell;
use std::sync::Arc;

/// Those of a worker.
#[derive(Debug, Default)]
pub(crate) struct Unsettled(RefCell<Vec<Arc<InFlightResponse>>>);

impl Unsettled {
    /// `response` waits for the disk.
    pub(crate) fn extend(&self, response: Option<Arc<InFlightResponse>>) {
        let mut all = self.0.borrow_mut();
        let is_new = |new: &Arc<_>| !all.iter().any(|known| Arc::ptr_eq(known, new));
        let new = response.filter(is_new);
        all.extend(new);
    }

    /// All of them, to be settled: those that wait on come back.
    pub(crate) fn take(&self) -> Vec<Arc<InFlightResponse>> {
        self.0.take()
    }
}
