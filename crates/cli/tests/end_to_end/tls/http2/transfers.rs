//! Requests and responses by curl and Node.

use super::super::Gateway;
use super::frames::{END_STREAM, GOAWAY};
use super::{Clear, LOCATIONS};
use crate::support::{Config, Curl, Issued, KeyKind, Nginx, RawClient, Signal, Weir, content};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

const LENGTH: usize = 20 << 20;

#[test]
fn responses_are_shared_by_clients_of_each_version_of_http() {
    let gateway = Gateway::with(LOCATIONS, |config, folder| {
        let log = folder.path().join("access.log");
        config.set("log.access", &format!("{log:?}"))
    });
    let fetch = |version: &str| {
        let curl = gateway.curl().args([version]);
        curl.fetch("https://a.test/cached").reply().expect(200)
    };
    let (first, second, third) = (fetch("--http2"), fetch("--http1.1"), fetch("--http2"));
    assert!(first.head.starts_with("HTTP/2 200"), "{}", first.head);
    assert!(second.head.starts_with("HTTP/1.1 200"), "{}", second.head);
    assert!(third.head.starts_with("HTTP/2 200"), "{}", third.head);
    assert!(!first.is_hit() && second.is_hit() && third.is_hit());
    assert_eq!(first.text(), second.text());
    assert_eq!(first.text(), third.text());
    // what it came by is said to the next hop, and in the log
    let via = gateway.curl().fetch("https://a.test/via").reply();
    assert!(via.text().starts_with("2.0 "), "{}", via.text());
    let via = gateway.curl().args(["--http1.1"]);
    let via = via.fetch("https://a.test/via").reply();
    assert!(via.text().starts_with("1.1 "), "{}", via.text());
    let metrics = gateway
        .weir
        .until("reported", |metrics| metrics.all_requests() == 5);
    for (version, expected) in [("1", 2), ("2", 3)] {
        let metric = format!("weir_requests_by_version_total{{version=\"{version}\"}}");
        assert_eq!(metrics.count(&metric), expected, "{version}");
    }
    let Gateway {
        folder, mut weir, ..
    } = gateway;
    assert!(weir.stop().success());
    let log = std::fs::read_to_string(folder.path().join("access.log")).expect("a log");
    let said = |version: &str| log.matches(version).count();
    assert_eq!(said("\"version\":\"HTTP/2.0\""), 3, "{log}");
    assert_eq!(said("\"version\":\"HTTP/1.1\""), 2, "{log}");
}

#[test]
fn content_passes_unchanged_both_ways_by_http2() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let large = content(7, LENGTH);
    let file = gateway.nginx.file("large", &large);
    let url = "https://a.test/large";
    for more in [["--limit-rate", "40M"], ["-r", "5-"], ["--http2", "-4"]] {
        let reply = gateway.curl().args(more).fetch(url).reply();
        assert!(reply.head.starts_with("HTTP/2 20"), "{}", reply.head);
        let from = if more[0] == "-r" { 5 } else { 0 };
        assert!(reply.body == large[from..], "{more:?}: {}", reply.head);
    }
    let head = gateway.curl().args(["-I"]).fetch(url).reply().expect(200);
    assert_eq!(head.field("content-length"), "20971520");
    std::fs::create_dir(gateway.nginx.path("put")).expect("a folder");
    for (name, more) in [("sized", "X-A: b"), ("unsized", "Content-Length:")] {
        let curl = gateway
            .curl()
            .args(["-T", &file.to_string_lossy()])
            .field(more);
        curl.fetch(&format!("https://a.test/put/{name}"))
            .reply()
            .expect(201);
        let stored = std::fs::read(gateway.nginx.path(&format!("put/{name}")));
        assert!(stored.expect("a file") == large, "{name}");
    }
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn request_for_another_host_than_the_client_has_called_gets_421() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let other = gateway.curl().field("Host: c.test");
    let reply = other.fetch("https://a.test/cached").reply().expect(421);
    assert!(reply.head.starts_with("HTTP/2 421"), "{}", reply.head);
    // a name that the certificate is for, too
    let other = gateway.curl().field("Host: b.test");
    other.fetch("https://a.test/cached").reply().expect(200);
}

