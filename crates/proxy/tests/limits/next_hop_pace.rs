//! A next hop that takes only a part of a request head.

use crate::support::{Running, ScriptedOrigin, span};
use weir_measure::Metric;
use weir_proxy::config::{ByteSize, Config};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A head that is larger than what a next hop with small buffers, and the proxy's kernel, take.
fn large_head() -> String {
    let value = "x".repeat(900_000);
    format!("GET / HTTP/1.1\r\nHost: a\r\nX: {value}\r\n\r\n")
}

fn proxy(origin: &ScriptedOrigin, change: impl FnOnce(&mut Config)) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.head_bytes = ByteSize::from_mib(1);
        change(config);
    })
}

#[test]
fn next_hop_that_takes_no_more_of_a_head_is_a_timeout_and_the_request_not_repeated() {
    let origin = ScriptedOrigin::with_small_buffers();
    let proxy = proxy(&origin, |config| {
        config.limits.next_hop_silence = span("250ms");
    });
    let mut client = proxy.client();
    client.send(GET);
    let (hop, _) = origin.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    client.read_response();
    // on the same connection: a request that fails there may be repeated
    let response = client.ask(large_head());
    assert_eq!(response.status(), 504);
    assert_eq!(proxy.count(Metric::NextHopTimeouts), 1);
    assert_eq!(proxy.count(Metric::NextHopErrors), 0);
    assert_eq!(proxy.count(Metric::Retries), 0);
    origin.expect_untouched();
    drop(hop);
}

#[test]
fn bytes_of_a_head_are_counted_before_all_of_it_is_sent() {
    let origin = ScriptedOrigin::with_small_buffers();
    let proxy = proxy(&origin, |_| {});
    let mut client = proxy.client();
    client.send(large_head());
    let hop = origin.accept();
    proxy.wait_for_at_least(Metric::BytesToNextHops, 1);
    assert!(proxy.count(Metric::BytesToNextHops) < 900_000);
    drop(hop);
}
