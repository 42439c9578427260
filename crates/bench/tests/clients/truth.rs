//! Nothing is wrong, and client and origin counts agree.

use weir_bench::client::Form;
use weir_bench::tally::ErrorKind;
use weir_workload::Scenario;

use crate::rig::{direct, forward, nowhere, plan, run, total};
use crate::support::{Fault, FaultyProxy, TestOrigin, hits, web, wpb};

/// Runs without a proxy; requests on both sides must be the same, and everything forwarded.
fn check_direct(scenario: Scenario) -> weir_bench::client::ClientResult {
    let served = TestOrigin::new(scenario.clone());
    let result = direct(&served, &scenario);
    let total = total(&result);
    let origin = served.counts();
    assert!(total.client.requests > 0);
    assert_eq!(
        total.client.wrong_count(),
        0,
        "{:?}",
        result.wrong_responses
    );
    assert_eq!(total.client.error_count(), 0, "{:?}", total.client.errors);
    let sum = |count: fn(&weir_bench::origin::PhaseCounts) -> u64| -> u64 {
        origin.phases.iter().map(count).sum()
    };
    assert_eq!(
        sum(|phase| phase.distinct),
        total.client.requests + total.repeated
    );
    assert_eq!(
        total.client.forwarded + total.client.not_modified + total.client.aborted,
        total.client.requests
    );
    assert_eq!(
        Some(sum(|phase| phase.not_modified)),
        total.client.not_modified_forwarded
    );
    if total.client.aborted == 0 {
        assert_eq!(sum(|phase| phase.content_bytes), total.client.content_bytes);
    }
    result
}

#[test]
fn client_and_origin_count_the_same_requests_and_bytes() {
    let result = check_direct(hits(&["workload.connections=8", "workload.targets=20"]));
    let [warm_up, hits] = &result.phases[..] else {
        panic!("two phases: {:?}", result.phases);
    };
    // four of the eight connections are this share's
    assert_eq!(warm_up.counts.client.requests, 4 * 20);
    assert!(
        hits.counts.client.requests > 100,
        "{}",
        hits.counts.client.requests
    );
    assert_eq!(
        hits.counts.client.connections_opened + warm_up.counts.client.connections_opened,
        4
    );
    assert_eq!(hits.response_time.all.count(), hits.counts.client.requests);
    assert_eq!(hits.response_time.miss.count(), hits.counts.client.requests);
    assert!((0.9..1.5).contains(&hits.seconds()), "{}", hits.seconds());
    assert!(!result.samples.is_empty());
    let sample = &result.samples[0];
    assert!(sample.scheduled_us <= sample.started_us && sample.started_us <= sample.ended_us);
}

#[test]
fn http_1_0_client_without_keep_alive_never_reuses_a_connection() {
    let result = check_direct(wpb(&[
        "clients.http=\"1.0\"",
        "clients.keep_alive=false",
        "clients.connections_max=1",
        "origin.http=\"1.0\"",
        "origin.keep_alive=false",
    ]));
    let total = total(&result);
    assert_eq!(total.client.requests, 2 * 2 * 10);
    assert_eq!(total.client.connections_opened, total.client.requests);
    assert_eq!(total.client.connections_reused, 0);
}

#[test]
fn http_1_0_client_reuses_its_connection_up_to_the_configured_limit() {
    let result = check_direct(hits(&[
        "clients.http=\"1.0\"",
        "origin.http=\"1.0\"",
        "workload.connections=2",
        "workload.targets=20",
        "clients.requests_per_connection=constant(5)",
    ]));
    let total = total(&result);
    let fifths = total.client.requests.div_ceil(5);
    assert!(
        (fifths..=fifths + 1).contains(&total.client.connections_opened),
        "{total:?}"
    );
}

#[test]
fn conditional_head_cookie_and_aborted_requests_agree_on_both_sides() {
    let result = check_direct(web(&[
        "workload.agents=20",
        "workload.rate_per_s=1000",
        "workload.warm_up=1s",
        "workload.measured=2s",
        "workload.if_modified_share=20%",
        "workload.reload_share=5%",
        "workload.head_share=5%",
        "workload.cookie_share=30%",
        "clients.aborted_share=5%",
        "clients.queue_max=1000",
    ]));
    let total = total(&result);
    assert!(
        (1000..2000).contains(&total.client.requests),
        "{}",
        total.client.requests
    );
    assert!(
        total.client.not_modified > 50 && total.client.aborted > 10,
        "{total:?}"
    );
    assert_eq!(result.health.scheduled, total.client.requests);
}

