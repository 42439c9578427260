//! Who used which connection, and the report of it.

use crate::support::{OriginConnection, PATIENCE, Running, ScriptedOrigin, span};
use std::net::Ipv4Addr;
use std::time::Instant;
use weir_measure::{Metric, OpenReason, Supply, WaitEnd, WaitReason};
use weir_proxy::config::{AdminAddress, Config};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// For the `number`th target: for the same one it would follow.
fn get(number: usize) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn reuse_by_another_client_is_counted_and_by_the_opener_is_not() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let ip = |last| Ipv4Addr::new(127, 0, 0, last);
    let mut hop: Option<OriginConnection> = None;
    for (last, others, clients) in [
        (1, 0, 1),
        (1, 0, 1),
        (2, 1, 2),
        (1, 1, 2),
        (3, 2, 3),
        (2, 3, 3),
    ] {
        let mut client = proxy.client_at(ip(last));
        client.send(GET);
        match &mut hop {
            Some(hop) => drop(hop.answer(OK)),
            None => hop = Some(origin.answer(OK).0),
        }
        assert_eq!(client.read_response().text(), "ok");
        proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        assert_eq!(proxy.count(Metric::ReusesByOtherClient), others);
        assert_eq!(proxy.count(Metric::NextHopClients), clients);
    }
    assert_eq!(proxy.count(Metric::ReusesByOtherWorker), 0);
}

#[test]
fn reuse_by_another_worker_is_counted() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let origin = origin.answering(|_, _| OK.into());
    let proxy = Running::gateway_with(address, |config| config.workers = 2);
    // the kernel spreads connections over the workers: that all come to one has a chance of 2^-23
    let mut clients: Vec<_> = (0..24).map(|_| proxy.client()).collect();
    let mut moves = Vec::new();
    for _ in 0..2 {
        let before = proxy.count(Metric::ReusesByOtherWorker);
        for client in &mut clients {
            assert_eq!(client.ask(GET).text(), "ok");
            proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        }
        moves.push(proxy.count(Metric::ReusesByOtherWorker) - before);
    }
    assert_eq!(origin.connections(), 1);
    // in the same order the same clients find it with the other worker, but for the first of a
    // round
    assert!(moves[0] >= 1 && moves[0] <= 23, "{moves:?}");
    assert!(moves[1].abs_diff(moves[0]) <= 1, "{moves:?}");
}

#[test]
fn peak_of_open_connections_counts_concurrent_ones_and_never_decreases() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.idle_per_next_hop_max = 0;
    });
    let most = || {
        let count = |metric| proxy.count(metric);
        (
            count(Metric::ClientsOpenMost),
            count(Metric::NextHopsOpenMost),
        )
    };
    for _ in 0..2 {
        let mut clients = [proxy.client(), proxy.client(), proxy.client()];
        let mut hops = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(get(number));
            let mut hop = origin.accept();
            hop.read_head();
            hops.push(hop);
        }
        assert_eq!(most(), (3, 3));
        for (client, hop) in clients.iter_mut().zip(&mut hops) {
            hop.send(OK);
            client.read_response();
        }
        drop(clients);
        // without a client of its own that looks
        let began = Instant::now();
        while proxy.count(Metric::ClientsOpen) + proxy.count(Metric::NextHopsOpen) > 0 {
            assert!(began.elapsed() < PATIENCE, "some stay open");
            std::thread::yield_now();
        }
    }
    assert_eq!(most(), (3, 3));
}

/// One with the admin interface.
fn with_admin(config: &mut Config) {
    config.admin.address = AdminAddress::At(([127, 0, 0, 1], 0).into());
}

