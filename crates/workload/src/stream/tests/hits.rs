use std::collections::BTreeSet;

use super::{expect_share, scenario};
use crate::stream::{Share, Stream};
use crate::{Target, WorkloadRequest};

#[test]
fn connection_requests_every_target_in_warm_up_before_measuring() {
    let scenario = scenario("hits", &["workload.targets=50", "workload.connections=7"]);
    let Stream::Closed(agents) = scenario.stream(1, Share::WHOLE) else {
        panic!("hits is no closed loop");
    };
    assert_eq!(agents.len(), 7);
    let mut starts = BTreeSet::new();
    for agent in agents {
        let asks: Vec<WorkloadRequest> = agent.take(10_050).collect();
        let (warm_up, measured) = asks.split_at(50);
        starts.insert(warm_up[0].target);
        let all: BTreeSet<Target> = warm_up.iter().map(|ask| ask.target).collect();
        assert_eq!(all.len(), 50);
        assert!(warm_up.iter().all(|ask| ask.phase == 0));
        assert!(
            measured
                .iter()
                .all(|ask| ask.phase == 1 && all.contains(&ask.target))
        );
        let first = measured.iter().filter(|ask| ask.target.number == 0).count();
        expect_share("target 0", first, measured.len(), 1.0 / 50.0);
    }
    assert_eq!(starts.len(), 7, "connections start at the same target");
}

#[test]
fn each_target_is_new_exactly_once_and_during_warm_up() {
    for (targets, connections) in [(50, 7), (100, 64), (3, 8), (5, 1)] {
        let changes = [
            format!("workload.targets={targets}"),
            format!("workload.connections={connections}"),
        ];
        let scenario = scenario("hits", &[&changes[0], &changes[1]]);
        let Stream::Closed(agents) = scenario.stream(1, Share::WHOLE) else {
            panic!("hits is no closed loop");
        };
        let mut new = Vec::new();
        for agent in agents {
            let asks = agent.take(2 * targets);
            new.extend(asks.filter(|ask| !ask.is_repeat));
        }
        assert!(new.iter().all(|ask| ask.phase == 0));
        let mut numbers: Vec<u64> = new.iter().map(|ask| ask.target.number).collect();
        numbers.sort_unstable();
        let all: Vec<u64> = (0..targets as u64).collect();
        assert_eq!(numbers, all, "{targets} targets, {connections} connections");
    }
}

#[test]
fn measured_phase_lasts_the_duration_of_the_scenario() {
    let scenario = scenario("hits", &["workload.duration=12s"]);
    let phases = scenario.phases(1);
    let ends: Vec<_> = phases
        .iter()
        .map(|phase| (phase.is_measured, phase.ends_at_us, phase.lasts_us))
        .collect();
    assert_eq!(ends, [(false, None, None), (true, None, Some(12_000_000))]);
}
