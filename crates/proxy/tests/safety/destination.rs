//! Where a forward proxy goes: judged by the address it connects to, each time (R71).

use crate::support::{NameServer, Running, ScriptedOrigin, localhost};
use std::net::Ipv4Addr;
use weir_measure::Metric;
use weir_proxy::config::{Cidr, Config, DnsServer};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Uses `names`, and believes an answer for as short as may be.
fn ask(config: &mut Config, names: &NameServer) {
    config.dns.servers = vec![DnsServer(names.address())];
    config.dns.ttl_min = crate::support::span("0s");
}

fn get(origin: &ScriptedOrigin, host: &str) -> String {
    let port = origin.address().port();
    format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

#[test]
fn private_or_odd_numeric_literal_address_is_refused() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::forward_with(|_| {});
    let denied = [
        "127.0.0.1",
        "127.1.2.3",
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[fc00::1]",
        "[ff02::1]",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
    ];
    for host in denied {
        let mut client = proxy.client();
        let response = client.ask(get(&origin, host));
        assert_eq!(response.status(), 403, "{host}");
        let status = response.head.field("proxy-status").expect("a reason");
        assert!(
            status.contains("error=destination_ip_prohibited"),
            "{host} {status}"
        );
    }
    for host in [
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0x7f000001",
        "017700000001",
        "127.0.0.0x1",
    ] {
        let mut client = proxy.client();
        assert_eq!(client.ask(get(&origin, host)).status(), 400, "{host}");
    }
    origin.expect_untouched();
}

#[test]
fn name_resolving_to_a_private_address_is_refused_with_403() {
    let origin = ScriptedOrigin::new();
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| ask(config, &names));
    for host in [
        "www.example.com",
        "www.example.com.",
        "127.0.0.1.nip.example",
    ] {
        let mut client = proxy.client();
        let response = client.ask(get(&origin, host));
        assert_eq!(response.status(), 403, "{host}");
        let status = response.head.field("proxy-status").expect("a reason");
        assert!(
            status.contains("error=destination_ip_prohibited"),
            "{status}"
        );
    }
    // nor by a tunnel
    let port = origin.address().port();
    proxy.reload(|config| config.access.connect_ports = vec![port]);
    let mut client = proxy.client();
    let response = client.ask(format!(
        "CONNECT www.example.com:{port} HTTP/1.1\r\nHost: a\r\n\r\n"
    ));
    assert_eq!(response.status(), 403);
    origin.expect_untouched();
    assert!(names.asked() > 0);
}

#[test]
fn name_rebound_to_a_private_address_is_refused_with_403() {
    let origin = ScriptedOrigin::new();
    let names = NameServer::new(Ipv4Addr::new(127, 0, 0, 2));
    let outside: Cidr = "127.0.0.2/32".parse().expect("a network");
    let proxy = Running::forward_with(|config| {
        ask(config, &names);
        // stands for a public address
        config.access.allow_destinations = vec![outside];
    });
    let mut client = proxy.client();
    // there is no listener: it was tried
    assert_eq!(client.ask(get(&origin, "a.example")).status(), 502);
    names.rebind(Ipv4Addr::LOCALHOST);
    assert_eq!(client.ask(get(&origin, "a.example")).status(), 403);
    origin.expect_untouched();
}

#[test]
fn allowed_private_destination_is_reached() {
    let origin = ScriptedOrigin::new();
    let names = NameServer::new(Ipv4Addr::LOCALHOST);
    let proxy = Running::forward_with(|config| {
        ask(config, &names);
        config.access.allow_destinations = vec![localhost()];
    });
    let mut client = proxy.client();
    client.send(get(&origin, "www.example.com"));
    let (_hop, head) = origin.answer(OK);
    assert_eq!(
        head.field("host"),
        Some(&*format!("www.example.com:{}", origin.address().port()))
    );
    assert_eq!(client.read_response().text(), "ok");
}

#[test]
fn pooled_connection_to_a_destination_no_longer_allowed_is_not_used() {
    for host in ["www.example.com", "127.0.0.1"] {
        let origin = ScriptedOrigin::new();
        let names = NameServer::new(Ipv4Addr::LOCALHOST);
        let proxy = Running::forward_with(|config| {
            ask(config, &names);
            config.access.allow_destinations = vec![localhost()];
        });
        let mut client = proxy.client();
        client.send(get(&origin, host));
        let (mut hop, _) = origin.answer(OK);
        client.read_response();
        proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        proxy.reload(|config| config.access.allow_destinations.clear());
        assert_eq!(client.ask(get(&origin, host)).status(), 403, "{host}");
        hop.expect_no_bytes();
        origin.expect_untouched();
    }
}

#[test]
fn denied_destination_overrides_an_allowed_one() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.access.deny_destinations = vec!["127.0.0.1/32".parse().expect("a network")];
    });
    let mut client = proxy.client();
    assert_eq!(client.ask(get(&origin, "127.0.0.1")).status(), 403);
    origin.expect_untouched();
}

#[test]
fn gateway_connects_to_its_route_whatever_the_target_uri() {
    let (origin, other) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let proxy = Running::gateway(&origin);
    let mut client = proxy.client();
    let elsewhere = other.address();
    client.send(format!(
        "GET http://{elsewhere}/x HTTP/1.1\r\nHost: {elsewhere}\r\n\r\n"
    ));
    let (_hop, head) = origin.answer(OK);
    assert_eq!(head.start_line(), "GET /x HTTP/1.1");
    assert_eq!(client.read_response().text(), "ok");
    other.expect_untouched();
}

#[test]
fn client_outside_the_allowed_networks_is_refused_with_403() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.access.clients = vec!["10.0.0.0/8".parse().expect("a network")];
    });
    let mut client = proxy.client();
    let response = client.ask(get(&origin, "127.0.0.1"));
    assert_eq!(response.status(), 403);
    client.expect_end();
    origin.expect_untouched();
}
