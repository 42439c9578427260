//! TLS toward clients, between curl or openssl and nginx; and HTTP/2, which it brings.

mod acme;
mod attacks;
mod bad_input;
mod browsers;
mod certificates;
mod forward_proxy;
mod http2;
mod next_hops;
mod reloads;
mod transfers;

use crate::support::{Config, Curl, Issued, KeyKind, Nginx, Weir, start_program};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const LOCATIONS: &str = "
    location /cached { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /told {
        add_header Cache-Control no-store;
        return 200 \"$http_host|$http_x_forwarded_proto|$http_forwarded\";
    }
";

/// A gateway with certificates, and nginx behind it.
struct Gateway {
    folder: TempDir,
    nginx: Nginx,
    weir: Weir,
    first: Issued,
}

impl Gateway {
    /// With a certificate for `a.test` and `b.test`.
    fn start() -> Self {
        Self::with(LOCATIONS, |config, _| config)
    }

    fn with(locations: &str, change: impl FnOnce(Config, &TempDir) -> Config) -> Self {
        Self::start_with(locations, &[], change)
    }

    /// With `more` certificates behind that one.
    fn with_certificates(locations: &str, more: &[&Issued]) -> Self {
        Self::start_with(locations, more, |config, _| config)
    }

    fn start_with(
        locations: &str,
        more: &[&Issued],
        change: impl FnOnce(Config, &TempDir) -> Config,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Issued::new(
            folder.path(),
            "first",
            &["a.test", "b.test"],
            KeyKind::Ecdsa,
        );
        let nginx = Nginx::start(locations);
        let config = Config::gateway(&[&nginx.origin()]);
        let config = config.tls(&[&[&first], more].concat());
        let weir = Weir::serve(&change(config, &folder));
        Self {
            folder,
            nginx,
            weir,
            first,
        }
    }

    /// curl that trusts the first certificate, and comes here for every host.
    fn curl(&self) -> Curl {
        curl_to(self.weir.address(), &self.first)
    }

    /// Waits until so many handshakes have ended so: they are counted behind the last byte.
    #[track_caller]
    fn expect_handshakes(&self, end: &str, expected: u64) {
        expect_handshakes(&self.weir, end, expected);
    }
}

/// A server of HTTP/1.1 that Node runs; it ends when dropped.
struct NodeOrigin {
    child: Child,
    url: String,
}

impl NodeOrigin {
    /// One with this script, whose listener is its file descriptor 0.
    fn start(script: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let mut command = Command::new("node");
        let stdin = Stdio::from(OwnedFd::from(listener));
        command.arg("-e").arg(script).stdin(stdin);
        let child = start_program(&mut command, "nodejs");
        Self { child, url }
    }
}

impl Drop for NodeOrigin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// curl that trusts a certificate, and comes to `address` for every host.
fn curl_to(address: SocketAddr, trusted: &Issued) -> Curl {
    let chain = trusted.chain.to_string_lossy();
    Curl::direct().args(["--connect-to", &format!("::{address}"), "--cacert", &chain])
}

#[track_caller]
fn expect_handshakes(weir: &Weir, end: &str, expected: u64) {
    let metric = format!("weir_tls_handshakes_total{{end=\"{end}\"}}");
    let metrics = weir.until(&metric, |metrics| metrics.count(&metric) >= expected);
    assert_eq!(metrics.count(&metric), expected, "{end}");
}

/// What `openssl s_client` says of a connection to `address` on which it sends one request.
fn s_client(address: SocketAddr, arguments: &[&str]) -> String {
    let request = "GET /cached HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let mut child = Command::new("openssl")
        .args(["s_client", "-ign_eof", "-connect", &address.to_string()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl starts");
    let mut stdin = child.stdin.take().expect("piped");
    // it may have been refused by now
    let _ = std::io::Write::write_all(&mut stdin, request.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn response_is_cached_for_clients_of_each_version_of_tls() {
    let gateway = Gateway::start();
    let fetch = |version: [&str; 2], path: &str| {
        let curl = gateway.curl().args(version);
        curl.fetch(&format!("https://a.test{path}"))
            .reply()
            .expect(200)
    };
    let (old, new) = (["--tls-max", "1.2"], ["--tlsv1.3", "--http1.1"]);
    let first = fetch(old, "/cached");
    let second = fetch(new, "/cached");
    assert!(!first.is_hit() && second.is_hit(), "{}", second.head);
    assert_eq!(first.text(), second.text());
    let told = fetch(new, "/told").text();
    let (host, told) = told.split_once('|').expect("three parts");
    let (proto, forwarded) = told.split_once('|').expect("three parts");
    assert_eq!((host, proto), ("a.test", "https"));
    assert!(
        forwarded.ends_with(";host=a.test;proto=https"),
        "{forwarded}"
    );
    gateway.expect_handshakes("full", 3);
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let said = s_client(gateway.weir.address(), &[version, "-servername", "a.test"]);
        assert!(said.contains(&format!("New, {name}")), "{said}");
        assert!(said.contains("200 OK"), "{said}");
    }
    let alpn = s_client(gateway.weir.address(), &["-alpn", "http/1.1,h2"]);
    assert!(alpn.contains("ALPN protocol: h2"), "{alpn}");
    let alpn = s_client(gateway.weir.address(), &["-alpn", "http/1.0"]);
    assert!(alpn.contains("alert no application protocol"), "{alpn}");
    gateway.expect_handshakes("incompatible", 1);
}

#[test]
fn tls_1_2_is_refused_where_1_3_is_the_least_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]);
    let weir = Weir::serve(&config.tls_with(&[&issued], ", version_min = \"1.3\""));
    let said = s_client(weir.address(), &["-tls1_2"]);
    assert!(said.contains("alert protocol version"), "{said}");
    let said = s_client(weir.address(), &["-tls1_3"]);
    assert!(said.contains("New, TLSv1.3"), "{said}");
    expect_handshakes(&weir, "incompatible", 1);
    expect_handshakes(&weir, "full", 1);
}

#[test]
fn http_and_https_of_one_host_are_different_targets() {
    let gateway = Gateway::with(LOCATIONS, |config, _| {
        config.listener("127.0.0.1:0", "gateway")
    });
    let clear = gateway.weir.listeners[1];
    let http = || {
        let curl = Curl::direct().args(["--connect-to", &format!("::{clear}")]);
        curl.fetch("http://a.test/cached").reply().expect(200)
    };
    let https = || {
        gateway
            .curl()
            .fetch("https://a.test/cached")
            .reply()
            .expect(200)
    };
    let (one, other) = (http(), https());
    assert!(!one.is_hit() && !other.is_hit());
    assert_ne!(one.text(), other.text());
    assert_eq!((http().text(), https().text()), (one.text(), other.text()));
    // each is purged by its own URL
    let purged = gateway.weir.ask("POST", "/purge?url=https://a.test/cached");
    assert_eq!(purged.status(), 200, "{}", purged.text());
    assert_eq!(http().text(), one.text());
    assert_ne!(https().text(), other.text());
}
