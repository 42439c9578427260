//! Connections opened before a request needs them.

use crate::support::{OriginConnection, Running, ScriptedOrigin, Setup};
use weir_measure::{HopOutcome, Metric, OpenReason, Supply};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// For the `number`th target: for the same one it would follow.
fn get(number: u64) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn opened_ahead(proxy: &Running) -> u64 {
    proxy.count(Metric::NextHopOpens(OpenReason::Ahead))
}

fn ready(origin: &ScriptedOrigin, count: u32) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.connections_ahead = count;
    })
}

#[test]
fn no_connection_is_preopened_by_default() {
    Setup::each(|setup| {
        let (_, _hop) = setup.fetch("/", OK);
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        setup.proxy.clock.advance_ms(30_000);
        // a sweep later
        setup.proxy.wait_for(Metric::ConnectionCacheExpiries, 1);
        setup.origin.expect_untouched();
        assert_eq!(opened_ahead(&setup.proxy), 0);
    });
}

#[test]
fn burst_of_requests_uses_preopened_connections() {
    let origin = ScriptedOrigin::new();
    let proxy = ready(&origin, 2);
    let mut clients = [proxy.client(), proxy.client(), proxy.client()];
    clients[0].send(GET);
    let mut hops = Vec::from_iter((0..3).map(|_| origin.accept()));
    proxy.wait_for(Metric::ConnectionCacheIdle, 2);
    assert_eq!(opened_ahead(&proxy), 2);
    hops[0].answer(OK);
    clients[0].read_response();
    proxy.wait_for(Metric::ConnectionCacheIdle, 3);
    // the burst: each finds one; for one target two would follow the third
    for (number, client) in (0..).zip(&mut clients) {
        client.send(get(number));
    }
    // two more take the place of those in use, and may be taken in place of them
    hops.extend((0..2).map(|_| origin.accept()));
    let asked = Vec::from_iter((0..3).map(|_| OriginConnection::asked(&mut hops)));
    // no answer before the last question, or one connection could serve two
    for mut hop in asked {
        hop.answer(OK);
    }
    for client in &mut clients {
        assert_eq!(client.read_response().text(), "ok");
    }
    assert_eq!(proxy.count(Metric::NextHopRequests(Supply::New)), 1);
    assert_eq!(proxy.count(Metric::NextHopRequests(Supply::Ahead)), 2);
    assert_eq!(proxy.count(Metric::NextHopRequests(Supply::Idle)), 1);
}

#[test]
fn used_preopened_connections_are_replaced_up_to_the_configured_number() {
    let origin = ScriptedOrigin::new();
    let proxy = ready(&origin, 1);
    let mut clients = Vec::new();
    let mut hops = Vec::new();
    for busy in 1..=3 {
        let mut client = proxy.client();
        client.send(get(busy));
        if busy == 1 {
            hops.push(origin.accept());
        }
        // the one to replace what it took
        hops.push(origin.accept());
        let taken = hops.len() - 2;
        hops[taken].read_head();
        proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        assert_eq!(opened_ahead(&proxy), busy);
        clients.push(client);
    }
    for (client, hop) in clients.iter_mut().zip(&mut hops) {
        hop.send(OK);
        client.read_response();
    }
    proxy.wait_for(Metric::ConnectionCacheIdle, 4);
    // three more than wanted are ready: nothing is opened for the next ones
    for (number, client) in (10..).zip(&mut clients) {
        client.send(get(number));
    }
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    origin.expect_untouched();
    assert_eq!(proxy.count(Metric::NextHopsOpen), 4);
}

#[test]
fn closed_preopened_connection_is_replaced_within_30_s_of_a_request() {
    let origin = ScriptedOrigin::new();
    let proxy = ready(&origin, 1);
    let mut client = proxy.client();
    client.send(GET);
    let (mut hop, ahead) = (origin.accept(), origin.accept());
    // the one that carried the request is not kept: the other is the one that is ready
    hop.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    client.read_response();
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    proxy.clock.advance_ms(29_999);
    drop(ahead);
    let ahead = origin.accept();
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    assert_eq!(opened_ahead(&proxy), 2);
    // now the last request was 30 s ago
    proxy.clock.advance_ms(1);
    drop(ahead);
    proxy.wait_for(Metric::NextHopsOpen, 0);
    origin.expect_untouched();
}

#[test]
fn request_is_retried_when_a_preopened_connection_closes() {
    let origin = ScriptedOrigin::new();
    let proxy = ready(&origin, 1);
    let mut client = proxy.client();
    client.send(GET);
    let (mut hop, mut ahead) = (origin.accept(), origin.accept());
    hop.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    client.read_response();
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    // closed just when the first request is sent on it
    client.send(GET);
    ahead.read_head();
    let _ready = origin.accept();
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    drop(ahead);
    let (_repetition, _) = origin.answer(OK);
    assert_eq!(client.read_response().text(), "ok");
    assert_eq!(proxy.count(Metric::Retries), 1);
}

#[test]
fn preopened_connections_stay_within_the_connection_limit() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.connections_ahead = 4;
        config.limits.connections_per_next_hop_max = 4;
        config.limits.idle_per_next_hop_max = 4;
    });
    let mut client = proxy.client();
    client.send(GET);
    let mut hops = Vec::from_iter((0..4).map(|_| origin.accept()));
    proxy.wait_for(Metric::ConnectionCacheIdle, 3);
    origin.expect_untouched();
    hops[0].answer(OK);
    client.read_response();
    assert_eq!(proxy.count(Metric::NextHopsOpenMost), 4);
}

#[test]
fn refused_preopening_is_retried_only_after_5_seconds() {
    let origin = ScriptedOrigin::new();
    let proxy = ready(&origin, 1);
    let refused = Metric::NextHopConnections(HopOutcome::Refused);
    let mut client = proxy.client();
    client.send(GET);
    let (mut hop, ahead) = (origin.accept(), origin.accept());
    // it listens no more, and closes one
    drop(origin);
    drop(ahead);
    hop.answer(OK);
    client.read_response();
    // the one there is is busy, the other is found closed
    client.send(GET);
    hop.read_head();
    proxy.wait_for(refused, 1);
    hop.send(OK);
    client.read_response();
    for _ in 0..5 {
        client.send(GET);
        hop.answer(OK);
        client.read_response();
    }
    proxy.clock.advance_ms(4999);
    client.send(GET);
    hop.read_head();
    assert_eq!(proxy.count(refused), 1);
    proxy.clock.advance_ms(1);
    proxy.wait_for(refused, 2);
    hop.send(OK);
    client.read_response();
}
