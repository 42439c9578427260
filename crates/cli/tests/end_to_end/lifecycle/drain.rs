//! SIGTERM: what is under way finishes, nothing new begins, and there is a limit.

use crate::support::{Config, Curl, Nginx, PATIENCE, RawClient, Signal, Weir, content};
use std::net::SocketAddr;
use std::time::Instant;

/// More than kernel buffers hold on the way.
const LARGE: usize = 24 << 20;

fn wait_until_refused(address: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    while RawClient::try_connect(address).is_ok() {
        assert!(Instant::now() < until, "{address} still accepts");
    }
}

fn parts(config: &Config) -> (Nginx, Weir, String, Vec<u8>) {
    let nginx = Nginx::start("");
    let expected = content(9, LARGE);
    nginx.file("large", &expected);
    let url = nginx.url("/large");
    (nginx, Weir::serve(config), url, expected)
}

/// A client in the middle of a download.
fn begin(weir: &Weir, url: &str) -> RawClient {
    let mut client = RawClient::connect(weir.address());
    client.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.head().expect(200);
    client
}

#[test]
fn drain_finishes_the_download_and_accepts_no_new_client() {
    let (_nginx, mut weir, url, expected) = parts(&Config::forward());
    let mut client = begin(&weir, &url);
    let mut idle = RawClient::connect(weir.address());
    idle.get(&url.replace("large", "connection")).expect(200);
    let mut unused = RawClient::connect(weir.address());
    weir.until("accepted", |metrics| {
        metrics.count("weir_client_connections_open") == 3
    });
    weir.signal(Signal::Terminate);
    weir.wait_for("stopping");
    wait_until_refused(weir.address());
    assert!(idle.is_closed() && unused.is_closed());
    assert_eq!(weir.ask("GET", "/healthz").expect(503).text(), "draining\n");
    assert!(client.take(LARGE) == expected);
    assert!(client.is_closed());
    assert_eq!(weir.wait_for_end().code(), Some(0), "{}", weir.said());
    assert!(!weir.said().contains("was cut"), "{}", weir.said());
}

#[test]
fn rate_limited_curl_download_finishes_during_drain() {
    let (_nginx, mut weir, url, expected) = parts(&Config::forward());
    let curl = Curl::through(weir.address()).args(["--limit-rate", "24M"]);
    let running = curl.start(&url);
    weir.until("under way", |metrics| {
        metrics.count("weir_requests_in_flight") == 1
    });
    weir.signal(Signal::Terminate);
    weir.wait_for("stopping");
    assert!(running.finish().reply().expect(200).body == expected);
    assert_eq!(weir.wait_for_end().code(), Some(0), "{}", weir.said());
}

#[test]
fn drain_limit_ends_a_transfer_whose_client_stops_reading() {
    let config = Config::forward().set("limits.drain", "\"300ms\"");
    let (_nginx, mut weir, url, expected) = parts(&config);
    let mut client = begin(&weir, &url);
    assert!(client.take(1 << 16) == expected[..1 << 16]);
    assert_eq!(weir.stop().code(), Some(0), "{}", weir.said());
    assert!(
        weir.said().contains("the drain limit passed"),
        "{}",
        weir.said()
    );
}

/// By HTTP/1.1 and by HTTP/2, from the next hop and from the store.
#[test]
fn request_that_the_drain_limit_cuts_has_a_line_in_the_log() {
    let nginx = Nginx::start("location /stored/ { add_header Cache-Control max-age=60; }");
    nginx.file("large", &content(9, LARGE));
    std::fs::create_dir(nginx.path("stored")).expect("a folder");
    nginx.file("stored/large", &content(9, LARGE));
    let config = Config::gateway(&[&nginx.origin()])
        .of_listener("http2 = true")
        .set("log.access", "\"access.log\"")
        .set("log.format", "\"json\"")
        .set("limits.drain", "\"300ms\"");
    let mut weir = Weir::serve(&config);
    let stored = weir.url("/stored/large");
    weir.get(&stored).expect(200);
    let slow = |version: &str, url: &str| {
        Curl::direct()
            .args([version, "--limit-rate", "1k"])
            .start(url)
    };
    let versions = ["--http1.1", "--http2-prior-knowledge"];
    let clients: Vec<_> = versions
        .iter()
        .flat_map(|version| [slow(version, &weir.url("/large")), slow(version, &stored)])
        .collect();
    weir.until("under way", |metrics| {
        metrics.count("weir_requests_in_flight") == clients.len() as u64
    });
    assert_eq!(weir.stop().code(), Some(0), "{}", weir.said());
    let log = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    let cut: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"error\":\"drained\""))
        .collect();
    assert_eq!(cut.len(), clients.len(), "{log}");
    drop(clients);
}

