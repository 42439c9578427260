//! Clients that do not go on with their handshakes, and those that speak no TLS.

use super::{Gateway, LOCATIONS};
use crate::support::{Config, Curl, Metrics, RawClient, Weir};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The begin of a record with a hello, whose rest does not come.
const BEGIN: [u8; 6] = [22, 3, 1, 2, 0, 1];

#[test]
fn slow_handshake_is_ended_within_its_time() {
    let gateway = Gateway::with(LOCATIONS, |config, _| {
        config.set("limits.tls_handshake", "\"300ms\"")
    });
    let mut client = RawClient::connect(gateway.weir.address());
    client.send(BEGIN);
    let ended = client.try_reply().expect_err("no response");
    let kind = ended.kind();
    assert!(
        kind != std::io::ErrorKind::WouldBlock,
        "it is held open: {ended}"
    );
    gateway.expect_handshakes("timeout", 1);
    gateway
        .curl()
        .fetch("https://a.test/cached")
        .reply()
        .expect(200);
}

#[test]
fn renegotiation_is_refused_and_no_second_handshake_is_made() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let address = gateway.weir.address().to_string();
    let mut openssl = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-legacy_renegotiation"])
        .args(["-servername", "a.test", "-connect", &address])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl");
    gateway.expect_handshakes("full", 1);
    let mut ask = openssl.stdin.take().expect("a pipe");
    // a line of its own that begins so asks for it
    ask.write_all(b"R\n").expect("it reads");
    let ended = openssl.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("no renegotiation"), "{said}");
    gateway.expect_handshakes("full", 1);
}

#[test]
fn flood_of_half_handshakes_is_bounded_and_others_are_served() {
    const CLIENTS: usize = 600;
    const MOST: u64 = 50;
    let gateway = Gateway::with(LOCATIONS, |config, _| {
        let config = config.set("limits.tls_handshakes_max", &MOST.to_string());
        config.set("limits.tls_handshake", "\"5min\"")
    });
    gateway
        .curl()
        .fetch("https://a.test/cached")
        .reply()
        .expect(200);
    let before = resident_bytes(gateway.weir.id());
    let clients: Vec<RawClient> = (0..CLIENTS)
        .map(|_| {
            let mut client = RawClient::connect(gateway.weir.address());
            client.send(BEGIN);
            client
        })
        .collect();
    // of two workers
    let displaced = CLIENTS as u64 - 2 * MOST;
    let metric = "weir_tls_handshakes_total{end=\"displaced\"}";
    let metrics = gateway
        .weir
        .until("displaced", |it| it.count(metric) >= displaced);
    assert!(metrics.count("weir_client_connections_open") <= 2 * MOST);
    let after = resident_bytes(gateway.weir.id());
    assert!(
        after < before + (8 << 20),
        "{before} bytes before, {after} bytes"
    );
    // one that goes on with its handshake displaces the oldest
    let reply = gateway
        .curl()
        .fetch("https://a.test/cached")
        .reply()
        .expect(200);
    assert!(reply.is_hit());
    drop(clients);
}

#[test]
fn client_that_floods_with_handshakes_displaces_its_own_alone() {
    const FLOOD: usize = 300;
    const SHARE: u64 = 20;
    let gateway = Gateway::with(LOCATIONS, |config, _| {
        let config = config.set("limits.tls_handshakes_max", "60");
        let config = config.set("limits.tls_handshakes_per_client_max", &SHARE.to_string());
        config.set("limits.tls_handshake", "\"5min\"")
    });
    let address = gateway.weir.address();
    // on bad links: in the middle of their handshakes while the flood goes on
    let mut slow: Vec<RawClient> = (0..10)
        .map(|_| {
            let mut client = RawClient::connect(address);
            client.send(BEGIN);
            client
        })
        .collect();
    let open = "weir_client_connections_open";
    gateway
        .weir
        .until("slow clients", |it| it.count(open) >= 10);
    let flood: Vec<RawClient> = (0..FLOOD)
        .map(|_| {
            let mut client = RawClient::connect_from([127, 0, 0, 9], address);
            client.send(BEGIN);
            client
        })
        .collect();
    // of two workers
    let displaced = FLOOD as u64 - 2 * SHARE;
    let metric = "weir_tls_handshakes_total{end=\"displaced\"}";
    let is_over = |it: &Metrics| it.count(metric) >= displaced && it.count(open) <= 2 * SHARE + 10;
    let metrics = gateway.weir.until("displaced", is_over);
    assert_eq!(metrics.count(metric), displaced);
    // what they go on with is no hello, and each is told so
    for client in &mut slow {
        client.send([0; 512]);
        client.try_reply().expect_err("an alert");
    }
    gateway.expect_handshakes("failed", 10);
    drop(flood);
}

/// The memory that a process has.
pub(super) fn resident_bytes(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a number") * 1024
}

#[test]
fn tls_at_a_port_in_clear_is_told_so_with_400_and_to_the_operator() {
    let mut weir = Weir::serve(&Config::forward());
    let mut client = RawClient::connect(weir.address());
    client.send([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    let reply = client.reply().expect(400);
    let text = reply.text();
    assert!(text.contains("takes HTTP in clear and no TLS"), "{text}");
    let line = weir.wait_for("begins TLS");
    let address = weir.address().to_string();
    assert!(line.contains(&address) && line.contains("`tls`"), "{line}");
}

#[test]
fn http2_at_a_port_of_http1_is_told_so_with_505_and_to_the_operator() {
    let mut weir = Weir::serve(&Config::forward());
    let mut client = RawClient::connect(weir.address());
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let reply = client.reply().expect(505);
    let text = reply.text();
    assert!(text.contains("takes HTTP/1.1 and no HTTP/2"), "{text}");
    let line = weir.wait_for("begins HTTP/2");
    let address = weir.address().to_string();
    let names_setting = line.contains("`http2 = true`");
    assert!(line.contains(&address) && names_setting, "{line}");
}

#[test]
fn http_in_clear_at_a_port_with_tls_is_told_so_with_400() {
    let mut gateway = Gateway::start();
    let url = gateway.weir.url("/cached");
    let reply = Curl::direct().fetch(&url).reply().expect(400);
    assert!(
        reply.text().contains("this port speaks TLS"),
        "{}",
        reply.text()
    );
    gateway.expect_handshakes("http", 1);
    let line = gateway.weir.wait_for("speaks HTTP in clear");
    let address = gateway.weir.address().to_string();
    assert!(
        line.contains(&address) && line.contains("https://"),
        "{line}"
    );
    // and neither is TLS that breaks the rules
    let mut client = RawClient::connect(gateway.weir.address());
    client.send([22, 3, 1, 0, 4, 9, 9, 9, 9]);
    client.try_reply().expect_err("an alert");
    gateway.expect_handshakes("failed", 1);
    gateway
        .curl()
        .fetch("https://a.test/cached")
        .reply()
        .expect(200);
}
