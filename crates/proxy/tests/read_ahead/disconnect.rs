//! A client that leaves while the next hop is silent: its response is not waited for any longer.

use crate::support::{OriginConnection, RawClient, Running, ScriptedOrigin, span};
use weir_measure::Metric;

/// A response of which ten bytes have come, to a client that has read them.
fn half_a_response(proxy: &Running, origin: &ScriptedOrigin) -> (RawClient, OriginConnection) {
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (hop, _) = origin.answer(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 20\r\n\r\n0123456789",
    );
    client.read_until("0123456789");
    (client, hop)
}

/// A gateway that waits for a next hop as long as one may, and for a half-closed client as said.
fn patient(origin: &ScriptedOrigin, half_closed: &str) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.next_hop_silence = span("1h");
        config.limits.client_silence = span("1h");
        config.fetch.half_closed = span(half_closed);
    })
}

#[test]
fn client_reset_aborts_the_fetch_while_the_next_hop_is_silent() {
    let origin = ScriptedOrigin::new();
    let proxy = patient(&origin, "1h");
    let (client, mut hop) = half_a_response(&proxy, &origin);
    client.into_peer().reset();
    hop.expect_end();
    proxy.wait_for(Metric::ClientAborts, 1);
}

#[test]
fn client_reset_aborts_the_fetch_behind_a_pipelined_request() {
    let origin = ScriptedOrigin::new();
    let proxy = patient(&origin, "1h");
    let (mut client, mut hop) = half_a_response(&proxy, &origin);
    client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    // the proxy has seen that there is something to read
    proxy.wait_for(Metric::RequestsInFlight, 1);
    client.into_peer().reset();
    hop.expect_end();
    proxy.wait_for(Metric::ClientAborts, 1);
}

#[test]
fn fetch_for_a_half_closed_client_is_aborted_at_its_time_limit() {
    for ahead in ["", "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let origin = ScriptedOrigin::new();
        let proxy = patient(&origin, "100ms");
        let (mut client, mut hop) = half_a_response(&proxy, &origin);
        client.send(ahead);
        client.finish();
        hop.expect_end();
        proxy.wait_for(Metric::ClientAborts, 1);
    }
}

#[test]
fn half_closed_client_gets_the_rest_of_its_response() {
    let origin = ScriptedOrigin::new();
    let proxy = patient(&origin, "1h");
    let (mut client, mut hop) = half_a_response(&proxy, &origin);
    client.finish();
    // the end has been received by the time another client is answered
    proxy.wait_for(Metric::ClientAborts, 0);
    hop.send("abcdefghij");
    client.expect("abcdefghij");
    assert_eq!(proxy.count(Metric::ClientAborts), 0);
}

#[test]
fn open_client_is_not_mistaken_for_a_half_closed_one() {
    let origin = ScriptedOrigin::new();
    let proxy = patient(&origin, "0s");
    let (mut client, mut hop) = half_a_response(&proxy, &origin);
    // longer than a look for half-closed clients takes: another one is noticed meanwhile
    let (other, mut other_hop) = half_a_response(&proxy, &origin);
    let mut other = other;
    other.finish();
    other_hop.expect_end();
    hop.send("abcdefghij");
    client.expect("abcdefghij");
    assert_eq!(proxy.count(Metric::ClientAborts), 1);
}
