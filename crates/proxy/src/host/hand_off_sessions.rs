//! Begins sessions with the nodes that connections are handed over to, on the first worker.

use super::worker_task;
use crate::client::hand_off;
use crate::worker::core::Worker;
use std::rc::Rc;
use weir_net::workers::Stage;

/// To be called once on each worker.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, hand_off::begin_all);
}
