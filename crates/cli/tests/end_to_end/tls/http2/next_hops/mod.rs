//! HTTP/2 toward next hops: nginx, over TLS and in clear, and servers that send their own frames.

mod hostile;
mod of_others;
mod places;
mod refused;
mod transfers;

use super::frames::{DATA, END_HEADERS, END_STREAM, Frame, Frames, HEADERS, block};
use crate::support::{Config, Curl, Issued, KeyKind, Nginx, Reply, Weir};
use std::net::TcpListener;
use tempfile::TempDir;

const LOCATIONS: &str = "
    location /cached { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /version { add_header Cache-Control no-store; return 200 \"$server_protocol|$http_te\"; }
    location /told { add_header Cache-Control no-store; return 200 \"$scheme|$http_host|$http_via\"; }
    location /put/ { dav_methods PUT; }
    location /large/ { add_header Cache-Control no-store; }
";

/// nginx that speaks HTTP/2, behind a gateway with one worker.
struct Origin {
    nginx: Nginx,
    weir: Weir,
    _folder: TempDir,
}

impl Origin {
    /// By TLS, where the two choose HTTP/2.
    fn by_tls() -> Self {
        Self::by_tls_with(|config| config)
    }

    fn by_tls_with(change: impl FnOnce(Config) -> Config) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let issued = Issued::new(folder.path(), "a", &["localhost"], KeyKind::Ecdsa);
        let nginx = Nginx::start_tls_http2(&issued, LOCATIONS);
        let ca = format!("{{ ca = \"{}\" }}", issued.chain.display());
        let config = Config::gateway(&[&nginx.https("localhost")]).route_tls(&ca);
        Self {
            weir: Weir::serve(&change(config.set("workers", "1"))),
            nginx,
            _folder: folder,
        }
    }

    /// In clear, by prior knowledge.
    fn in_clear() -> Self {
        let nginx = Nginx::start_http2(LOCATIONS);
        let config = Config::gateway(&[&nginx.origin()]).route_http2(true);
        Self {
            weir: Weir::serve(&config.set("workers", "1")),
            nginx,
            _folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn fetch(&self, path: &str) -> Reply {
        fetch(&self.weir, path)
    }

    /// The number that nginx has for its connection.
    fn connection(&self) -> String {
        let text = self.fetch("/connection").expect(200).text();
        let (number, _) = text.split_once(' ').expect("two numbers");
        number.to_owned()
    }
}

fn fetch(weir: &Weir, path: &str) -> Reply {
    Curl::direct().fetch(&weir.url(path)).reply()
}

/// Connections that were opened to next hops.
fn opened(weir: &Weir) -> u64 {
    let opened = "weir_next_hop_connections_total{outcome=\"opened\"}";
    weir.metrics().count(opened)
}

/// Waits until so many connections have ended so.
#[track_caller]
fn expect_ends(weir: &Weir, end: &str, expected: u64) {
    let metric = format!("weir_next_hop_http2_connections_total{{end=\"{end}\"}}");
    let metrics = weir.until(&metric, |it| it.count(&metric) >= expected);
    assert_eq!(metrics.count(&metric), expected, "{end}");
}

/// A gateway to a server that a test is, by HTTP/2 in clear.
fn gateway_to(listener: &TcpListener) -> Weir {
    gateway_with(listener, |config| config)
}

fn gateway_with(listener: &TcpListener, change: impl FnOnce(Config) -> Config) -> Weir {
    let address = listener.local_addr().expect("it is bound");
    let config = Config::gateway(&[&format!("http://{address}")]).route_http2(true);
    Weir::serve(&change(config.set("workers", "1")))
}

fn server() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

/// The next request of a client.
#[track_caller]
fn request(client: &mut Frames) -> Frame {
    let head = client.until(HEADERS);
    assert_eq!(head.kind, HEADERS, "{head:?}");
    head
}

/// Sends a whole response.
fn respond(client: &mut Frames, stream: u32, content: &[u8]) {
    let head = block(&[(":status", "200"), ("cache-control", "no-store")]);
    client.send(HEADERS, END_HEADERS, stream, &head);
    client.send(DATA, END_STREAM, stream, content);
}
