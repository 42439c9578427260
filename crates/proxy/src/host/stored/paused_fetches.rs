//! Completes parts whose fetches were paused, once their links have room again.
//!
//! On the first worker. Few are completed at a time, the one that was paused first before others;
//! each is a background fetch, and is paused again if its link has nothing for it.

use super::calls::{Caller, StoredCalls};
use super::completion::Completion;
use crate::host::worker_task;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Weak;
use std::time::Duration;
use weir_net::workers::Stage;

/// How often it looks whether there is room.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Parts that are completed at a time.
const COMPLETED_AT_ONCE_MAX: usize = 4;

/// Completes parts from now on until a shutdown begins; on the first worker. To be called once on
/// each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let calls = StoredCalls::new(Rc::downgrade(worker), Caller::Operator);
    let shared = &worker.shared;
    let counters = shared.common_counters();
    let mut under_way = Vec::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if shared.background.is_nothing() {
            continue;
        }
        for (key, target) in shared.paused.due(counters, worker.now().tick) {
            under_way.retain(|in_flight| Weak::strong_count(in_flight) > 0);
            if under_way.len() >= COMPLETED_AT_ONCE_MAX {
                break;
            }
            match calls.complete(target.into(), key).await {
                Ok(Completion::NoRoom) => {}
                Ok(Completion::Begun(in_flight)) => {
                    under_way.push(in_flight);
                    shared.paused.forget(counters, key);
                }
                Ok(Completion::Gone) => shared.paused.forget(counters, key),
                Err(_) => shared.paused.rest(worker.now().tick, key),
            }
        }
    }
}