#[test]
fn client_that_knows_may_begin_with_http2_in_clear() {
    let clear = Clear::start();
    let url = clear.weir.url("/cached");
    let first = Clear::curl().fetch(&url).reply().expect(200);
    assert!(first.head.starts_with("HTTP/2 200"), "{}", first.head);
    // whatever letters its method shares with the preface
    let mut client = RawClient::connect(clear.weir.address());
    for piece in ["P", "R", "OPFIND /cached HTTP/1.1\r\nHost: a\r\n\r\n"] {
        client.send(piece);
    }
    client.reply().expect(200);
    let reply = Curl::direct().fetch(&url).reply();
    assert!(reply.head.starts_with("HTTP/1.1 200"), "{}", reply.head);
    assert!(reply.is_hit());
    // where it is not set, no listener in clear speaks it
    let plain = Clear::with(|config| config.of_listener("").listener("127.0.0.1:0", "gateway"));
    let url = format!("http://{}/cached", plain.weir.listeners[1]);
    assert_ne!(Clear::curl().fetch(&url).exit, 0);
}

#[test]
fn stopped_stream_holds_no_other_and_goes_on() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    gateway.nginx.file("large", &content(9, LENGTH));
    let out = Command::new("node")
        .arg("-e")
        .arg(include_str!("stopped_stream.js"))
        .arg(gateway.weir.address().port().to_string())
        .arg(&gateway.first.chain)
        .output()
        .expect("node starts");
    let said = String::from_utf8_lossy(&out.stdout);
    let expected = format!("50 others\n{LENGTH} bytes\n");
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn interim_responses_trailers_and_cookies_pass_around_the_content() {
    for origin in ["http1", "http2"] {
        around(origin);
    }
}

/// The same with an origin that speaks this.
fn around(origin: &str) {
    let mut node = Command::new("node")
        .arg("-e")
        .arg(include_str!("around.js"))
        .arg(origin)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let mut lines = BufReader::new(node.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let ready = line();
    let port = ready
        .strip_prefix("ready ")
        .expect("the port of the origin");
    let config = Config::gateway(&[&format!("http://127.0.0.1:{port}")]);
    let config = config.route_http2(origin == "http2");
    let weir = Weir::serve(&config.of_listener("http2 = true"));
    let mut stdin = node.stdin.take().expect("piped");
    writeln!(stdin, "{}", weir.address().port()).expect("it reads");
    // framing in trailers is dropped
    let expected = "103 </a.css>; rel=preload 200 hello {\"x-sum\":\"5\"}";
    assert_eq!(line(), expected);
    // those of a request reach a next hop that has its connection for itself
    let trailers = match origin {
        "http1" => "{\"x-t\":\"1\"}",
        _ => "{}",
    };
    let expected = format!("{{\"bytes\":300000,\"trailers\":{trailers},\"cookie\":\"a=1; b=2\"}}");
    assert_eq!(line(), expected);
    assert!(node.wait().expect("it ends").success());
}

#[test]
fn tunnel_of_a_forward_proxy_is_a_stream_beside_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "proxy", &["proxy.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("large", &content(9, 10 << 20));
    let config = Config::forward().tls(&[&issued]);
    let port = nginx.address.port();
    let weir = Weir::serve(&config.set("access.connect_ports", &format!("[{port}]")));
    let out = Command::new("node")
        .arg("-e")
        .arg(include_str!("tunnel.js"))
        .arg(weir.address().port().to_string())
        .arg(&issued.chain)
        .arg(nginx.address.to_string())
        .output()
        .expect("node starts");
    let said = String::from_utf8_lossy(&out.stdout);
    let expected = "tunnel 200\nbeside 200 32 bytes\nthrough true\nother 403\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&out.stderr));
    let metrics = weir.until("closed", |metrics| metrics.requests("tunnel") == 2);
    assert_eq!(metrics.count("weir_tunnels_open"), 0);
    assert_eq!(metrics.count("weir_panics_total"), 0);
}

#[test]
fn connection_is_drained_when_the_process_ends() {
    let clear = Clear::start();
    let mut client = clear.frames();
    client.get(1, "/cached");
    let mut has_ended = false;
    while !has_ended {
        let frame = client.next().expect("a response");
        has_ended = frame.stream == 1 && frame.flags & END_STREAM != 0;
    }
    let Clear { weir, nginx } = clear;
    weir.signal(Signal::Terminate);
    assert_eq!(client.until(GOAWAY).error(), 0);
    drop((weir, nginx));
}
