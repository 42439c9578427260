//! A generator that is not up to its scenario says so.

use super::{plan, run, support};

#[test]
fn run_with_an_overloaded_generator_is_invalid() {
    // far more than a thread can send
    let scenario = support::web(&[
        "workload.rate_per_s=60000",
        "workload.agents=50",
        "clients.connections_max=1",
        "clients.queue_max=3",
    ]);
    let record = run(&plan(scenario, None), 1);
    assert!(!record.is_valid, "{record:#?}");
    // whatever the machine's pace is, a queue of three cannot hold what comes while one request is
    // under way
    let full = |reason: &String| reason.contains("queue of an agent was full");
    assert!(record.reasons.iter().any(full), "{:#?}", record.reasons);
}