#[test]
fn connection_report_matches_requests_seen_by_clients_and_origins() {
    let origins = [ScriptedOrigin::new(), ScriptedOrigin::new()];
    let addresses = origins.each_ref().map(ScriptedOrigin::address);
    let origins = origins.map(|origin| {
        origin.answering(|head, _| match head.start_line() {
            line if line.contains("/kept") => {
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok".into()
            }
            line if line.contains("/closed") => {
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".into()
            }
            _ => OK.into(),
        })
    });
    let proxy = Running::forward_with(|config| {
        with_admin(config);
        config.access.allow_destinations = vec![crate::support::localhost()];
    });
    let mut asked = 0;
    for last in [1, 1, 2, 3] {
        let mut client = proxy.client_at(Ipv4Addr::new(127, 0, 0, last));
        for (address, path) in [
            (addresses[0], "/kept"),
            (addresses[0], "/1"),
            (addresses[0], "/2"),
            (addresses[1], "/closed"),
            (addresses[0], "/kept"),
        ] {
            let response = client.ask(format!(
                "GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"
            ));
            assert_eq!(response.text(), "ok");
            asked += 1;
        }
    }
    let report: serde_json::Value =
        serde_json::from_str(&proxy.admin("/connections?format=json")).expect("JSON");
    let (clients, hops) = (&report["clients"], &report["next_hops"]);
    assert_eq!(clients["requests"], asked);
    assert_eq!(clients["requests_on_new_connection"], 4);
    assert_eq!(clients["percent_on_new_connection"], 20.0);
    assert_eq!(clients["requests_per_connection"], 5.0);
    assert_eq!(clients["next_hops_per_connection"], 2.0);
    let seen: usize = origins.iter().map(|origin| origin.seen().len()).sum();
    let opened: usize = origins
        .iter()
        .map(crate::support::Answering::connections)
        .sum();
    assert_eq!((seen, opened), (1 + 2 * 4 + 4, 1 + 4));
    assert_eq!(hops["requests"], seen);
    assert_eq!(hops["requests_on_new_connection"], opened);
    assert_eq!(hops["percent_on_new_connection"], 25.0);
    assert_eq!(hops["percent_of_forwarded_on_new_connection"], 38.5);
    assert_eq!(hops["requests_per_connection"], 2.6);
    // three on the one to the first origin, one on each to the second
    assert_eq!(hops["clients_per_connection"], 1.4);
    assert_eq!(hops["open_max"], 2);
    assert_eq!(hops["reuses_by_other_client"], 4);
    let table = proxy.admin("/connections");
    for line in [
        format!("{:<40}{:>12}{:>12}", "requests", asked, seen),
        format!(
            "{:<40}{:>12}{:>12}",
            "  that opened a new connection", 4, opened
        ),
        format!(
            "{:<40}{:>12}{:>12}",
            "  the same, % of clients' requests", "20.0", "25.0"
        ),
    ] {
        assert!(table.contains(&line), "no `{line}` in\n{table}");
    }
}

#[test]
fn connection_is_closed_when_it_reaches_its_maximum_age() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.next_hop_age = span("1h");
    });
    let mut client = proxy.client();
    client.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    proxy.clock.advance_ms(3_599_999);
    hop.send(OK);
    client.read_response();
    proxy.wait_for(Metric::ConnectionCacheIdle, 1);
    client.send(GET);
    hop.read_head();
    proxy.clock.advance_ms(1);
    hop.send(OK);
    assert_eq!(client.read_response().text(), "ok");
    hop.expect_end();
    proxy.wait_for(Metric::ConnectionCacheExpiries, 1);
}

#[test]
fn tunnel_is_counted_as_opened_connection_but_not_as_request() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let proxy = Running::forward_with(|config| {
        with_admin(config);
        config.access.allow_destinations = vec![crate::support::localhost()];
        config.access.connect_ports = vec![address.port()];
    });
    let mut client = proxy.client();
    client.send(format!(
        "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n"
    ));
    let hop = origin.accept();
    assert_eq!(client.read_head().status(), 200);
    assert_eq!(proxy.count(Metric::NextHopOpens(OpenReason::Tunnel)), 1);
    assert_eq!(proxy.count(Metric::NextHopRequests(Supply::New)), 0);
    drop((client, hop));
    proxy.wait_for(Metric::TunnelsOpen, 0);
    proxy.wait_for(Metric::NextHopsOpen, 0);
}

#[test]
fn wait_at_the_connection_limit_is_counted_by_how_it_ends() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 0;
        config.limits.next_hop_wait = span("20s");
    });
    let begun = || proxy.count(Metric::ConnectionWaits(WaitReason::PerHopMax));
    let ended = |end| proxy.count(Metric::ConnectionWaitEnds(end));
    let (mut first, mut second) = (proxy.client(), proxy.client());
    first.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    second.send(get(2));
    proxy.wait_for(Metric::ConnectionWaits(WaitReason::PerHopMax), 1);
    hop.send(OK);
    // handed over, although none would be kept
    hop.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    first.read_response();
    assert_eq!((begun(), ended(WaitEnd::Returned)), (1, 1));
    assert_eq!(proxy.count(Metric::NextHopRequests(Supply::Waited)), 1);
    hop.expect_end();
    proxy.wait_for(Metric::NextHopsOpen, 0);
    // one that gets a place
    first.send(GET);
    let mut hop = origin.accept();
    hop.read_head();
    second.send(get(2));
    proxy.wait_for(Metric::ConnectionWaits(WaitReason::PerHopMax), 2);
    hop.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    let (mut hop, _) = origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    hop.expect_end();
    assert_eq!((begun(), ended(WaitEnd::Place)), (2, 1));
    first.read_response();
    // and one that gets nothing
    proxy.reload(|config| config.limits.next_hop_wait = span("30ms"));
    first.send(GET);
    let _busy = origin.accept();
    assert_eq!(second.ask(GET).status(), 503);
    assert_eq!((begun(), ended(WaitEnd::Refused)), (3, 1));
}
