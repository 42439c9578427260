//! Requests and responses through nginx.

use super::{Origin, expect_ends, fetch, gateway_to, opened, server};
use crate::support::{Config, Curl, Nginx, RawClient, Weir, content};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;

const LENGTH: usize = 20 << 20;

#[test]
fn response_of_a_next_hop_by_http2_is_stored_and_its_connection_carries_the_next_requests() {
    for origin in [Origin::by_tls(), Origin::in_clear()] {
        assert_eq!(origin.fetch("/version").expect(200).text(), "HTTP/2.0|");
        let (miss, hit) = (origin.fetch("/cached"), origin.fetch("/cached"));
        assert!(!miss.is_hit() && hit.is_hit(), "{}", hit.head);
        assert!(hit.head.starts_with("HTTP/1.1 200"), "{}", hit.head);
        assert_eq!(miss.text(), hit.text());
        let first = origin.connection();
        assert_eq!(origin.connection(), first);
        let large = content(9, LENGTH);
        origin.nginx.file("large", &large);
        for more in [["-H", "A: b"], ["-r", "5-"]] {
            let url = origin.weir.url("/large");
            let reply = Curl::direct().args(more).fetch(&url).reply();
            let from = if more[0] == "-r" { 5 } else { 0 };
            assert!(reply.body == large[from..], "{}", reply.head);
        }
        let head = Curl::direct().args(["-I"]);
        let head = head.fetch(&origin.weir.url("/large")).reply().expect(200);
        assert_eq!(head.field("content-length"), LENGTH.to_string());
        assert_eq!(origin.connection(), first);
        assert_eq!(opened(&origin.weir), 1);
        assert_eq!(origin.weir.metrics().count("weir_panics_total"), 0);
    }
}

#[test]
fn next_hop_is_told_the_host_and_scheme_by_pseudo_header_fields() {
    let origin = Origin::by_tls();
    let curl = Curl::direct().field("Host: www.example.com");
    let told = curl.fetch(&origin.weir.url("/told")).reply().expect(200);
    let text = told.text();
    assert!(text.starts_with("https|www.example.com|1.1 "), "{text}");
    let via = told.field("via");
    assert!(via.starts_with("2.0 "), "{via}");
}

#[test]
fn content_of_a_request_reaches_a_next_hop_by_http2_unchanged() {
    for origin in [Origin::by_tls(), Origin::in_clear()] {
        std::fs::create_dir(origin.nginx.path("put")).expect("a folder");
        let large = content(3, LENGTH);
        let file = origin.weir.folder().join("large");
        std::fs::write(&file, &large).expect("a file");
        for (name, more) in [
            ("sized", "X-A: b"),
            ("chunked", "Transfer-Encoding: chunked"),
            ("expected", "Expect: 100-continue"),
        ] {
            let curl = Curl::direct().args(["-T", &file.to_string_lossy()]);
            let url = origin.weir.url(&format!("/put/{name}"));
            curl.field(more).fetch(&url).reply().expect(201);
            let stored = std::fs::read(origin.nginx.path(&format!("put/{name}")));
            assert!(stored.expect("a file") == large, "{name}");
        }
        assert_eq!(opened(&origin.weir), 1);
    }
}

#[test]
fn requests_at_once_share_a_connection() {
    let origin = Origin::by_tls();
    origin.connection();
    let large = content(5, 1 << 20);
    let names: Vec<String> = (0..20).map(|number| format!("/at-once-{number}")).collect();
    for name in &names {
        origin.nginx.file(&name[1..], &large);
    }
    let running: Vec<_> = names
        .iter()
        .map(|name| Curl::direct().start(&origin.weir.url(name)))
        .collect();
    for curl in running {
        assert!(curl.finish().reply().expect(200).body == large);
    }
    // more than the windows of one connection may hold go on another one
    assert!(opened(&origin.weir) <= 5, "{}", opened(&origin.weir));
    let shared = "weir_next_hop_requests_total{connection=\"shared\"}";
    assert!(origin.weir.metrics().count(shared) >= 16);
}

#[test]
fn request_is_counted_once_whichever_connection_carries_it() {
    for origin in [Origin::by_tls(), Origin::in_clear()] {
        // what the next hop speaks is not known: each of these opens a connection, and one carries
        // them all
        let clients = (0..8).map(|number| {
            let mut client = RawClient::connect(origin.weir.address());
            client.send(format!(
                "GET /version?{number} HTTP/1.1\r\nHost: a.test\r\n\r\n"
            ));
            client
        });
        for mut client in clients.collect::<Vec<_>>() {
            client.reply().expect(200);
        }
        let metrics = origin.weir.until("reported", |it| it.all_requests() >= 8);
        assert_eq!(metrics.all("weir_next_hop_requests_total"), 8);
        assert_eq!(metrics.all("weir_connection_cache_requests_total"), 8);
        assert_eq!(metrics.all_requests(), 8);
        assert_eq!(metrics.all("weir_responses_total"), 8);
    }
}

