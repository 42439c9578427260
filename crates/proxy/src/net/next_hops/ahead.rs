//! Connections opened before anybody asks for them: so many are kept ready to a route's next hops
//! that were asked lately.
//!
//! Off unless the operator wants it. Looked at when a request takes a connection, and once a
//! second.

use crate::net::next_hops::destination::Destination;
use crate::net::next_hops::pool;
use crate::net::next_hops::to_come::{self, ToCome};
use crate::settings::Settings;
use crate::worker::core::Worker;
use weir_policy::connections::{AheadRules, HopId, Place, judge_ahead};

/// After a failure none is opened ahead for so long: requests find out by themselves when it is
/// over.
const REST_MS: u64 = 5000;

/// A request has taken a connection to `destination`: there may be too few left.
pub(crate) fn top_up(worker: &Worker, destination: &Destination) {
    // only what the operator has named is worth a connection that nobody asked for
    if destination.route_hop.is_some() {
        pool::note_used(worker, &destination.hop);
        while open_one(worker, &worker.settings(), destination) {}
    }
}

/// Those that were ready may have been closed meanwhile.
pub(crate) fn sweep(worker: &Worker) {
    let settings = worker.settings();
    if settings.config.limits.connections_ahead == 0 {
        return;
    }
    for (number, hop) in (0..).zip(&settings.hops) {
        let destination = Destination {
            hop: hop.clone(),
            guarded: false,
            route_hop: Some(HopId(number)),
            // several routes may lead there; a transfer sets its own
            read_ahead: settings.lead_of(None),
        };
        while open_one(worker, &settings, &destination) {}
    }
}

/// Opens one more if that is wanted and allowed.
fn open_one(worker: &Worker, settings: &Settings, destination: &Destination) -> bool {
    let (shared, hop) = (&worker.shared, &destination.hop);
    let limits = &settings.config.limits;
    let rules = AheadRules {
        ready: limits.connections_ahead as usize,
        lately_ms: limits.next_hop_idle.as_millis(),
        rest_ms: REST_MS,
    };
    let wanted = |under_way: usize| {
        let demand = pool::ahead_demand(worker, hop, under_way);
        judge_ahead(&rules, &demand, worker.now()).is_ok()
    };
    if shared.is_draining() || !wanted(0) {
        return false;
    }
    // counted before the idle ones: one that falls idle in between is then counted twice, and never
    // not at all
    let (under_way, with_it) = shared.open.begin_ahead(hop);
    if !wanted(with_it - 1) {
        return false;
    }
    let Ok(permit) = shared.open.take(hop, limits, Place::ToCome) else {
        return false;
    };
    to_come::spawn(
        worker,
        destination,
        permit,
        ToCome::Ahead {
            _under_way: under_way,
        },
    );
    true
}
