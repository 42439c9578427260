//! A generator that is not up to its scenario says so.

use super::{plan, run, support};

#[test]
fn overloaded_generator_is_called_valid() {
    // far more than a thread can send
    let scenario = support::web(&[
        "workload.rate_per_s=60000",
        "workload.agents=50",
        "clients.connections_max=1",
        "clients.queue_max=3",
    ]);
    let record = run(&plan(scenario, None), 1);
    assert!(!record.is_valid, "{record:#?}");
    // whatever the machine's pace is, a queue of three cannot hold what comes while one request is under way
    let full = |reason: &String| reason.contains("queue of an agent was full");
    assert!(record.reasons.iter().any(full), "{:#?}", record.reasons);
}

#[test]
fn proxy_that_does_not_answer_is_taken_for_one() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = nobody.local_addr().expect("it is bound");
    drop(nobody);
    let record = run(&plan(support::wpb(&[]), Some(address)), 1);
    assert!(!record.is_valid);
    assert!(
        record.reasons[0].contains("No request was answered; 80 failed: connect-refused 80"),
        "{:#?}",
        record.reasons
    );
}