#[test]
fn drain_limit_closes_an_open_tunnel() {
    let nginx = Nginx::start("");
    let port = nginx.address.port();
    let config = Config::forward()
        .set("access.connect_ports", &format!("[{port}]"))
        .set("limits.drain", "\"300ms\"");
    let mut weir = Weir::serve(&config);
    let mut client = RawClient::connect(weir.address());
    client.send(format!(
        "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n",
        nginx.address
    ));
    assert_eq!(client.head().status(), 200);
    assert_eq!(weir.stop().code(), Some(0), "{}", weir.said());
    assert!(client.is_closed());
}

#[test]
fn drain_at_clients_max_closes_idle_clients_and_serves_the_queued_one() {
    let nginx = Nginx::start("");
    // no room for another client: the listeners wait for one to leave
    let config = Config::forward()
        .set("workers", "1")
        .set("limits.clients_max", "2");
    let mut weir = Weir::serve(&config);
    let mut clients: Vec<RawClient> = (0..2).map(|_| RawClient::connect(weir.address())).collect();
    for client in &mut clients {
        client.get(&nginx.url("/connection")).expect(200);
    }
    // it is connected as far as the kernel is concerned, and has asked
    let mut waiting = RawClient::connect(weir.address());
    let url = nginx.url("/connection");
    waiting.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(weir.stop().code(), Some(0), "{}", weir.said());
    assert!(
        !weir.said().contains("was cut"),
        "idle clients were waited for"
    );
    assert_eq!(waiting.reply().expect(200).field("connection"), "close");
    for client in &mut clients {
        assert!(client.is_closed());
    }
}

#[test]
fn idle_proxy_exits_without_waiting_for_the_drain_limit() {
    let config = Config::forward().set("limits.drain", "\"1h\"");
    let mut weir = Weir::serve(&config);
    assert_eq!(weir.stop().code(), Some(0), "{}", weir.said());
}

#[test]
fn clients_in_the_accept_queue_are_served_before_exit() {
    let nginx = Nginx::start("");
    let mut weir = Weir::serve(&Config::forward());
    let url = nginx.url("/connection");
    // while the process stands still the kernel goes on accepting for it
    weir.signal(Signal::Stop);
    let mut clients: Vec<RawClient> = Vec::new();
    for _ in 0..20 {
        let mut client = RawClient::connect(weir.address());
        client.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
        clients.push(client);
    }
    weir.signal(Signal::Terminate);
    weir.signal(Signal::Continue);
    for (number, client) in clients.iter_mut().enumerate() {
        match client.try_reply() {
            Ok(reply) => drop(reply.expect(200)),
            Err(error) => {
                weir.wait_for_end();
                panic!("client {number}: {error}\n{}", weir.said());
            }
        }
        assert!(client.is_closed());
    }
    assert_eq!(weir.wait_for_end().code(), Some(0), "{}", weir.said());
}

#[test]
fn second_terminate_signal_ends_the_drain() {
    let (_nginx, mut weir, url, _content) = parts(&Config::forward().set("limits.drain", "\"1h\""));
    let client = begin(&weir, &url);
    weir.signal(Signal::Terminate);
    weir.wait_for("stopping");
    weir.signal(Signal::Terminate);
    assert_eq!(weir.wait_for_end().code(), Some(0), "{}", weir.said());
    assert!(weir.said().contains("was cut"), "{}", weir.said());
    drop(client);
}
