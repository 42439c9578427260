//! The proxy stops while responses arrive: who reads may finish, and what nobody reads holds up
//! nothing.

use super::FRESH;
use crate::support::{RawClient, Way, pattern};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::Span;

#[test]
fn draining_proxy_completes_responses_being_read() {
    for mut way in [Way::gateway(), Way::forward()] {
        let body = pattern(200_000);
        let (leader, mut hop) = way.lead(&way.get("/"));
        let mut readers = way.follow(2, &way.get("/"));
        readers.push(leader);
        hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
        hop.send(&body[..100_000]);
        for reader in &mut readers {
            reader.read_head();
            reader.read_exactly(100_000);
        }
        let mut idle = way.proxy.client();
        let stopping = way.proxy.stopping();
        // it has begun to: idle connections are closed
        idle.expect_end();
        hop.send(&body[100_000..]);
        for mut reader in readers {
            assert!(reader.read_exactly(100_000) == body[100_000..]);
            reader.expect_end();
        }
        assert!(stopping.join().expect("no panic"), "something was cut");
    }
}

#[test]
fn draining_proxy_answers_waiting_followers() {
    for mut way in [Way::gateway(), Way::forward()] {
        let (leader, mut hop) = way.lead(&way.get("/"));
        let mut all = way.follow(2, &way.get("/"));
        all.push(leader);
        let mut idle = way.proxy.client();
        let stopping = way.proxy.stopping();
        idle.expect_end();
        hop.send(super::with_length("", "got"));
        for mut client in all {
            let response = client.read_response();
            assert_eq!(response.text(), "got");
            assert_eq!(response.head.field("connection"), Some("close"));
        }
        assert!(stopping.join().expect("no panic"), "something was cut");
    }
}

/// A response of which half has come, and has been read, and whose first client has left: its fetch
/// is on the worker that client was on.
fn half(way: &Way, body: &[u8]) -> (RawClient, crate::support::OriginConnection) {
    let (mut leader, mut hop) = way.lead(&way.get("/"));
    hop.send(format!("{FRESH}Content-Length: {}\r\n\r\n", body.len()));
    hop.send(&body[..100_000]);
    leader.read_head();
    leader.read_exactly(100_000);
    let mut reader = way.proxy.asking(1, &way.get("/")).remove(0);
    reader.read_head();
    reader.read_exactly(100_000);
    leader.into_peer().reset();
    way.proxy.wait_for(Metric::ClientAborts, 1);
    (reader, hop)
}

/// A worker has ended long before so many looks at the counters, if it does.
const LOOKS: usize = 1000;

#[test]
fn draining_worker_without_clients_completes_a_fetch_others_read() {
    let body = pattern(200_000);
    // which worker takes a client is the kernel's choice
    for _ in 0..8 {
        let mut way = Way::gateway_with(|config| config.workers = 2);
        let (mut reader, mut hop) = half(&way, &body);
        let idle: Vec<_> = (0..8).map(|_| way.proxy.client()).collect();
        let stopping = way.proxy.stopping();
        // from the last one on a worker may have nobody to serve
        for mut idle in idle {
            idle.expect_end();
        }
        for _ in 0..LOOKS {
            assert_eq!(way.proxy.count(Metric::FetchesUnderWay), 1);
            std::thread::yield_now();
        }
        hop.send(&body[100_000..]);
        assert!(reader.read_exactly(100_000) == body[100_000..]);
        drop(reader);
        assert!(stopping.join().expect("no panic"), "something was cut");
    }
}

#[test]
fn fetch_without_a_reader_does_not_delay_shutdown() {
    for mut way in [
        Way::gateway_with(in_background),
        Way::forward_with(in_background),
    ] {
        let (mut leader, mut hop) = way.lead(&way.get("/"));
        hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
        hop.send(pattern(100_000));
        leader.read_head();
        leader.read_exactly(100_000);
        leader.into_peer().reset();
        way.proxy.wait_for(Metric::ClientAborts, 1);
        assert_eq!(way.proxy.count(Metric::FetchesUnderWay), 1);
        // the next hop never says the rest, and there is an hour to wait
        assert!(way.proxy.stopping().join().expect("no panic"));
        hop.expect_end();
        assert_eq!(way.proxy.count(Metric::FetchesUnderWay), 0);
    }
}

fn in_background(config: &mut weir_proxy::config::Config) {
    config.fetch.abort = AbortKind::Finish;
    config.limits.drain = Span::from_hours(1);
}

#[test]
fn reader_is_disconnected_at_the_drain_limit() {
    let mut way = Way::gateway_with(|config| config.limits.drain = Span::ZERO);
    let (mut leader, mut hop) = way.lead(&way.get("/"));
    let mut reader = way.follow(1, &way.get("/")).remove(0);
    hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
    hop.send(pattern(100_000));
    for client in [&mut leader, &mut reader] {
        client.read_head();
        client.read_exactly(100_000);
    }
    assert!(
        !way.proxy.stopping().join().expect("no panic"),
        "it was not cut"
    );
    for client in [&mut leader, &mut reader] {
        client.expect_end();
    }
    hop.expect_end();
}
