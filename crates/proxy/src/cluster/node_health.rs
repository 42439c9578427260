//! What the outcomes of requests and messages to a node say of its health, and whether it agrees
//! with this one; a line for the operator where that changes.

use crate::cluster::members::Cluster;
use crate::log::module_log::ModuleLog;
use weir_policy::Now;
use weir_policy::now::Tick;
use weir_policy::route::{Place, TargetKey};
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
    let is_back = cluster.state().heard_of(now, place, report);
    tell(log, now, (cluster, place), (is_back, report));
}

/// It answered a request, `us` microseconds after it was asked, with this; whether that was a hit
/// there.
pub(crate) fn answered(
    log: &ModuleLog,
    now: Now,
    (cluster, place): (&Cluster, Place),
    (us, report): (u64, &PeerReport<'_>),
    target: (TargetKey, Option<bool>),
) {
    let is_back = cluster.state().answered(now, place, us, report, target);
    tell(log, now, (cluster, place), (is_back, report));
}

/// Whether it answers again, and what it says.
fn tell(
    log: &ModuleLog,
    now: Now,
    (cluster, place): (&Cluster, Place),
    (is_back, report): (bool, &PeerReport<'_>),
) {
    if is_back {
        let name = cluster.name(place);
        log.write_health(now.tick, &format!("node {name} is back"));
    }
    if let Some(differs) = cluster.note_placement(place, report) {
        let end = match differs {
            true => {
                "does not agree with this one which node keeps a target: their policies, \
                 constants, members, weights or secrets differ"
            }
            false => "agrees with this one again which node keeps a target",
        };
        log.write_health(now.tick, &format!("node {} {end}", cluster.name(place)));
    }
}
