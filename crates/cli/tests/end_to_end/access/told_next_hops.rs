//! Next hops that are told for whom each connection is: nginx and HAProxy that take no other, by
//! both versions of HAProxy's protocol.

use crate::support::{Config, Curl, HaProxy, Issued, KeyKind, Nginx, PATIENCE, RawClient, Weir};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::time::Instant;

const LOCATIONS: &str = "
    location /who {
        add_header Cache-Control no-store;
        return 200 \"$proxy_protocol_addr $proxy_protocol_server_port $connection_requests\";
    }
    location /stale {
        add_header Cache-Control \"max-age=0, stale-while-revalidate=600\";
        return 200 \"[$proxy_protocol_addr]\";
    }
";

/// Addresses of clients.
const CLIENTS: [&str; 2] = ["127.0.0.7", "127.0.0.8"];

fn sending(config: Config, version: &str) -> Config {
    config.of_route(&format!("send_proxy_protocol = \"{version}\""))
}

fn fetch(weir: &Weir, client: &str, path: &str) -> String {
    let curl = Curl::direct().args(["--interface", client]);
    let url = format!("http://{}{path}", weir.address());
    curl.fetch(&url).reply().expect(200).text()
}

#[test]
fn next_hop_is_told_the_client_of_each_connection_and_none_is_used_for_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "own", &["localhost"], KeyKind::Ecdsa);
    for (version, tls) in [("v1", false), ("v2", false), ("v1", true), ("v2", true)] {
        let nginx = Nginx::start_told(tls.then_some(&issued), LOCATIONS);
        let config = match tls {
            false => Config::gateway(&[&nginx.origin()]),
            true => {
                let ca = format!("{{ ca = \"{}\" }}", issued.chain.display());
                Config::gateway(&[&nginx.https("localhost")]).route_tls(&ca)
            }
        };
        let weir = Weir::serve(&sending(config, version));
        let port = weir.address().port();
        for client in CLIENTS.iter().cycle().take(6) {
            let expected = format!("{client} {port} 1");
            let told = fetch(&weir, client, "/who");
            assert_eq!(told, expected, "{version}, tls: {tls}");
        }
        let opened = "weir_next_hop_opens_total{reason=\"one-request\"}";
        assert_eq!(weir.metrics().count(opened), 6);
        let open = "weir_next_hop_connections_open";
        weir.until(open, |metrics| metrics.count(open) == 0);
    }
}

/// HAProxy that answers with the client and the port that it is told, and takes no connection
/// without a header.
fn haproxy() -> HaProxy {
    HaProxy::start(
        "frontend told\n mode http\n bind fd@0 accept-proxy\n \
         http-request return status 200 content-type text/plain \
         lf-string \"%[src] %[dst_port] %[req.ver]\"\n",
    )
}

#[test]
fn haproxy_that_accepts_no_other_connection_is_told_the_client_of_each() {
    // by HTTP/1.1 whatever the route says, as a connection is for one request
    for (version, http2) in [("v1", false), ("v2", false), ("v1", true), ("v2", true)] {
        let next_hop = haproxy();
        let config = Config::gateway(&[&next_hop.origin()]).route_http2(http2);
        let weir = Weir::serve(&sending(config, version));
        let port = weir.address().port();
        for client in CLIENTS.iter().cycle().take(4) {
            let told = fetch(&weir, client, &format!("/{client}"));
            assert_eq!(told, format!("{client} {port} 1.1"), "{version}, {http2}");
        }
        assert_eq!(weir.metrics().count("weir_panics_total"), 0);
    }
}

#[test]
fn haproxy_that_accepts_no_other_connection_answers_none_without_the_setting() {
    let next_hop = haproxy();
    let weir = Weir::serve(&Config::gateway(&[&next_hop.origin()]));
    Curl::direct().fetch(&weir.url("/")).reply().expect(502);
}

#[test]
fn connection_without_a_client_names_none() {
    for version in ["v1", "v2"] {
        let nginx = Nginx::start_told(None, LOCATIONS);
        let config = Config::gateway(&[&nginx.origin()]);
        let weir = Weir::serve(&sending(config, version));
        let [client, other] = CLIENTS;
        assert_eq!(fetch(&weir, client, "/stale"), format!("[{client}]"));
        // the validation that a stale response brings about is of no client
        let until = Instant::now() + PATIENCE;
        while fetch(&weir, other, "/stale") != "[]" {
            assert!(Instant::now() < until, "{version}");
        }
    }
}

#[test]
fn tunnel_of_an_upgrade_begins_with_the_header() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let config = Config::gateway(&[&format!("http://{address}")]);
    let weir = Weir::serve(&sending(config, "v1"));
    let mut client = RawClient::connect(weir.address());
    client
        .send("GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut lines = BufReader::new(&stream);
    let mut told = String::new();
    lines.read_line(&mut told).expect("a line");
    let port = weir.address().port();
    assert!(
        told.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "),
        "{told}"
    );
    assert!(told.ends_with(&format!(" {port}\r\n")), "{told}");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        lines.read_line(&mut head).expect("a line");
    }
    assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    (&stream)
        .write_all(format!("{switch}\r\n").as_bytes())
        .expect("it is sent");
    client.head().expect(101);
    client.send("question");
    let mut question = [0; 8];
    lines.read_exact(&mut question).expect("8 bytes");
    assert_eq!(&question, b"question");
    (&stream).write_all(b"answer").expect("it is sent");
    assert_eq!(client.take(6), b"answer");
}
