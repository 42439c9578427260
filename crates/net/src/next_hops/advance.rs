//! Connections opened in advance: a number of idle connections is kept ready to each configured
//! next hop that was used lately.
//!
//! Off unless [`ConnectionRules::connections_ahead`] says otherwise. Looked at when a request takes
//! a connection, and whenever the program calls [`keep_ready`].

use super::destination::Destination;
use super::pending::{self, Purpose};
use super::pool;
use super::rules::ConnectionRules;
use crate::workers::Worker;
use std::sync::Arc;
use weir_policy::connections::{ConnectionState, PreconnectRules, judge_preconnect};

/// After a failure no connection is opened in advance for this long: requests find out by
/// themselves when the next hop can be reached again.
const REST_MS: u64 = 5000;

/// A request has taken a connection to `destination`: there may be too few ready ones now.
pub(super) fn top_up(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) {
    // only a configured next hop gets connections that no request needs yet
    if !destination.guarded {
        pool::note_used(worker, &destination.hop);
        keep_ready(worker, rules, destination);
    }
}

/// Opens the connections to `destination` that the rules require to be ready and that are missing,
/// in tasks of their own. To be called about once a second on each worker: idle connections are
/// closed meanwhile.
pub fn keep_ready(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) {
    while open_one(worker, rules, destination) {}
}

/// Opens one more if the rules require and permit it.
fn open_one(worker: &Worker, rules: &Arc<ConnectionRules>, destination: &Destination) -> bool {
    let (network, hop) = (worker.network(), &destination.hop);
    let open = network.open_connections();
    let ahead = PreconnectRules {
        ready: rules.connections_ahead,
        lately_ms: u64::try_from(rules.used_within.as_millis()).unwrap_or(u64::MAX),
        rest_ms: REST_MS,
    };
    let is_wanted = |being_opened: usize| {
        let demand = pool::advance_demand(worker, hop, being_opened);
        judge_preconnect(&ahead, &demand, worker.now()).is_ok()
    };
    if hop.is_for_one_request() || network.is_draining() || !is_wanted(0) {
        return false;
    }
    // counted before the idle ones: a connection that becomes idle in between is then counted
    // twice, and never not at all
    let (count, with_it) = open.begin_advance(hop);
    if !is_wanted(with_it - 1) {
        return false;
    }
    let Ok(permit) = open.take(hop, &rules.open, ConnectionState::OpeningUnassigned) else {
        return false;
    };
    pending::spawn(
        worker,
        rules,
        destination,
        permit,
        Purpose::Advance { _count: count },
    );
    true
}
