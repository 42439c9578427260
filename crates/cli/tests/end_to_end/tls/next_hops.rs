//! TLS toward next hops: nginx, whose certificate is right or wrong.

use crate::support::{Config, Curl, Issued, KeyKind, Nginx, Reply, Weir, content};
use std::path::Path;
use tempfile::TempDir;

const LOCATIONS: &str = "
    access_log requests.log;
    location /cached { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /session {
        add_header Cache-Control no-store;
        keepalive_timeout 0;
        return 200 \"$ssl_server_name|$ssl_protocol|$ssl_session_reused\";
    }
";

/// nginx with a certificate, behind a gateway that trusts a certificate.
struct Origin {
    folder: TempDir,
    nginx: Nginx,
}

impl Origin {
    fn start(issue: impl FnOnce(&Path) -> Issued, locations: &str) -> (Self, Issued) {
        let folder = tempfile::tempdir().expect("a folder");
        let issued = issue(folder.path());
        let locations = format!("{LOCATIONS}{locations}");
        let nginx = Nginx::start_tls(&issued, &locations);
        (Self { folder, nginx }, issued)
    }

    /// With a certificate for `localhost` and 127.0.0.1.
    fn right(locations: &str) -> (Self, Issued) {
        let hosts = ["localhost", "127.0.0.1"];
        let issue = |folder: &Path| Issued::new(folder, "right", &hosts, KeyKind::Ecdsa);
        Self::start(issue, locations)
    }

    /// A gateway to it by `host` that trusts the certificate `ca`.
    fn trusting(&self, host: &str, ca: &Issued) -> Config {
        let ca = format!("{{ ca = \"{}\" }}", ca.chain.display());
        Config::gateway(&[&self.nginx.https(host)]).route_tls(&ca)
    }

    /// Requests that it has received, whatever they were.
    fn requests(&self) -> usize {
        let log = std::fs::read_to_string(self.nginx.path("../requests.log"));
        log.unwrap_or_default().lines().count()
    }
}

fn fetch(weir: &Weir, path: &str) -> Reply {
    let url = format!("http://{}{path}", weir.address());
    Curl::direct().fetch(&url).reply()
}

#[test]
fn response_of_a_next_hop_by_tls_is_stored_and_its_connection_is_used_again() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let (origin, issued) = Origin::right(&format!("ssl_protocols {version};"));
        let weir = Weir::serve(&origin.trusting("localhost", &issued).set("workers", "1"));
        let (miss, hit) = (fetch(&weir, "/cached"), fetch(&weir, "/cached"));
        assert!(!miss.is_hit() && hit.is_hit(), "{version}: {}", hit.head);
        assert_eq!(miss.text(), hit.text());
        let connection = |reply: Reply| {
            let text = reply.expect(200).text();
            text.split_once(' ').map(|(number, _)| number.to_owned())
        };
        let first = connection(fetch(&weir, "/connection"));
        assert_eq!(connection(fetch(&weir, "/connection")), first, "{version}");
        let large = content(9, 20 << 20);
        origin.nginx.file("large", &large);
        assert!(
            fetch(&weir, "/large").expect(200).body == large,
            "{version}"
        );
        // each on a connection of its own, whose session is that of one before
        let told = fetch(&weir, "/session").text();
        assert!(told.starts_with(&format!("localhost|{version}|")), "{told}");
        let resumed = fetch(&weir, "/session").text();
        assert_eq!(resumed, format!("localhost|{version}|r"));
        assert_eq!(weir.metrics().count("weir_panics_total"), 0);
    }
}

#[test]
fn content_of_a_request_reaches_a_next_hop_by_tls_unchanged() {
    let (origin, issued) = Origin::right("location /put/ { dav_methods PUT; }");
    let weir = Weir::serve(&origin.trusting("127.0.0.1", &issued));
    std::fs::create_dir(origin.nginx.path("put")).expect("a folder");
    let large = content(3, 20 << 20);
    let file = origin.folder.path().join("large");
    std::fs::write(&file, &large).expect("a file");
    for (name, more) in [
        ("sized", "X-A: b"),
        ("chunked", "Transfer-Encoding: chunked"),
    ] {
        let curl = Curl::direct()
            .args(["-T", &file.to_string_lossy()])
            .field(more);
        let url = format!("http://{}/put/{name}", weir.address());
        curl.fetch(&url).reply().expect(201);
        let stored = std::fs::read(origin.nginx.path(&format!("put/{name}")));
        assert!(stored.expect("a file") == large, "{name}");
    }
}

/// Expects that a next hop with this certificate is refused for it, and gets no request.
#[track_caller]
fn expect_refused(origin: &Origin, config: &Config, why: &str) {
    let mut weir = Weir::serve(config);
    let reply = fetch(&weir, "/cached").expect(502);
    let status = reply.field("proxy-status");
    assert!(status.contains("error=tls_certificate_error"), "{status}");
    assert!(status.contains(why), "{why}: {status}");
    let failed = "weir_next_hop_connections_total{outcome=\"tls\"}";
    assert!(weir.metrics().count(failed) > 0);
    assert_eq!(origin.requests(), 0, "{why}");
    // the operator is told as much as the client
    let said = weir.wait_for("its TLS handshake fails: its certificate is refused");
    assert!(said.contains(why), "{why}: {said}");
}

