//! Responses that have come faster than the disk has taken them, and are not stored yet.
//!
//! Their content is held in memory, in the account of the store, which bounds what arrives; their
//! number, too.

use crate::fetch::in_flight::InFlightResponse;
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// Those of a worker.
#[derive(Debug, Default)]
pub(crate) struct DeferredStores {
    all: RefCell<Vec<Arc<InFlightResponse>>>,
    /// That of the task that stores them.
    task: RefCell<Option<Waker>>,
}

impl DeferredStores {
    /// `response` waits for the disk.
    pub(crate) fn push(&self, response: Arc<InFlightResponse>) {
        let mut all = self.all.borrow_mut();
        if !all.iter().any(|known| Arc::ptr_eq(known, &response)) {
            all.push(response);
        }
    }

    /// `response` waits no longer. It would hold its content until the next look.
    pub(crate) fn remove(&self, response: &Weak<InFlightResponse>) {
        let known = response.as_ptr();
        let mut all = self.all.borrow_mut();
        let at = all
            .iter()
            .position(|it| std::ptr::eq(Arc::as_ptr(it), known));
        let gone = at.map(|at| all.swap_remove(at));
        drop(all);
        drop(gone);
    }

    /// What the disk is to wake when it has written more.
    pub(crate) fn waker(&self) -> Waker {
        let task = self.task.borrow();
        task.clone().unwrap_or_else(|| Waker::noop().clone())
    }

    /// All of them, to be stored by the task of `waker`: those that wait on come back.
    pub(crate) fn take(&self, waker: &Waker) -> Vec<Arc<InFlightResponse>> {
        *self.task.borrow_mut() = Some(waker.clone());
        self.all.take()
    }

    /// Looks after all of them though nothing of them was written: their time may be over, and what
    /// the disk had to write of others leaves room.
    pub(crate) fn tick(&self) {
        if !self.all.borrow().is_empty()
            && let Some(task) = &*self.task.borrow()
        {
            task.wake_by_ref();
        }
    }
}
