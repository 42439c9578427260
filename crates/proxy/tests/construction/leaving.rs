//! Who left is noticed, and nothing goes on for nobody.

use crate::support::span;
use crate::{CHUNKED, ask, begun, chunk, gateway, whole};
use weir_measure::Metric;
use weir_proxy::config::{Abort, ByteSize};

#[test]
fn fetch_waits_for_a_silent_next_hop_when_nobody_reads() {
    let (proxy, origin) = gateway(|_| {});
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    hop.expect_end();
}

#[test]
fn what_is_not_stored_is_fetched_to_the_end_for_nobody() {
    let (proxy, origin) = gateway(|config| {
        config.cache.largest_response = ByteSize::from_kib(64);
        config.fetch.abort = Abort::Finish;
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
fn fetch_for_nobody_waits_for_ever_where_none_is_allowed() {
    let (proxy, origin) = gateway(|config| {
        config.fetch.background_rate = ByteSize::from_bytes(0);
        config.fetch.abort = Abort::Finish;
    });
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    hop.expect_end();
}

#[test]
fn fetch_for_nobody_goes_on_when_that_is_switched_off() {
    let (proxy, origin) = gateway(|config| config.fetch.abort = Abort::Finish);
    let (client, mut hop) = begun(&proxy, &origin, &whole(1_000_000), b"begin");
    client.into_peer().reset();
    proxy.wait_for(Metric::ClientAborts, 1);
    proxy.reload(|config| config.fetch.background_rate = ByteSize::from_bytes(0));
    hop.send("more");
    hop.expect_end();
}

#[test]
fn drained_worker_takes_what_clients_of_another_read() {
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
        // nobody listens any more: every worker knows
        while std::net::TcpStream::connect(address).is_ok() {}
        hop.send("56789");
        follower.expect("56789");
        drop(follower);
        assert!(stopping.join().expect("no panic"), "something was cut");
    }
}
