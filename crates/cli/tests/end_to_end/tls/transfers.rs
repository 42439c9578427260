//! Content under TLS, both ways, and clients that do not read it.

use super::Gateway;
use crate::support::content;
use std::process::Command;

const LENGTH: usize = 20 << 20;

#[test]
fn large_content_passes_unchanged_both_ways() {
    let gateway = Gateway::with("location /put/ { dav_methods PUT; }", |config, _| config);
    let large = content(7, LENGTH);
    let file = gateway.nginx.file("large", &large);
    let url = "https://a.test/large";
    for more in [["--limit-rate", "40M"], ["--tls-max", "1.2"], ["-r", "5-"]] {
        let reply = gateway.curl().args(more).fetch(url).reply();
        let from = if more[0] == "-r" { 5 } else { 0 };
        assert!(reply.body == large[from..], "{more:?}: {}", reply.head);
    }
    std::fs::create_dir(gateway.nginx.path("put")).expect("a folder");
    for (name, more) in [
        ("sized", "X-A: b"),
        ("chunked", "Transfer-Encoding: chunked"),
    ] {
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

/// Content that a next hop may have sent for a client that stands still: the read-ahead, and what
/// buffers of the kernel take.
const AHEAD_BYTES_MAX: u64 = 4 << 20;

#[test]
fn client_that_stops_reading_holds_its_fetch_and_may_leave() {
    let gateway = Gateway::with("", |config, _| config.set("fetch.abort", "\"stop\""));
    gateway.nginx.file("large", &content(8, LENGTH));
    let path = gateway.folder.path().join("fifo");
    let made = Command::new("mkfifo")
        .arg(&path)
        .status()
        .expect("mkfifo starts");
    assert!(made.success());
    // nothing reads what curl writes to the pipe
    let reader = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("a pipe");
    let curl = gateway.curl().args(["-o", &path.to_string_lossy()]);
    let running = curl.start("https://a.test/large");
    let received = "weir_next_hop_received_body_bytes_total";
    let begun = gateway
        .weir
        .until("begun", |metrics| metrics.count(received) > 100_000);
    let mut last = begun.count(received);
    // as long as it takes for what is received to stand still
    let mut still = 0;
    while still < 20 {
        let now = gateway.weir.metrics().count(received);
        still = if now == last { still + 1 } else { 0 };
        last = now;
    }
    assert!(
        last < AHEAD_BYTES_MAX,
        "{last} bytes ahead of a client that stands still"
    );
    drop(running);
    let closed = "weir_client_connections_open";
    gateway
        .weir
        .until("closed", |metrics| metrics.count(closed) == 0);
    drop(reader);
}
