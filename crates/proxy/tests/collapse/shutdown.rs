//! The proxy stops while responses arrive: readers may finish, and a fetch without readers holds up
//! nothing.

use super::FRESH;
use crate::support::{RawClient, Setup, pattern};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::Span;

#[test]
fn draining_proxy_completes_responses_being_read() {
    for mut setup in [Setup::gateway(), Setup::forward()] {
        let body = pattern(200_000);
        let (leader, mut hop) = setup.lead(&setup.get("/"));
        let mut readers = setup.follow(2, &setup.get("/"));
        readers.push(leader);
        hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
        hop.send(&body[..100_000]);
        for reader in &mut readers {
            reader.read_head();
            reader.read_exactly(100_000);
        }
        let mut idle = setup.proxy.client();
        let stopping = setup.proxy.stopping();
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
    for mut setup in [Setup::gateway(), Setup::forward()] {
        let (leader, mut hop) = setup.lead(&setup.get("/"));
        let mut all = setup.follow(2, &setup.get("/"));
        all.push(leader);
        let mut idle = setup.proxy.client();
        let stopping = setup.proxy.stopping();
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
fn half(setup: &Setup, body: &[u8]) -> (RawClient, crate::support::OriginConnection) {
    let (mut leader, mut hop) = setup.lead(&setup.get("/"));
    hop.send(format!("{FRESH}Content-Length: {}\r\n\r\n", body.len()));
    hop.send(&body[..100_000]);
    leader.read_head();
    leader.read_exactly(100_000);
    let mut reader = setup.proxy.asking(1, &setup.get("/")).remove(0);
    reader.read_head();
    reader.read_exactly(100_000);
    leader.into_peer().reset();
    setup.proxy.wait_for(Metric::ClientAborts, 1);
    (reader, hop)
}

/// A worker has ended long before so many looks at the counters, if it does.
const LOOKS: usize = 1000;

#[test]
fn draining_worker_without_clients_completes_a_fetch_others_read() {
    let body = pattern(200_000);
    // which worker takes a client is the kernel's choice
    for _ in 0..8 {
        let mut setup = Setup::gateway_with(|config| config.workers = 2);
        let (mut reader, mut hop) = half(&setup, &body);
        let idle: Vec<_> = (0..8).map(|_| setup.proxy.client()).collect();
        let stopping = setup.proxy.stopping();
        // from the last one on a worker may have no client to serve
        for mut idle in idle {
            idle.expect_end();
        }
        for _ in 0..LOOKS {
            assert_eq!(setup.proxy.count(Metric::FetchesUnderWay), 1);
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
    for mut setup in [
        Setup::gateway_with(in_background),
        Setup::forward_with(in_background),
    ] {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
        hop.send(pattern(100_000));
        leader.read_head();
        leader.read_exactly(100_000);
        leader.into_peer().reset();
        setup.proxy.wait_for(Metric::ClientAborts, 1);
        assert_eq!(setup.proxy.count(Metric::FetchesUnderWay), 1);
        // the next hop never says the rest, and there is an hour to wait
        assert!(setup.proxy.stopping().join().expect("no panic"));
        hop.expect_end();
        assert_eq!(setup.proxy.count(Metric::FetchesUnderWay), 0);
    }
}

fn in_background(config: &mut weir_proxy::config::Config) {
    config.fetch.abort = AbortKind::Finish;
    config.limits.drain = Span::from_hours(1);
}

#[test]
fn reader_is_disconnected_at_the_drain_limit() {
    let mut setup = Setup::gateway_with(|config| config.limits.drain = Span::ZERO);
    let (mut leader, mut hop) = setup.lead(&setup.get("/"));
    let mut reader = setup.follow(1, &setup.get("/")).remove(0);
    hop.send(format!("{FRESH}Content-Length: 200000\r\n\r\n"));
    hop.send(pattern(100_000));
    for client in [&mut leader, &mut reader] {
        client.read_head();
        client.read_exactly(100_000);
    }
    assert!(
        !setup.proxy.stopping().join().expect("no panic"),
        "it was not cut"
    );
    for client in [&mut leader, &mut reader] {
        client.expect_end();
    }
    hop.expect_end();
}
