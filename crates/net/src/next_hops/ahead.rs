//! Connections opened before anybody asks for them: so many are kept ready to a route's next hops
//! that were asked lately.
//!
//! Off unless the operator wants it. Looked at when a request takes a connection, and once a
//! second.

use crate::next_hops::destination::Destination;
use crate::next_hops::pool;
use crate::next_hops::rules::ConnectionRules;
use crate::next_hops::to_come::{self, ToCome};
use crate::worker::Worker;
use std::sync::Arc;
use weir_policy::connections::{AheadRules, Place, judge_ahead};

/// After a failure none is opened ahead for so long: requests find out by themselves when it is
/// over.
const REST_MS: u64 = 5000;

/// A request has taken a connection to `destination`: there may be too few left.
pub fn top_up(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) {
    // only what the operator has named is worth a connection that nobody asked for
    if !destination.guarded {
        pool::note_used(worker, &destination.hop);
        fill(worker, rules, destination);
    }
}

/// Opens as many connections to `destination` as are to be ready and are not: those that were may
/// have been closed meanwhile.
pub fn fill(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) {
    while open_one(worker, rules, destination) {}
}

/// Opens one more if that is wanted and allowed.
fn open_one(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) -> bool {
    let (network, hop) = (worker.network(), &destination.hop);
    let ahead = AheadRules {
        ready: rules.connections_ahead,
        lately_ms: u64::try_from(rules.used_within.as_millis()).unwrap_or(u64::MAX),
        rest_ms: REST_MS,
    };
    let wanted = |under_way: usize| {
        let demand = pool::ahead_demand(worker, hop, under_way);
        judge_ahead(&ahead, &demand, worker.now()).is_ok()
    };
    if network.is_draining() || !wanted(0) {
        return false;
    }
    // counted before the idle ones: one that falls idle in between is then counted twice, and never
    // not at all
    let (under_way, with_it) = network.open_connections().begin_ahead(hop);
    if !wanted(with_it - 1) {
        return false;
    }
    let Ok(permit) = network
        .open_connections()
        .take(hop, &rules.open, Place::ToCome)
    else {
        return false;
    };
    to_come::spawn(
        worker,
        rules,
        destination,
        permit,
        ToCome::Ahead {
            _under_way: under_way,
        },
    );
    true
}
