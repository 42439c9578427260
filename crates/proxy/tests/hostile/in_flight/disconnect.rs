//! A disconnect is noticed, and no fetch goes on without a reader.

use super::{CHUNKED, ask, begun, chunk, gateway, whole};
use crate::support::span;
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::ByteSize;

#[test]
fn fetch_from_a_silent_next_hop_is_aborted_when_its_reader_disconnects() {
    let (proxy, origin) = gateway(|_| {});
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    hop.expect_end();
}

#[test]
fn unstorable_fetch_is_aborted_when_its_last_reader_disconnects() {
    let (proxy, origin) = gateway(|config| {
        config.cache.largest_response = ByteSize::from_kib(64);
        config.fetch.abort = AbortKind::Finish;
    });
    let chunk = chunk(&[b'x'; 60_000]);
    let mut client = ask(&proxy, "");
    let (mut hop, _) = origin.answer([CHUNKED.as_bytes(), &chunk].concat());
    client.read_exactly(50_000);
    hop.send(&chunk);
    client.read_exactly(50_000);
    proxy.wait_for(Metric::PassedThrough, 1);
    client.into_peer().reset();
    hop.expect_end();
}

#[test]
fn fetch_without_reader_is_aborted_at_background_rate_zero() {
    let (proxy, origin) = gateway(|config| {
        config.fetch.background_rate = ByteSize::from_bytes(0);
        config.fetch.abort = AbortKind::Finish;
    });
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    hop.expect_end();
}

#[test]
fn background_fetch_is_aborted_when_a_reload_sets_its_rate_to_zero() {
    let (proxy, origin) = gateway(|config| config.fetch.abort = AbortKind::Finish);
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    proxy.wait_for(Metric::ClientAborts, 1);
    proxy.reload(|config| config.fetch.background_rate = ByteSize::from_bytes(0));
    hop.send("more");
    hop.expect_end();
}

#[test]
fn draining_worker_keeps_a_fetch_read_by_clients_of_another_worker() {
    // two workers, and the kernel picks which one a client is with
    for _ in 0..8 {
        let (proxy, origin) = gateway(|config| {
            config.workers = 2;
            config.limits.drain = span("20s");
        });
        let (leader, mut hop) = begun(&proxy, &origin, &whole(10), b"01234");
        let mut follower = ask(&proxy, "");
        assert_eq!(follower.read_head().status(), 200);
        follower.expect("01234");
        leader.into_peer().reset();
        proxy.wait_for(Metric::ClientAborts, 1);
        let address = proxy.address();
        let stopping = proxy.stop();
        // there is no listener any more: every worker knows
        while std::net::TcpStream::connect(address).is_ok() {}
        hop.send("56789");
        follower.expect("56789");
        drop(follower);
        assert!(stopping.join().expect("no panic"), "something was cut");
    }
}
