//! A generator that cannot keep up says so.

use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_bench::client::{ClientResult, Form};
use weir_bench::tally::{ErrorKind, LINK_SLOWER_SHARE_MAX, SecondTally};
use weir_workload::Link;

use crate::rig::{direct, hinder, nowhere, plan, run, run_watched, total};
use crate::support::{TestOrigin, web};

/// Two seconds of an open loop, of which the generator's thread is away for a good part.
fn hindered(link: Option<Link>) -> ClientResult {
    let mut scenario = web(&[
        "workload.agents=20",
        "workload.rate_per_s=200",
        "workload.warm_up=1s",
        "workload.measured=2s",
        "clients.queue_max=1000",
    ]);
    scenario.clients.link = link;
    let served = TestOrigin::new(scenario.clone());
    let servers = served.origin.servers().to_vec();
    let plan = plan(&scenario, nowhere(), Form::Direct { servers });
    let on_second = |_: &SecondTally| hinder(Duration::from_millis(300));
    run_watched(&plan, on_second, &AtomicBool::new(false))
}

#[test]
fn late_request_starts_are_reported_by_the_generator() {
    let result = hindered(None);
    assert!(result.health.late_share() > 0.01, "{:?}", result.health);
    assert!(result.health.late_max_us > 100_000, "{:?}", result.health);
    let reasons = result.health.reasons();
    assert!(
        reasons[0].contains("started more than 10 ms late"),
        "{reasons:?}"
    );
}

#[test]
fn links_served_late_are_reported_as_too_slow() {
    let result = hindered(Link::preset("mobile-low-income"));
    let health = &result.health;
    assert!(
        health.links.late_share() > LINK_SLOWER_SHARE_MAX,
        "{health:?}"
    );
    let says_so = |reason: &String| reason.contains("the clients' links were");
    assert!(health.reasons().iter().any(says_so), "{health:?}");
}

#[test]
fn requests_refused_by_a_full_queue_are_reported_as_errors() {
    // more than a thread can do
    let scenario = web(&[
        "workload.agents=2",
        "workload.rate_per_s=1000000",
        "workload.warm_up=1s",
        "workload.measured=1s",
        "clients.queue_max=4",
    ]);
    let served = TestOrigin::new(scenario.clone());
    let result = direct(&served, &scenario);
    let reasons = result.health.reasons();
    let full = total(&result).errors_of(ErrorKind::QueueFull);
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
fn slow_proxy_does_not_make_the_generator_late() {
    // no response comes: requests wait for their robots' connections, and the generator is in time
    // all the same
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
    let total = total(&result);
    assert!(
        total.errors_of(ErrorKind::Timeout) > 0 && total.errors_of(ErrorKind::Unfinished) > 0,
        "{total:?}"
    );
    assert_eq!(total.client.error_count(), total.client.requests);
}
