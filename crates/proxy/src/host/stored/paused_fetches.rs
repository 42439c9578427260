//! Completes parts whose fetches were paused, once their links have room again.
//!
//! On the first worker. Few are completed at a time, one for each host, the one that was paused
//! first before others; each is a background fetch, and is paused again if its link has nothing for
//! it.

use super::calls::{Caller, StoredCalls};
use super::completion::Completion;
use crate::fetch::in_flight::InFlightResponse;
use crate::host::worker_task;
use crate::worker::core::Worker;
use crate::worker::paused_fetches::PartTarget;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Weak;
use std::time::Duration;
use tokio::task::JoinSet;
use weir_net::workers::Stage;
use weir_policy::Digest;

/// How often it looks whether there is room.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Parts that are completed at a time.
const COMPLETED_AT_ONCE_MAX: usize = 4;

/// Parts of one host that are completed at a time: one that does not answer leaves the others to
/// the rest.
const COMPLETED_OF_HOST_MAX: usize = 1;

/// A part that is being completed.
struct Place {
    host: Box<str>,
    /// Shared with the task that asks for the rest.
    begun: Rc<RefCell<Weak<InFlightResponse>>>,
}

impl Place {
    fn is_taken(&self) -> bool {
        Rc::strong_count(&self.begun) > 1 || self.begun.borrow().strong_count() > 0
    }
}

/// Completes parts from now on until a shutdown begins; on the first worker. To be called once on
/// each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let shared = &worker.shared;
    let mut places: Vec<Place> = Vec::new();
    let mut asking = JoinSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        while asking.try_join_next().is_some() {}
        places.retain(Place::is_taken);
        if shared.background.is_nothing() {
            continue;
        }
        let now = worker.now().tick;
        for (key, target) in shared.paused.due(shared.common_counters(), now) {
            if places.len() >= COMPLETED_AT_ONCE_MAX {
                break;
            }
            let host = host_of(&target.url);
            let of_host = places.iter().filter(|place| *place.host == *host);
            if of_host.count() >= COMPLETED_OF_HOST_MAX {
                continue;
            }
            let begun = Rc::default();
            places.push(Place {
                host: host.into(),
                begun: Rc::clone(&begun),
            });
            asking.spawn_local(complete(Rc::clone(worker), (key, target), begun));
        }
    }
}

/// Has the rest of a part requested, and notes what came of it.
async fn complete(
    worker: Rc<Worker>,
    (key, target): (Digest, PartTarget),
    begun: Rc<RefCell<Weak<InFlightResponse>>>,
) {
    let calls = StoredCalls::new(Rc::downgrade(&worker), Caller::Operator);
    let result = calls.complete(target.into(), key).await;
    let (paused, counters) = (&worker.shared.paused, worker.shared.common_counters());
    let now = worker.now().tick;
    match result {
        Ok(Completion::NoRoom) => paused.rest(now, key),
        Ok(Completion::Begun(in_flight)) => {
            *begun.borrow_mut() = in_flight;
            paused.forget(counters, key);
        }
        Ok(Completion::Gone) => paused.forget(counters, key),
        Err(_) => paused.fail(counters, now, key),
    }
}

/// The host and port of a URL.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}
