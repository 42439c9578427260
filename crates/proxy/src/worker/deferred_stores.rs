//! Responses that have come faster than the disk has taken them, and are not stored yet.
//!
//! Their content is held in memory, in the account of the store, which bounds what arrives; their
//! number, too.

use crate::fetch::in_flight::InFlightResponse;
use crate::worker::core::Worker;
use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

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

    /// What the disk is to wake when it has written more.
    pub(crate) fn waker(&self) -> Waker {
        let task = self.task.borrow();
        task.clone().unwrap_or_else(|| Waker::noop().clone())
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

/// Stores those of `worker` as the disk takes them, until what is under way is cut.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let deferred = &worker.deferred_stores;
        let stored = poll_fn(|cx| {
            *deferred.task.borrow_mut() = Some(cx.waker().clone());
            // those that wait on come back
            for response in deferred.all.take() {
                response.store_deferred(&worker);
            }
            Poll::<()>::Pending
        });
        tokio::select! {
            () = worker.shared.cut() => {}
            () = stored => pending().await,
        }
    });
}
