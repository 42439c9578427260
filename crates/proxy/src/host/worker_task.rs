//! Work that goes on beside the requests of a worker, and that none of them waits for: a task that
//! ends with the process.

use crate::worker::core::Worker;
use std::rc::Rc;
use weir_net::workers::Stage;

/// Runs `work` on this worker, from now on until the shutdown has come to `end`.
pub(super) fn spawn(
    worker: &Rc<Worker>,
    end: Stage,
    work: impl AsyncFnOnce(&Rc<Worker>) + 'static,
) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let mut stage = worker.network().stage();
        tokio::select! {
            _ = stage.wait_for(|stage| *stage >= end) => {}
            () = work(&worker) => {}
        }
    });
}

/// The same on the first worker alone. To be called once on each.
pub(super) fn spawn_on_first(
    worker: &Rc<Worker>,
    end: Stage,
    work: impl AsyncFnOnce(&Rc<Worker>) + 'static,
) {
    if worker.net().index() == 0 {
        spawn(worker, end, work);
    }
}
