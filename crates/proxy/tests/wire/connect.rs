//! CONNECT.

use crate::support::{
    End, OriginConnection, RawClient, Running, ScriptedOrigin, Setup, localhost, pattern, span,
};
use std::net::SocketAddr;
use weir_measure::Metric;

/// A forward proxy that lets CONNECT lead to `target`.
fn to(target: SocketAddr) -> Running {
    Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.access.connect_ports = vec![target.port()];
        config.limits.tunnel_idle = span("20s");
    })
}

fn connect(target: impl std::fmt::Display) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

/// Both ends of an open tunnel.
fn open(proxy: &Running, target: &ScriptedOrigin) -> (RawClient, OriginConnection) {
    let mut client = proxy.client();
    client.send(connect(target.address()));
    let head = client.read_head();
    assert_eq!(head.status(), 200);
    assert!(!head.has("content-length") && !head.has("transfer-encoding"));
    (client, target.accept())
}

#[test]
fn half_close_of_one_direction_leaves_the_other_open() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    let (mut client, mut hop) = open(&proxy, &target);
    client.send("question");
    client.finish();
    assert_eq!(hop.read_to_end(), (b"question".to_vec(), End::Closed));
    hop.send("a late answer");
    drop(hop);
    assert_eq!(
        client.read_to_end(),
        (b"a late answer".to_vec(), End::Closed)
    );

    let (mut client, mut hop) = open(&proxy, &target);
    hop.send("greeting");
    hop.finish();
    assert_eq!(client.read_to_end(), (b"greeting".to_vec(), End::Closed));
    client.send("a late reply");
    client.finish();
    assert_eq!(hop.read_to_end(), (b"a late reply".to_vec(), End::Closed));
    proxy.wait_for(Metric::TunnelsOpen, 0);
    assert_eq!(proxy.count(Metric::TunnelsOpened), 2);
    assert_eq!(proxy.count(Metric::NextHopsOpen), 0);
}

#[test]
fn reset_of_one_side_resets_the_other() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    let (client, mut hop) = open(&proxy, &target);
    client.into_peer().reset();
    assert_eq!(hop.expect_end(), End::Reset);
    let (mut client, hop) = open(&proxy, &target);
    hop.into_peer().reset();
    assert_eq!(client.expect_end(), End::Reset);
}

#[test]
fn bytes_sent_before_the_tunnel_opened_are_relayed_unparsed() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    let early = connect("elsewhere:1") + "\u{16}\u{3}\u{1} hello";
    let mut client = proxy.client();
    client.send(connect(target.address()) + &early);
    let mut hop = target.accept();
    assert_eq!(client.read_head().status(), 200);
    hop.expect(&early);
    client.send("and more");
    hop.expect("and more");
    hop.expect_nothing_more();
}

#[test]
fn large_transfers_in_both_directions_are_intact() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    let (mut client, mut hop) = open(&proxy, &target);
    let bytes = pattern(5_000_000);
    let down = bytes.clone();
    let sender = std::thread::spawn(move || {
        hop.send(&down);
        hop
    });
    assert!(client.read_exactly(bytes.len()) == bytes);
    let mut hop = sender.join().expect("sent");
    let up = bytes.clone();
    let sender = std::thread::spawn(move || {
        client.send(&up);
        client.finish();
        client
    });
    assert!(hop.read_to_end().0 == bytes);
    sender.join().expect("sent");
}

#[test]
fn connect_to_a_denied_port_or_address_is_refused() {
    let target = ScriptedOrigin::new();
    let port = target.address().port();
    let proxy = Running::forward_with(|config| {
        config.access.connect_ports = vec![port, 443];
    });
    let wild = [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ];
    for host in wild {
        let mut client = proxy.client();
        let response = client.ask(connect(format!("{host}:{port}")));
        assert_eq!(response.status(), 403, "{host}");
        client.expect_end();
    }
    for host in [
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0x7f000001",
    ] {
        let mut client = proxy.client();
        let response = client.ask(connect(format!("{host}:{port}")));
        assert!([400, 403].contains(&response.status()), "{host}");
        client.expect_end();
    }
    target.expect_untouched();

    let proxy = to(target.address());
    for port in [25, 22, 80, 3128, port.wrapping_add(1)] {
        let mut client = proxy.client();
        let response = client.ask(connect(format!("127.0.0.1:{port}")));
        assert_eq!(response.status(), 403, "{port}");
        client.expect_end();
    }
    target.expect_untouched();
}

#[test]
fn bytes_after_a_refused_connect_are_not_read_as_a_request() {
    let setup = Setup::forward();
    let closed = ScriptedOrigin::new().address();
    let smuggled = setup.get("/smuggled");
    setup
        .proxy
        .reload(|config| config.access.connect_ports = vec![closed.port()]);
    for (target, status) in [("127.0.0.1:25".to_owned(), 403), (closed.to_string(), 502)] {
        let mut client = setup.proxy.client();
        client.send(connect(target) + &smuggled);
        let response = client.read_response();
        assert_eq!(response.status(), status);
        assert_eq!(response.head.field("connection"), Some("close"));
        client.expect_end();
        setup.origin.expect_untouched();
    }
}

#[test]
fn malformed_connect_is_refused_with_400() {
    let setup = Setup::forward();
    setup
        .proxy
        .reload(|config| config.access.connect_ports = vec![setup.origin.address().port()]);
    let host = &setup.host;
    for request in [
        format!("CONNECT http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("CONNECT / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        "CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(),
        format!("CONNECT u@{host} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("CONNECT {host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello"),
        format!(
            "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        format!("CONNECT {host} HTTP/1.1\r\n\r\n"),
    ] {
        let mut client = setup.proxy.client();
        let response = client.ask(&request);
        assert_eq!(response.status(), 400, "{request:?}");
        client.expect_end();
        setup.origin.expect_untouched();
    }
}

#[test]
fn connect_to_gateway_is_refused_with_405() {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    let response = client.ask(connect(setup.origin.address()));
    assert_eq!(response.status(), 405);
    client.expect_end();
    setup.origin.expect_untouched();
}

#[test]
fn silent_tunnel_is_closed_at_the_idle_limit() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    proxy.reload(|config| config.limits.tunnel_idle = span("50ms"));
    let (mut client, mut hop) = open(&proxy, &target);
    client.read_to_end();
    hop.read_to_end();
    proxy.wait_for(Metric::TunnelsOpen, 0);
    proxy.wait_for(Metric::NextHopsOpen, 0);
}

#[test]
fn tunnel_counts_toward_the_connection_limit() {
    let target = ScriptedOrigin::new();
    let proxy = to(target.address());
    proxy.reload(|config| {
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
    });
    let (client, mut hop) = open(&proxy, &target);
    let mut second = proxy.client();
    assert_eq!(second.ask(connect(target.address())).status(), 503);
    target.expect_untouched();
    drop(client);
    hop.expect_end();
    drop(hop);
    proxy.wait_for(Metric::NextHopsOpen, 0);
    open(&proxy, &target);
}

#[test]
fn connect_is_judged_by_its_canonical_target() {
    let proxy = Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        // where there is no listener
        config.access.connect_ports = vec![1];
    });
    for (spelled, status) in [
        ("127.0.0.1:1", 502),
        ("127.0.0.1:01", 502),
        ("127.0.0.1:00001", 502),
        ("127.0.0.1:02", 403),
        // another notation of an address is not another destination
        ("[0:0::ffff:10.0.0.1]:01", 403),
    ] {
        let mut client = proxy.client();
        client.send(connect(spelled));
        assert_eq!(client.read_head().status(), status, "{spelled}");
    }
}
