//! Completes parts whose fetches were paused, once their links have room again.
//!
//! On the first worker. Few are completed at a time, one from each next hop, the one that was
//! paused first before others; each is a background fetch, and is paused again if its link has
//! nothing for it. One whose next hop sends too little ends, and rests; one that takes long is
//! paused if others wait.

use super::calls::{Caller, StoredCalls};
use super::completion::Completion;
use crate::fetch::in_flight::InFlightResponse;
use crate::host::worker_task;
use crate::worker::core::Worker;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Weak;
use std::time::Duration;
use tokio::task::JoinSet;
use weir_extend::StoredTarget;
use weir_net::next_hops::HopKey;
use weir_net::workers::Stage;
use weir_policy::fetch::{PLACES_MAX, RestRefusal, gives_way, has_place};
use weir_policy::{Digest, Tick};
use weir_semantics::DeltaSeconds;

/// How often it looks whether there is room.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A part that is being completed.
struct Place {
    /// The next hop, as far as it is known before one is chosen.
    hop: Option<HopKey>,
    since: Tick,
    /// Shared with the task that asks for the rest.
    begun: Rc<RefCell<Weak<InFlightResponse>>>,
}

impl Place {
    /// What clients read is a fetch as any other, and leaves its place.
    fn is_taken(&self) -> bool {
        let in_flight = self.begun.borrow().upgrade();
        Rc::strong_count(&self.begun) > 1 || in_flight.is_some_and(|it| !it.has_readers())
    }
}

/// Completes parts from now on until a shutdown begins; on the first worker. To be called once on
/// each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let shared = &worker.shared;
    let calls = StoredCalls::new(Rc::downgrade(worker), Caller::Operator);
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
        let due = shared.paused.due(shared.common_counters(), now);
        if places.len() >= PLACES_MAX && !due.is_empty() {
            make_room(&places, now);
            continue;
        }
        for (key, target) in due {
            let target = StoredTarget::from(target);
            let hop = calls.first_hop(&target);
            if !has_place(places.iter().map(|place| &place.hop), &hop) {
                continue;
            }
            shared.paused.begin(key);
            let begun = Rc::default();
            places.push(Place {
                hop,
                since: now,
                begun: Rc::clone(&begun),
            });
            asking.spawn_local(complete(Rc::clone(worker), (key, target), begun));
        }
    }
}

/// Has the part that was begun first pause, if it has had its turn.
fn make_room(places: &[Place], now: Tick) {
    let since = places.iter().map(|place| place.since);
    let place = gives_way(since, now).map(|at| &places[at]);
    let in_flight = place.and_then(|place| place.begun.borrow().upgrade());
    if let Some(in_flight) = in_flight {
        in_flight.give_way();
    }
}

/// Has the rest of a part requested, and notes what came of it.
async fn complete(
    worker: Rc<Worker>,
    (key, target): (Digest, StoredTarget),
    begun: Rc<RefCell<Weak<InFlightResponse>>>,
) {
    let calls = StoredCalls::new(Rc::downgrade(&worker), Caller::Operator);
    let result = calls.complete(target, key).await;
    let (paused, counters) = (&worker.shared.paused, worker.shared.common_counters());
    let now = worker.now().tick;
    match result {
        Ok(Completion::NoRoom) => paused.rest(now, key),
        // its fetch says what becomes of it
        Ok(Completion::Begun(in_flight)) => *begun.borrow_mut() = in_flight,
        Ok(Completion::Gone | Completion::Refused(RestRefusal::Obsolete)) => {
            paused.forget(counters, key);
        }
        Ok(Completion::Refused(RestRefusal::Later(wait))) => paused.fail(counters, now, key, wait),
        Err(_) => paused.fail(counters, now, key, DeltaSeconds::ZERO),
    }
}