#[test]
fn next_hop_with_a_wrong_certificate_gets_no_byte_of_a_request() {
    let (origin, _) = Origin::right("");
    let url = origin.nginx.https("localhost");
    let system = Config::gateway(&[&url]);
    expect_refused(
        &origin,
        &system,
        "its authority is not trusted (route[].tls.ca)",
    );
    let folder = origin.folder.path();
    let other = Issued::new(folder, "other", &["localhost"], KeyKind::Ecdsa);
    expect_refused(
        &origin,
        &origin.trusting("localhost", &other),
        "certificate",
    );

    let elsewhere = |folder: &Path| Issued::new(folder, "a", &["a.test"], KeyKind::Ecdsa);
    let (origin, issued) = Origin::start(elsewhere, "");
    expect_refused(&origin, &origin.trusting("localhost", &issued), "name");
    expect_refused(&origin, &origin.trusting("127.0.0.1", &issued), "name");

    let expired = |folder: &Path| Issued::expired(folder, "localhost");
    let (origin, issued) = Origin::start(expired, "");
    expect_refused(&origin, &origin.trusting("localhost", &issued), "xpired");
}

#[test]
fn next_hop_in_clear_where_tls_is_expected_gets_no_request() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::gateway(&[&nginx.https("localhost")]));
    let reply = fetch(&weir, "/cached").expect(502);
    let status = reply.field("proxy-status");
    assert!(status.contains("error=tls_protocol_error"), "{status}");
}

#[test]
fn connections_to_an_unverified_next_hop_are_not_those_of_a_verified_one() {
    let (origin, issued) = Origin::right("");
    let url = origin.nginx.https("localhost");
    let config = Config::gateway(&[])
        .without_routes()
        .route("path = \"/connection\"", &[&url])
        .route_tls("{ verify = false }")
        .route("path = \"/cached\"", &[&url]);
    let weir = Weir::serve(&config);
    fetch(&weir, "/connection").expect(200);
    let requests = origin.requests();
    fetch(&weir, "/cached").expect(502);
    assert_eq!(origin.requests(), requests);
    drop(weir);
    let (exit, said) = super::bad_input::check(origin.folder.path(), &config);
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("NOT VERIFIED"), "{said}");
    drop(issued);
}

#[test]
fn check_says_file_line_and_reason_of_authorities_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("empty.pem"), "nothing here\n").expect("a file");
    let base = Config::gateway(&["https://a.test"]);
    let clear = Config::gateway(&["http://a.test"]);
    for (config, tls, part) in [
        (&base, "{ ca = \"missing.pem\" }", "missing.pem"),
        (&base, "{ ca = \"empty.pem\" }", "no certificate"),
        (&base, "{ ca = \"a.pem\", verify = false }", "not verified"),
        (&clear, "{ ca = \"a.pem\" }", "no next hop of scheme https"),
    ] {
        let config = config.clone().route_tls(tls);
        let text = config.text();
        let line = text.lines().position(|line| line.starts_with("tls"));
        let line = line.expect("set") + 1;
        let (exit, said) = super::bad_input::check(folder, &config);
        assert_eq!(exit, 2, "{said}");
        assert!(said.contains(&format!("weir.toml:{line}:")), "{said}");
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn link_counts_the_bytes_of_tls_on_the_wire() {
    const LENGTH: usize = 4 << 20;
    /// What each record adds to at most 16 KiB of content.
    const OVERHEAD: u64 = (LENGTH as u64 / 16384) * 21;
    let (origin, issued) = Origin::right("");
    origin.nginx.file("large", &content(5, LENGTH));
    let link = r#"[{ name = "uplink", rate = "1GiB/s" }]"#;
    let weir = Weir::serve(&origin.trusting("localhost", &issued).set("link", link));
    fetch(&weir, "/large").expect(200);
    let received = "weir_link_received_bytes_total{link=\"uplink\"}";
    let counted = weir.metrics().count(received);
    let least = LENGTH as u64 + OVERHEAD;
    assert!(counted > least, "{counted} of at least {least} bytes");
    assert!(counted < least + 20_000, "{counted} of about {least} bytes");
    let sent = weir
        .metrics()
        .count("weir_link_sent_bytes_total{link=\"uplink\"}");
    // the hello and what ends the handshake are more than the request
    assert!((300..10_000).contains(&sent), "{sent}");
}

#[test]
fn next_hop_with_the_self_made_certificate_of_an_authority_is_trusted_by_that_certificate() {
    let authority = |folder: &Path| Issued::of_authority(folder, "own", &["localhost"]);
    let (origin, issued) = Origin::start(authority, "");
    let system = Config::gateway(&[&origin.nginx.https("localhost")]);
    expect_refused(
        &origin,
        &system,
        "its authority is not trusted (route[].tls.ca)",
    );
    expect_refused(&origin, &origin.trusting("127.0.0.1", &issued), "name");
    let weir = Weir::serve(&origin.trusting("localhost", &issued));
    fetch(&weir, "/cached").expect(200);
    assert!(fetch(&weir, "/cached").is_hit());
}
