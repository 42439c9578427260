//! The share of a client in the connections to a next hop.

use crate::support::{Head, OriginConnection, RawClient, Running, ScriptedOrigin, localhost, span};
use std::net::Ipv4Addr;
use weir_measure::{Metric, WaitReason};

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

const WAITS: Metric = Metric::ConnectionWaits(WaitReason::ClientShare);

/// A gateway with 16 connections to each next hop.
fn gateway(origin: &ScriptedOrigin, wait: &str) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.connections_per_next_hop_max = 16;
        config.limits.idle_per_next_hop_max = 16;
        config.limits.next_hop_wait = span(wait);
        config.forwarded.trusted_proxies = vec!["127.0.0.9/32".parse().expect("a network")];
    })
}

/// A GET that no other follows, of a client that a proxy in front names if it is trusted.
fn get(number: usize, named: &str) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {named}\r\n\r\n")
}

/// The connections on which as many requests of `clients` arrive.
fn accept(origin: &ScriptedOrigin, count: usize) -> Vec<(OriginConnection, Head)> {
    let hops = (0..count).map(|_| {
        let mut hop = origin.accept();
        let head = hop.read_head();
        (hop, head)
    });
    hops.collect()
}

/// So many clients at one address, each with a request.
fn asking(proxy: &Running, at: Ipv4Addr, count: usize, named: &str) -> Vec<RawClient> {
    let clients = (0..count).map(|number| {
        let mut client = proxy.client_at(at);
        client.send(get(1000 * usize::from(at.octets()[3]) + number, named));
        client
    });
    clients.collect()
}

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const TRUSTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

#[test]
fn client_with_half_of_the_connections_leaves_the_others_their_own() {
    let origin = ScriptedOrigin::new();
    let proxy = gateway(&origin, "20s");
    let of_one = asking(&proxy, ONE, 12, "198.51.100.1");
    let mut hops = accept(&origin, 8);
    proxy.wait_for(WAITS, 4);
    origin.expect_untouched();
    // what the client says of itself is not believed
    let mut further = proxy.client_at(ONE);
    further.send(get(1, "198.51.100.2"));
    proxy.wait_for(WAITS, 5);
    let mut other = asking(&proxy, OTHER, 1, "198.51.100.1");
    let mut hop = origin.accept();
    hop.answer(OK);
    assert_eq!(other[0].read_response().text(), "ok");
    // one that was held back goes on, on the connection that another has used
    let (mut first, _) = hops.remove(0);
    first.send(OK);
    let next = first.read_head();
    assert!(next.start_line().starts_with("GET /2"), "{next:?}");
    assert_eq!(proxy.count(Metric::NextHopsOpen), 9);
    drop((of_one, further, hops, first));
    proxy.wait_for(Metric::RequestsInFlight, 0);
}

#[test]
fn request_that_is_held_back_for_too_long_gets_503() {
    let origin = ScriptedOrigin::new();
    let proxy = gateway(&origin, "50ms");
    let _busy = asking(&proxy, ONE, 8, "");
    let _hops = accept(&origin, 8);
    let mut further = proxy.client_at(ONE);
    let response = further.ask(get(1, ""));
    assert_eq!(response.status(), 503);
    let why = response.head.field("proxy-status").expect("a reason");
    assert!(why.contains("error=connection_limit_reached"), "{why}");
    assert!(why.contains("left for others"), "{why}");
    let mut other = asking(&proxy, OTHER, 1, "");
    origin.answer(OK);
    assert_eq!(other[0].read_response().status(), 200);
}

#[test]
fn clients_behind_a_trusted_proxy_have_shares_of_their_own() {
    let origin = ScriptedOrigin::new();
    let proxy = gateway(&origin, "20s");
    let _of_one = asking(&proxy, TRUSTED, 9, "203.0.113.1, 198.51.100.1");
    let _hops = accept(&origin, 8);
    proxy.wait_for(WAITS, 1);
    let mut other = proxy.client_at(TRUSTED);
    other.send(get(1, "203.0.113.1, 198.51.100.2"));
    origin.answer(OK);
    assert_eq!(other.read_response().text(), "ok");
}

#[test]
fn tunnels_of_a_client_count_for_its_share() {
    let origin = ScriptedOrigin::new();
    let target = origin.address();
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.access.connect_ports = vec![target.port()];
        config.limits.connections_per_next_hop_max = 16;
        config.limits.idle_per_next_hop_max = 16;
    });
    let connect = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let open = |at: Ipv4Addr| {
        let mut client = proxy.client_at(at);
        client.send(&connect);
        let status = client.read_head().status();
        let hop = (status == 200).then(|| origin.accept());
        (client, status, hop)
    };
    let mut tunnels: Vec<_> = (0..8).map(|_| open(ONE)).collect();
    assert!(tunnels.iter().all(|(_, status, _)| *status == 200));
    assert_eq!(open(ONE).1, 503);
    tunnels.push(open(OTHER));
    assert_eq!(tunnels[8].1, 200);
    tunnels.truncate(7);
    proxy.wait_for(Metric::TunnelsOpen, 7);
    assert_eq!(open(ONE).1, 200);
}

#[test]
fn client_with_half_of_all_connections_leaves_the_rest_to_others_whatever_the_next_hop() {
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.limits.next_hop_connections_max = 16;
        config.limits.connections_per_next_hop_max = 16;
        config.limits.idle_per_next_hop_max = 16;
        config.limits.idle_next_hop_connections_max = 16;
        config.limits.next_hop_wait = span("20s");
    });
    let ask = |at: Ipv4Addr, origin: &ScriptedOrigin| {
        let address = origin.address();
        let mut client = proxy.client_at(at);
        client.send(format!(
            "GET http://{address}/{at} HTTP/1.1\r\nHost: {address}\r\n\r\n"
        ));
        client
    };
    let origins: Vec<_> = (0..8).map(|_| ScriptedOrigin::new()).collect();
    let mut held: Vec<_> = origins
        .iter()
        .map(|origin| {
            let client = ask(ONE, origin);
            let mut hop = origin.accept();
            hop.read_head();
            (client, hop)
        })
        .collect();
    let further = ScriptedOrigin::new();
    let mut of_one = ask(ONE, &further);
    proxy.wait_for(WAITS, 1);
    further.expect_untouched();
    let mut other = ask(OTHER, &further);
    let (mut hop, _) = further.answer(OK);
    assert_eq!(other.read_response().text(), "ok");
    // an idle connection counts for no client, and is there for the one that was held back
    let (mut first, mut first_hop) = held.remove(0);
    first_hop.send(OK);
    assert_eq!(first.read_response().text(), "ok");
    hop.read_head();
    hop.send(OK);
    assert_eq!(of_one.read_response().text(), "ok");
    assert_eq!(proxy.count(WAITS), 1);
}
