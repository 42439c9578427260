//! As many connections as are allowed, and who waits for one.

use crate::support::{Running, ScriptedOrigin, span};
use weir_measure::Metric;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// For another target: for the same one it would follow.
const GET_OTHER: &str = "GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A gateway with one connection to each next hop.
fn narrow(origin: &ScriptedOrigin, wait: &str) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
        config.limits.next_hop_wait = span(wait);
    })
}

#[test]
fn request_beyond_the_connection_limit_waits_for_a_connection() {
    let origin = ScriptedOrigin::new();
    let proxy = narrow(&origin, "20s");
    let (mut first, mut second) = (proxy.client(), proxy.client());
    first.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    second.send(GET_OTHER);
    proxy.wait_for(Metric::RequestsInFlight, 2);
    origin.expect_untouched();
    second.expect_nothing_more();
    hop.send(OK);
    assert_eq!(first.read_response().text(), "ok");
    // it waited for this connection
    hop.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    assert_eq!(proxy.count(Metric::NextHopsOpen), 1);
}

#[test]
fn waiting_request_gets_the_place_of_a_closed_connection() {
    let origin = ScriptedOrigin::new();
    let proxy = narrow(&origin, "20s");
    let (mut first, mut second) = (proxy.client(), proxy.client());
    first.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    second.send(GET_OTHER);
    proxy.wait_for(Metric::RequestsInFlight, 2);
    drop(hop);
    assert_eq!(first.read_response().status(), 502);
    origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
}

#[test]
fn wait_for_a_connection_beyond_its_limit_is_refused_with_503() {
    let origin = ScriptedOrigin::new();
    let proxy = narrow(&origin, "50ms");
    let (mut first, mut second) = (proxy.client(), proxy.client());
    first.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    let response = second.ask(GET_OTHER);
    assert_eq!(response.status(), 503);
    assert_eq!(response.head.field("retry-after"), Some("1"));
    let status = response.head.field("proxy-status").expect("a reason");
    assert!(
        status.contains("error=connection_limit_reached"),
        "{status}"
    );
    origin.expect_untouched();
    // the client may try again on its connection
    hop.send(OK);
    assert_eq!(first.read_response().text(), "ok");
    second.send(GET_OTHER);
    hop.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
}

#[test]
fn full_next_hop_does_not_evict_idle_connections_of_others() {
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![crate::support::localhost()];
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
        config.limits.next_hop_wait = span("50ms");
    });
    let (quiet, crowded) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let get_at = |origin: &ScriptedOrigin, path: &str| {
        let address = origin.address();
        format!("GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n")
    };
    let get = |origin: &ScriptedOrigin| get_at(origin, "/");
    let (mut one, mut two) = (proxy.client(), proxy.client());
    one.send(get(&quiet));
    let (mut idle, _) = quiet.answer(OK);
    one.read_response();
    two.send(get_at(&crowded, "/busy"));
    let _busy = crowded.accept();
    assert_eq!(one.ask(get(&crowded)).status(), 503);
    assert_eq!(proxy.count(Metric::ConnectionCacheEvictions), 0);
    one.send(get(&quiet));
    idle.answer(OK);
    assert_eq!(one.read_response().text(), "ok");
}

#[test]
fn idle_connection_is_evicted_for_another_next_hop_at_the_total_limit() {
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![crate::support::localhost()];
        config.limits.next_hop_connections_max = 1;
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
        config.limits.idle_next_hop_connections_max = 1;
        config.limits.next_hop_wait = span("20s");
    });
    let mut client = proxy.client();
    let mut before: Option<crate::support::OriginConnection> = None;
    for _ in 0..3 {
        let origin = ScriptedOrigin::new();
        let address = origin.address();
        client.send(format!(
            "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n"
        ));
        let (hop, _) = origin.answer(OK);
        client.read_response();
        if let Some(mut before) = before.replace(hop) {
            before.expect_end();
        }
    }
    assert_eq!(proxy.count(Metric::ConnectionCacheEvictions), 2);
}