#[test]
fn client_that_leaves_ends_its_stream_and_not_the_connection() {
    for origin in [Origin::by_tls(), Origin::in_clear()] {
        let first = origin.connection();
        origin.nginx.file("left", &content(7, LENGTH));
        let mut client = RawClient::connect(origin.weir.address());
        client.send("GET /left HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let _ = client.take(260_000);
        drop(client);
        let stopped = "weir_fetches_abandoned_total{fate=\"stop-not-worth-it\"}";
        let metrics = origin.weir.until(stopped, |it| it.count(stopped) == 1);
        let fetched = metrics.count("weir_next_hop_received_body_bytes_total");
        assert!(fetched < 1 << 20, "{fetched}");
        assert_eq!(origin.connection(), first);
        assert_eq!(opened(&origin.weir), 1);
    }
}

#[test]
fn stopped_reader_costs_its_window_and_holds_back_no_other_stream() {
    let origin = Origin::by_tls();
    let first = origin.connection();
    let large = content(2, LENGTH);
    for name in ["stopped", "read"] {
        origin.nginx.file(name, &large);
    }
    let mut stopped = TcpStream::connect(origin.weir.address()).expect("it accepts");
    let begin = b"GET /stopped HTTP/1.1\r\nHost: a.test\r\n\r\n";
    std::io::Write::write_all(&mut stopped, begin).expect("sent");
    let mut one = [0];
    stopped.read_exact(&mut one).expect("a byte");
    let before = origin.weir.metrics();
    let received = "weir_next_hop_received_body_bytes_total";
    assert!(fetch(&origin.weir, "/read").expect(200).body == large);
    // what the kernel of the stopped client takes is not read ahead
    let most = 16 << 20;
    let grown = origin.weir.metrics().count(received) - before.count(received);
    assert!(grown < (LENGTH + most) as u64, "{grown}");
    assert_eq!(origin.connection(), first);
    assert_eq!(opened(&origin.weir), 1);
    // and it goes on when it is read again
    let mut rest = vec![0; LENGTH];
    stopped.read_exact(&mut rest).expect("the rest");
}

#[test]
fn http11_is_spoken_where_http2_is_off_or_cannot_be() {
    let origin = Origin::by_tls_with(|config| config.route_http2(false));
    assert_eq!(origin.fetch("/version").expect(200).text(), "HTTP/1.1|");
    let origin = Origin::by_tls();
    assert_eq!(origin.fetch("/version").expect(200).text(), "HTTP/2.0|");
    // a switch of protocols, and a target that is of no URI
    let upgrade = Curl::direct().field("Upgrade: websocket");
    let upgrade = upgrade.field("Connection: Upgrade");
    let url = origin.weir.url("/version");
    let reply = upgrade.fetch(&url).reply().expect(200);
    assert_eq!(reply.text(), "HTTP/1.1|");
    let mut client = RawClient::connect(origin.weir.address());
    client.send("GET /version?a<b HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.reply().expect(200).text(), "HTTP/1.1|");
    // a link counts by connection
    let link = r#"[{ name = "uplink", rate = "1GiB/s" }]"#;
    let origin = Origin::by_tls_with(|config| config.set("link", link));
    assert_eq!(origin.fetch("/version").expect(200).text(), "HTTP/1.1|");
}

#[test]
fn next_hop_that_does_not_speak_http2_in_clear_is_no_next_hop() {
    let nginx = Nginx::start("location / { return 200 a; }");
    let config = Config::gateway(&[&nginx.origin()]).route_http2(true);
    let weir = Weir::serve(&config.set("workers", "1"));
    expect_foreign(&weir);
    // less than a frame: an alert of a port with TLS
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        client.read_exact(&mut [0; 24]).expect("the preface");
        client
            .write_all(&[21, 3, 3, 0, 2, 2, 70])
            .expect("an alert");
        client.shutdown(Shutdown::Write).expect("it is open");
        // what is read no more would reset the connection
        let _ = client.read_to_end(&mut Vec::new());
    });
    expect_foreign(&weir);
    drop(weir);
    next_hop.join().expect("it is asked once");
}

/// The client is told that the next hop does not speak HTTP/2.
#[track_caller]
fn expect_foreign(weir: &Weir) {
    let reply = fetch(weir, "/").expect(502);
    let status = reply.field("proxy-status");
    assert!(status.contains(";error=http_protocol_error"), "{status}");
    assert!(status.contains("it does not speak HTTP/2"), "{status}");
    expect_ends(weir, "foreign", 1);
}

#[test]
fn idle_connection_is_closed_in_time() {
    let origin = Origin::by_tls_with(|config| config.set("limits.next_hop_idle", "\"300ms\""));
    let first = origin.connection();
    expect_ends(&origin.weir, "idle", 1);
    assert_ne!(origin.connection(), first);
}

#[test]
fn check_refuses_http2_in_clear_behind_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = r#"[{ name = "uplink", rate = "1MiB/s" }]"#;
    let config = Config::gateway(&["http://a.test"]).route_http2(true);
    let config = config.set("link", link);
    let (exit, said) = super::super::super::bad_input::check(folder.path(), &config);
    assert_eq!(exit, 2, "{said}");
    assert!(said.contains("is behind a link"), "{said}");
}
