//! Stores what has come faster than the disk has taken it, as that writes.

use crate::host::worker_task;
use crate::worker::core::Worker;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_net::workers::Stage;

/// Does so for the responses of `worker`, until what is under way is cut.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn(worker, Stage::Cut, async |worker| {
        poll_fn(|cx| {
            for response in worker.deferred_stores.take(cx.waker()) {
                response.store_deferred(worker);
            }
            Poll::<()>::Pending
        })
        .await;
    });
}
