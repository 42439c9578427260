//! Latency, rates and links: what comes when.

use std::time::{Duration, Instant};

use crate::support::{TestOrigin, hits, target};

/// How long a request takes on a new connection, and the response.
fn timed(served: &TestOrigin, number: u64) -> Duration {
    let line = format!("GET {} HTTP/1.1", served.path(target(number)));
    let mut wire = served.wire();
    let start = Instant::now();
    let reply = wire.ask(&[&line, "Host: a"]);
    let took = start.elapsed();
    assert!(reply.content == served.content(target(number)), "{number}");
    took
}

/// Every request takes at least `least`, and one of many no longer than `most`: a busy machine
/// makes some of them longer.
fn check_time(served: &TestOrigin, least: Duration, most: Duration) {
    let is_short = |number| {
        let took = timed(served, number);
        assert!(took >= least, "{took:?} < {least:?}");
        took <= most
    };
    assert!((0..50).any(is_short), "all took longer than {most:?}");
}

#[test]
fn response_waits_for_the_configured_latency_and_no_longer() {
    let served = TestOrigin::new(hits(&["origin.latency=constant(150ms)"]));
    check_time(
        &served,
        Duration::from_millis(150),
        Duration::from_millis(250),
    );
}

#[test]
fn latency_varies_between_targets_and_repeats_for_each_one() {
    let served = TestOrigin::new(hits(&["origin.latency=normal(40ms, 15ms)"]));
    let again = TestOrigin::new(hits(&["origin.latency=normal(40ms, 15ms)"]));
    let mut least = [Duration::MAX; 8];
    // a busy machine makes single ones longer, never shorter
    for _ in 0..5 {
        for (number, least) in (0..).zip(&mut least) {
            *least = (*least)
                .min(timed(&served, number))
                .min(timed(&again, number));
        }
    }
    let spread = least
        .iter()
        .max()
        .expect("eight")
        .saturating_sub(*least.iter().min().expect("eight"));
    assert!(spread >= Duration::from_millis(5), "{least:?}");
    for (number, least) in (0..).zip(least) {
        let another = timed(
            &TestOrigin::new(hits(&["origin.latency=normal(40ms, 15ms)"])),
            number,
        );
        assert!(
            another + Duration::from_millis(2) >= least,
            "{number}: {another:?} {least:?}"
        );
    }
}

#[test]
fn requests_with_zero_latency_are_all_answered_at_once() {
    let served = TestOrigin::new(hits(&["origin.latency=constant(0s)"]));
    check_time(&served, Duration::ZERO, Duration::from_millis(20));
    let mut wire = served.wire();
    let line = format!("GET {} HTTP/1.1", served.path(target(0)));
    for _ in 0..200 {
        assert_eq!(wire.ask(&[&line, "Host: a"]).status, 200);
    }
}

#[test]
fn response_is_as_fast_as_the_configured_rate() {
    let served = TestOrigin::new(hits(&["origin.rate=40KB", "workload.size=constant(20KB)"]));
    // the first fiftieth of a second's worth comes at once
    check_time(
        &served,
        Duration::from_millis(460),
        Duration::from_millis(700),
    );
}

#[test]
fn server_link_delay_applies_to_connection_set_up_and_exchange() {
    let link = "origin.link={ delay = \"30ms\", loss = \"0%\" }";
    let served = TestOrigin::new(hits(&[link]));
    // set-up and exchange: two round trips
    check_time(
        &served,
        Duration::from_millis(120),
        Duration::from_millis(200),
    );
    let line = format!("GET {} HTTP/1.1", served.path(target(0)));
    let mut wire = served.wire();
    wire.ask(&[&line, "Host: a"]);
    let start = Instant::now();
    wire.ask(&[&line, "Host: a"]);
    assert!(start.elapsed() >= Duration::from_millis(60));
}