#[test]
fn each_client_connects_from_its_own_address() {
    let scenario = hits(&[
        "workload.connections=6",
        "workload.targets=5",
        "clients.addresses=each",
    ]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let servers = vec![listener.local_addr().expect("its address")];
    let scenario_plan = plan(&scenario, nowhere(), Form::Direct { servers });
    let peers = std::thread::spawn(move || {
        let peers = (0..3).map(|_| listener.accept().expect("a client").1.ip().to_string());
        // and hangs up on all of them
        peers.collect::<std::collections::BTreeSet<_>>()
    });
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let run = scope.spawn(|| crate::rig::run_until(&scenario_plan, &stop));
        let seen = peers.join().expect("peers");
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        run.join().expect("a run");
        seen
    });
    let expected = ["127.1.0.2", "127.1.0.4", "127.1.0.6"].map(str::to_owned);
    assert_eq!(seen, expected.into());
}

#[test]
fn hits_and_forwards_are_distinguished_by_the_origin_mark() {
    // a proxy that always sends what it stored first is right about targets that never change
    let scenario = hits(&["workload.connections=2", "workload.targets=10"]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::Stale);
    let result = forward(&served, &scenario, proxy.address());
    let total = total(&result);
    assert_eq!(
        total.client.wrong_count(),
        0,
        "{:?}",
        result.wrong_responses
    );
    assert_eq!(
        (total.client.forwarded, total.client.hits),
        (10, total.client.requests - 10)
    );
    assert_eq!(total.client.requests, proxy.asked());
    assert_eq!(total.client.hit_content_bytes, total.client.hits * 10_000);
    assert_eq!(total.client.cache_status.absent, total.client.requests);
}

#[test]
fn false_hit_claim_is_counted_as_forward_and_disagreement() {
    let scenario = hits(&["workload.connections=2", "workload.targets=5"]);
    let served = TestOrigin::new(scenario.clone());
    let proxy = FaultyProxy::forward(Fault::FalseHit);
    let result = forward(&served, &scenario, proxy.address());
    let total = total(&result);
    assert_eq!(total.client.forwarded, total.client.requests);
    assert_eq!(total.client.cache_status.disagree, total.client.requests);
}

#[test]
fn request_through_a_gateway_reaches_its_own_server() {
    let scenario = wpb(&["clients.connections_max=1"]);
    let gateway = weir_bench::origin::OriginListen::Gateway("127.0.0.1:0".parse().expect("one"));
    let served = TestOrigin::on(scenario.clone(), gateway, 1);
    let proxy = FaultyProxy::gateway(served.address(), Fault::None);
    let authority = proxy.address().to_string();
    let result = run(&plan(
        &scenario,
        proxy.address(),
        Form::Gateway { authority },
    ));
    let total = total(&result);
    assert_eq!(
        total.client.forwarded, total.client.requests,
        "{total:?} {:?}",
        result.wrong_responses
    );
}

#[test]
fn refused_connection_is_counted_as_connect_refused() {
    let scenario = wpb(&["clients.connections_max=1"]);
    let plan = plan(
        &scenario,
        nowhere(),
        Form::Gateway {
            authority: "nobody".to_owned(),
        },
    );
    let total = total(&run(&plan));
    assert_eq!(total.client.requests, 2 * 2 * 10);
    assert_eq!(
        total.errors_of(ErrorKind::ConnectRefused),
        total.client.requests,
        "{total:?}"
    );
}

#[test]
fn per_second_tallies_sum_to_the_phase_totals() {
    let scenario = hits(&[
        "workload.connections=4",
        "workload.targets=5",
        "workload.duration=3s",
    ]);
    let served = TestOrigin::new(scenario.clone());
    let servers = served.origin.servers().to_vec();
    let mut seconds = Vec::new();
    let plan = plan(&scenario, nowhere(), Form::Direct { servers });
    let never = std::sync::atomic::AtomicBool::new(false);
    let result = weir_bench::client::run(&plan, |second| seconds.push(second.clone()), &never);
    let result = result.expect("a run");
    assert!(seconds.len() >= 3 && seconds[..] == result.series[..seconds.len()]);
    let total = total(&result);
    let sum = |count: fn(&weir_bench::tally::SecondTally) -> u64| -> u64 {
        result.series.iter().map(count).sum()
    };
    assert_eq!(sum(|second| second.requests), total.client.requests);
    assert_eq!(sum(|second| second.responses), total.client.answered());
    assert_eq!(
        sum(|second| second.content_bytes),
        total.client.content_bytes
    );
    let timed: u64 = result
        .series
        .iter()
        .flat_map(|second| &second.response_time_us)
        .map(|pair| pair.1)
        .sum();
    assert_eq!(timed, total.client.answered());
    assert_eq!(seconds[1].connections_open, 2);
    assert!(seconds[1].quantile_us(0.99) >= seconds[1].quantile_us(0.5));
}
