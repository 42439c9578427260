//! What the outcomes of requests and messages to a node say of its health, and a line for the
//! operator where that changes.

use crate::cluster::members::Cluster;
use crate::log::module_log::ModuleLog;
use weir_policy::Now;
use weir_policy::now::Tick;
use weir_policy::route::Place;
use weir_semantics::PeerReport;

/// The node at `place` did not answer as a member does, and why; since when it was silent, if that
/// is all.
pub(crate) fn failed(
    log: &ModuleLog,
    now: Now,
    (cluster, place): (&Cluster, Place),
    (why, silent_since): (&str, Option<Tick>),
) {
    if cluster.state().failed(now, place, silent_since) {
        let name = cluster.name(place);
        log.write_health(now.tick, &format!("node {name} is gone: {why}"));
    }
}

/// It answered a message between nodes with this.
pub(crate) fn heard_of(
    log: &ModuleLog,
    now: Now,
    (cluster, place): (&Cluster, Place),
    report: &PeerReport<'_>,
) {
    if cluster.state().heard_of(now, place, report) {
        is_back(log, now, (cluster, place));
    }
}

/// It answers again.
pub(crate) fn is_back(log: &ModuleLog, now: Now, (cluster, place): (&Cluster, Place)) {
    let name = cluster.name(place);
    log.write_health(now.tick, &format!("node {name} is back"));
}
