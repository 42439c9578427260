//! Behind a balancer that says whose connections it hands on: HAProxy, by both versions of its
//! protocol.

use crate::support::{Config, Curl, HaProxy, Issued, KeyKind, Nginx, RawClient, Reply, Weir};

const LOCATIONS: &str = "
    location /who { add_header Cache-Control no-store; return 200 \"$http_x_forwarded_for\"; }
";

/// A client that is not the balancer.
const CLIENT: &str = "127.0.0.7";

/// HAProxy that hands connections on to `weir`, each with this header.
fn balancer(weir: &Weir, header: &str) -> HaProxy {
    HaProxy::start(&format!(
        "frontend clients\n mode tcp\n bind fd@0\n default_backend weir\n\
         backend weir\n mode tcp\n server weir {} {header}\n",
        weir.address()
    ))
}

fn gateway(nginx: &Nginx, balancers: &str) -> Config {
    Config::gateway(&[&nginx.origin()]).behind(balancers)
}

fn fetch(balancer: &HaProxy, path: &str) -> Reply {
    let url = format!("http://{}{path}", balancer.address);
    let curl = Curl::direct().args(["--interface", CLIENT]);
    curl.fetch(&url).reply()
}

#[test]
fn client_is_the_one_that_the_balancer_names() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&gateway(&nginx, "[\"127.0.0.1\"]"));
    for header in ["send-proxy", "send-proxy-v2"] {
        let balancer = balancer(&weir, header);
        assert_eq!(
            fetch(&balancer, "/who").expect(200).text(),
            CLIENT,
            "{header}"
        );
    }
    let named = |metrics: &crate::support::Metrics| {
        metrics.count("weir_proxy_headers_total{end=\"client\"}") == 2
    };
    weir.until("two headers", named);
}

#[test]
fn client_under_tls_is_named_before_its_handshake() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "own", &["a.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]).tls(&[&issued]);
    let weir = Weir::serve(&config.behind("[\"127.0.0.0/30\"]"));
    let balancer = balancer(&weir, "send-proxy-v2");
    let port = balancer.address.port().to_string();
    let curl = Curl::direct().args(["--interface", CLIENT]).args([
        "--cacert",
        issued.chain.to_str().expect("a path"),
        "--connect-to",
        &format!("::127.0.0.1:{port}"),
    ]);
    let told = curl.fetch("https://a.test/who").reply().expect(200).text();
    assert_eq!(told, CLIENT);
}

#[test]
fn denied_client_is_denied_behind_a_balancer_that_is_not() {
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::forward().behind("[\"127.0.0.1\"]");
    let denied = format!("[\"{CLIENT}\"]");
    let weir = Weir::serve(&config.set("access.deny_clients", &denied));
    let balancer = balancer(&weir, "send-proxy");
    let through = || Curl::through(balancer.address);
    let url = nginx.url("/who");
    let other = through().args(["--interface", CLIENT]).fetch(&url);
    other.reply().expect(403);
    through().fetch(&url).reply().expect(200);
}

#[test]
fn connection_of_no_balancer_is_closed_whatever_it_says() {
    let nginx = Nginx::start(LOCATIONS);
    let mut weir = Weir::serve(&gateway(&nginx, "[\"127.0.0.9\"]"));
    let mut client = RawClient::connect(weir.address());
    client.send("PROXY TCP4 127.0.0.9 127.0.0.1 1 2\r\nGET /who HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.is_closed());
    let refused = |metrics: &crate::support::Metrics| {
        metrics.count("weir_proxy_headers_total{end=\"refused\"}") == 1
    };
    weir.until("a refused connection", refused);
    let said = weir.wait_for("refused a connection from 127.0.0.1 to 127.0.0.1:");
    assert!(
        said.ends_with("its address is not in listener[].proxy_protocol"),
        "{said}"
    );
    assert!(
        weir.said().contains("(PROXY from 127.0.0.9"),
        "{}",
        weir.said()
    );
}

#[test]
fn request_without_a_header_is_never_answered_behind_a_balancer() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&gateway(&nginx, "[\"127.0.0.1\"]"));
    for sent in [
        "GET /who HTTP/1.1\r\nHost: a\r\n\r\n",
        "PROXY TCP4 127.0.0.7 nowhere 1 2\r\nGET /who HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut client = RawClient::connect(weir.address());
        client.send(sent);
        assert!(client.is_closed(), "{sent}");
    }
    let malformed = |metrics: &crate::support::Metrics| {
        metrics.count("weir_proxy_headers_total{end=\"malformed\"}") == 2
    };
    weir.until("two malformed headers", malformed);
}
