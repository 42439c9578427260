//! The raw-speed scenario: a few targets, requested as fast as they are answered.
//!
//! Every connection first requests every target once, so that whatever it measures afterwards has
//! been answered to itself before and may be answered from the store: no barrier between the
//! connections is needed. They begin at different places of the round.

use crate::number::microseconds;
use crate::phase::PhasePlan;
use crate::request::WorkloadRequest;
use crate::{Chance, Hits, Target};

/// The numbers of the phases in the plan.
pub(super) const WARM_UP: u8 = 0;
pub(super) const MEASURED: u8 = 1;

/// One connection. Its requests have no end: the clock ends its phase.
#[derive(Clone, Debug)]
pub(super) struct HitsConnection {
    connection: u32,
    targets: u32,
    first: u32,
    /// Targets of its round that no other connection begins before it.
    new_count: u32,
    warmed: u32,
    chance: Chance,
}

/// All connections of a run in order.
pub(super) fn connections(hits: &Hits, seed: u64) -> impl Iterator<Item = HitsConnection> {
    let (connections, targets) = (hits.connections.max(1), hits.targets.max(1));
    (0..connections).map(move |connection| HitsConnection {
        connection,
        targets,
        first: start_of(connection, connections, targets),
        new_count: start_of(connection + 1, connections, targets)
            - start_of(connection, connections, targets),
        warmed: 0,
        chance: Chance::new(seed, super::stream_of(connection)),
    })
}

/// The plan of such a run.
pub(super) fn phases(hits: &Hits) -> Vec<PhasePlan> {
    let plan = |name: &str, is_measured, lasts_us| PhasePlan {
        name: name.to_owned(),
        is_measured,
        ends_at_us: None,
        lasts_us,
    };
    vec![
        plan("warm-up", false, None),
        plan("hits", true, Some(microseconds(hits.duration_s))),
    ]
}

/// Spread evenly over the targets.
fn start_of(connection: u32, connections: u32, targets: u32) -> u32 {
    let start = u64::from(connection) * u64::from(targets) / u64::from(connections);
    u32::try_from(start).unwrap_or(0)
}

impl HitsConnection {
    pub(super) fn agent(&self) -> u32 {
        self.connection
    }
}

impl Iterator for HitsConnection {
    type Item = WorkloadRequest;

    fn next(&mut self) -> Option<WorkloadRequest> {
        let (phase, number, is_new) = if self.warmed < self.targets {
            let place = u64::from(self.first) + u64::from(self.warmed);
            let is_new = self.warmed < self.new_count;
            self.warmed += 1;
            (WARM_UP, place % u64::from(self.targets), is_new)
        } else {
            (MEASURED, self.chance.below(u64::from(self.targets)), false)
        };
        Some(WorkloadRequest {
            // there is no order among connections that warm up; each target is new once, for the
            // connection that begins nearest before it
            is_repeat: !is_new,
            ..WorkloadRequest::plain(phase, Target { server: 0, number })
        })
    }
}
