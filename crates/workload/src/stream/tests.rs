//! What is wrong with the streams of the scenarios that come with the program, seen from outside.

mod again;
mod hits;
mod infinite;
mod polymix;
mod share;
mod web;
mod wpb;

use super::{Due, Schedule, Share, Stream};
use crate::{Scenario, WorkloadRequest};

/// A scenario that comes with the program, with some of its keys changed.
pub(super) fn scenario(name: &str, changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::built_in(name).expect("a scenario");
    for change in changes {
        scenario.set(change).expect("a change");
    }
    scenario
}

/// One of the PolyMix scenarios at 50 requests a second, with its plateaus of twelve minutes.
pub(super) fn mini(name: &str) -> Scenario {
    let changes = [
        "workload.fill_rate_per_s=25",
        "workload.peak_rate_per_s=50",
        "workload.cache=1GB",
    ];
    scenario(name, &changes).scaled(0.05)
}

/// Every agent's requests of a closed loop, as long as they are not endless.
fn closed(scenario: &Scenario, seed: u64, share: Share) -> Vec<(u32, Vec<WorkloadRequest>)> {
    let Stream::Closed(agents) = scenario.stream(seed, share) else {
        panic!("{} is no closed loop", scenario.name);
    };
    let agents = agents.into_iter();
    agents
        .map(|agent| (agent.agent(), agent.take(CLOSED_MAX).collect()))
        .collect()
}

fn schedule(scenario: &Scenario, seed: u64, share: Share) -> Schedule {
    let Stream::Open(schedule) = scenario.stream(seed, share) else {
        panic!("{} is no open loop", scenario.name);
    };
    schedule
}

fn open(scenario: &Scenario, seed: u64) -> Vec<Due> {
    schedule(scenario, seed, Share::WHOLE).collect()
}

/// Is the share of `found` in `all` within five standard deviations of what was meant?
pub(super) fn expect_share(what: &str, found: usize, all: usize, meant: f64) {
    assert!(all > 0, "{what}: nothing to look at");
    let count = all as f64;
    let share = found as f64 / count;
    let slack = 5.0 * (meant * (1.0 - meant) / count).sqrt();
    assert!(
        (share - meant).abs() <= slack,
        "{what}: {share:.4} of {all}, meant {meant:.4} +- {slack:.4}"
    );
}

/// More than any test looks at.
const CLOSED_MAX: usize = 100_000;

fn squared(number: f64) -> f64 {
    number * number
}
