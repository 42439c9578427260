//! Servers by port, by address and by prefix.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use weir_bench::origin::{self, OriginListen, OriginPlan};
use weir_workload::Target;

use crate::support::{Curl, TestOrigin, Wire, hits, ports, wpb};

/// Every server answers with its own content, for this URL of its number.
fn check_servers(served: &TestOrigin, servers: u32, url: impl Fn(u32, &str) -> String) {
    for server in 0..servers {
        let target = Target { server, number: 5 };
        let fetched = Curl::direct().fetch(&[&url(server, &served.path(target))]);
        assert_eq!(fetched.status(), 200, "server {server}");
        assert!(
            fetched.content() == served.content(target),
            "server {server}"
        );
    }
}

#[test]
fn each_port_serves_its_own_server() {
    let served = TestOrigin::on(wpb(&[]), ports(), 2);
    let servers = served.origin.servers();
    assert_eq!(servers.len(), 3);
    check_servers(&served, 3, |server, path| {
        let at = servers[usize::try_from(server).expect("small")];
        format!("http://{at}{path}")
    });
}

#[test]
fn given_ports_are_consecutive_from_the_first() {
    // three in a row that were free a moment ago
    let first = (0..).find_map(|_| {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let listen = OriginListen::Ports {
            address: Ipv4Addr::LOCALHOST.into(),
            first: Some(first),
        };
        let free = (0..3).all(|more| {
            first
                .checked_add(more)
                .is_some_and(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        });
        free.then_some((first, listen))
    });
    let (first, listen) = first.expect("three ports");
    let served = TestOrigin::on(wpb(&[]), listen, 1);
    let found: Vec<u16> = served
        .origin
        .servers()
        .iter()
        .map(SocketAddr::port)
        .collect();
    assert_eq!(found, [first, first + 1, first + 2]);
}

#[test]
fn each_address_serves_its_own_server_and_others_are_closed() {
    let first = Ipv4Addr::new(127, 0, 128, 254);
    let served = TestOrigin::on(wpb(&[]), OriginListen::Addresses { first, port: 0 }, 1);
    let servers = served.origin.servers();
    let port = servers[0].port();
    let expected = ["127.0.128.254", "127.0.128.255", "127.0.129.0"];
    let expected = expected.map(|address| format!("{address}:{port}"));
    assert_eq!(
        servers
            .iter()
            .map(SocketAddr::to_string)
            .collect::<Vec<_>>(),
        expected
    );
    check_servers(&served, 3, |server, path| {
        format!(
            "http://{}{path}",
            expected[usize::try_from(server).expect("small")]
        )
    });
    for stray in ["127.0.128.253", "127.0.129.1", "127.0.0.1"] {
        let mut wire = Wire::to(SocketAddr::new(stray.parse().expect("an address"), port));
        assert_eq!(wire.rest().expect("closed at once"), b"");
    }
    assert_eq!(served.counts().stray_connections, 3);
}

#[test]
fn each_path_prefix_serves_its_own_server_and_others_get_404() {
    let gateway = OriginListen::Gateway((Ipv4Addr::LOCALHOST, 0).into());
    let served = TestOrigin::on(wpb(&[]), gateway, 1);
    let at = served.address();
    assert_eq!(served.origin.servers().len(), 1);
    check_servers(&served, 3, |server, path| {
        format!("http://{at}/s{server}{path}")
    });
    for path in ["/s3/dummy5.html", "/dummy5.html", "/s/dummy5.html"] {
        let fetched = Curl::direct().fetch(&[&format!("http://{at}{path}")]);
        assert_eq!(fetched.status(), 404, "{path}");
    }
}

#[test]
fn origin_runs_a_thousand_servers() {
    let served = TestOrigin::on(wpb(&["workload.servers=1000"]), ports(), 1);
    let servers = served.origin.servers();
    assert_eq!(servers.len(), 1000);
    for server in [0, 1, 499, 999_u32] {
        let target = Target { server, number: 1 };
        let at = servers[usize::try_from(server).expect("small")];
        let reply =
            Wire::to(at).ask(&[&format!("GET {} HTTP/1.1", served.path(target)), "Host: a"]);
        assert!(reply.content == served.content(target), "server {server}");
    }
}

#[test]
fn connection_beyond_the_limit_waits_until_one_closes() {
    let served = TestOrigin::with_connections(hits(&[]), 2);
    let line = format!("GET {} HTTP/1.1", served.path(crate::support::target(1)));
    let ask = |wire: &mut Wire| wire.ask(&[&line, "Host: a"]).status;
    let (mut first, mut second) = (served.wire(), served.wire());
    assert_eq!((ask(&mut first), ask(&mut second)), (200, 200));
    let mut third = served.wire();
    while served.counts().waiting_connections == 0 {
        std::thread::yield_now();
    }
    assert_eq!(served.counts().connections_open, 2);
    drop(first);
    assert_eq!((ask(&mut third), ask(&mut second)), (200, 200));
    assert_eq!(served.counts().waiting_connections, 1);
}

#[test]
fn origin_that_needs_more_descriptors_than_allowed_does_not_start() {
    let plan = OriginPlan {
        scenario: Arc::new(hits(&[])),
        seed: 1,
        listen: ports(),
        threads: 1,
        shares: 1,
        connections_max: u32::MAX,
    };
    let failure = origin::start(&plan).expect_err("beyond any limit");
    assert!(
        failure.to_string().contains("file descriptors are needed"),
        "{failure}"
    );
}

#[test]
fn stopped_origin_closes_its_connections_and_listening_sockets() {
    let served = TestOrigin::new(hits(&[]));
    let (at, mut wire) = (served.address(), served.wire());
    let counts = served.origin.stop();
    assert_eq!(counts.connections_open, 0);
    assert_eq!(wire.rest().unwrap_or_default(), b"");
    assert!(std::net::TcpStream::connect(at).is_err());
}
