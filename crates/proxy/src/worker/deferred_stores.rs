//! Responses that have come faster than the disk has taken them, and are not stored yet.
//!
//! Their content is held in memory, in the account of the store, which bounds what arrives; their
//! number, too.

use crate::fetch::in_flight::InFlightResponse;
use std::cell::RefCell;
use std::sync::Arc;

/// Those of a worker.
#[derive(Debug, Default)]
pub(crate) struct DeferredStores(RefCell<Vec<Arc<InFlightResponse>>>);

impl DeferredStores {
    /// `response` waits for the disk.
    pub(crate) fn push(&self, response: Arc<InFlightResponse>) {
        let mut all = self.0.borrow_mut();
        if !all.iter().any(|known| Arc::ptr_eq(known, &response)) {
            all.push(response);
        }
    }

    /// All of them, to be stored: those that wait on come back.
    pub(crate) fn take(&self) -> Vec<Arc<InFlightResponse>> {
        self.0.take()
    }
}
