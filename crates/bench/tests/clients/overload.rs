//! A generator that cannot keep up says so.

use std::net::TcpListener;

use weir_bench::client::Form;
use weir_bench::tally::ErrorKind;

use crate::rig::{direct, nowhere, plan, run, total};
use crate::support::{Served, web};

#[test]
fn generator_that_cannot_keep_up_is_called_valid() {
    // more than a thread can do
    let scenario = web(&[
        "workload.agents=2",
        "workload.rate_per_s=1000000",
        "workload.warm_up=1s",
        "workload.measured=1s",
        "clients.queue_max=4",
    ]);
    let served = Served::new(scenario.clone());
    let result = direct(&served, &scenario);
    let reasons = result.health.reasons();
    let full = total(&result).errors.of(ErrorKind::QueueFull);
    assert_eq!(full, result.health.queue_full);
    assert!(
        full > 0
            && reasons
                .iter()
                .any(|reason| reason.contains("queue of an agent was full")),
        "{reasons:?}"
    );
}

#[test]
fn proxy_that_is_slow_makes_the_generator_late() {
    // nobody answers: requests wait for their robots' connections, and the generator is in time all the same
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let servers = vec![listener.local_addr().expect("its address"); 2];
    let scenario = web(&[
        "workload.agents=4",
        "workload.rate_per_s=100",
        "workload.warm_up=1s",
        "workload.measured=1s",
        "clients.queue_max=1000",
        "clients.response_timeout=1s",
    ]);
    let mut plan = plan(&scenario, nowhere(), Form::Direct { servers });
    plan.limits.drain_s = 0.5;
    let result = run(&plan);
    // on a busy machine a few milliseconds, never the second that requests wait for a connection
    assert!(result.health.late_max_us < 900_000, "{:?}", result.health);
    assert!(result.health.queue_max > 10, "{:?}", result.health);
    let errors = total(&result).errors;
    assert!(
        errors.of(ErrorKind::Timeout) > 0 && errors.of(ErrorKind::Unfinished) > 0,
        "{errors:?}"
    );
    assert_eq!(errors.sum(), total(&result).requests);
}
