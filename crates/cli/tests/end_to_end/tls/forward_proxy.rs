//! Forward proxies whose clients come by TLS: what browsers call an HTTPS proxy.

use super::LOCATIONS;
use crate::support::{Config, Curl, Issued, KeyKind, Nginx, Weir, content};

#[test]
fn client_uses_a_forward_proxy_by_tls_with_and_without_a_tunnel() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "proxy", &["proxy.test"], KeyKind::Ecdsa);
    let locations = format!("{LOCATIONS} location /put/ {{ dav_methods PUT; }}");
    let nginx = Nginx::start(&locations);
    let large = content(9, 10 << 20);
    let file = nginx.file("large", &large);
    let config = Config::forward().tls(&[&issued]);
    let port = nginx.address.port();
    let weir = Weir::serve(&config.set("access.connect_ports", &format!("[{port}]")));
    let curl = || {
        let address = weir.address();
        let resolve = format!("proxy.test:{}:{}", address.port(), address.ip());
        let proxy = format!("https://proxy.test:{}", address.port());
        let chain = issued.chain.to_string_lossy();
        let curl = Curl::direct().args(["--resolve", &resolve, "--proxy", &proxy]);
        curl.args(["--proxy-cacert", &chain])
    };
    let first = curl().fetch(&nginx.url("/cached")).reply().expect(200);
    let second = curl().fetch(&nginx.url("/cached")).reply().expect(200);
    assert!(!first.is_hit() && second.is_hit());
    // the same target as for clients that come in clear: it is the URL's
    assert!(curl().fetch(&nginx.url("/large")).reply().body == large);
    let tunnel = || curl().args(["--proxytunnel"]);
    let fetched = tunnel().fetch(&nginx.url("/large"));
    assert!(fetched.heads[0].contains(" 200 "), "{:?}", fetched.heads);
    let reply = fetched.reply().expect(200);
    assert!(reply.body == large);
    assert_eq!(reply.cache_status(), "");
    std::fs::create_dir(nginx.path("put")).expect("a folder");
    let put = tunnel().args(["-T", &file.to_string_lossy()]);
    put.fetch(&nginx.url("/put/large")).reply().expect(201);
    assert!(std::fs::read(nginx.path("put/large")).expect("stored") == large);
    let metrics = weir.until("closed", |metrics| metrics.requests("tunnel") == 2);
    assert_eq!(metrics.count("weir_tunnels_open"), 0);
    // clients that take it for a proxy in clear
    let clear = Curl::through(weir.address()).fetch(&nginx.url("/cached"));
    clear.reply().expect(400);
}

#[test]
fn what_is_for_the_proxy_itself_is_answered_by_each_version_of_http() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "proxy", &["proxy.test"], KeyKind::Ecdsa);
    let tls = Weir::serve(&Config::forward().tls(&[&issued]));
    let (port, address) = (tls.address().port(), tls.address());
    let curl = |version: &str| {
        let resolve = format!("proxy.test:{port}:127.0.0.1");
        let to = format!("other.test:{port}:127.0.0.1:{port}");
        let curl = Curl::direct().args(["--resolve", &resolve, "--connect-to", &to]);
        curl.args(["-k", version])
    };
    for version in ["--http1.1", "--http2"] {
        let url = format!("https://proxy.test:{port}");
        let script = curl(version)
            .fetch(&format!("{url}/proxy.pac"))
            .reply()
            .expect(200);
        let expected = format!("return \"HTTPS proxy.test:{port}\"");
        assert!(
            script.text().contains(&expected),
            "{version} {}",
            script.text()
        );
        let told = curl(version).fetch(&format!("{url}/a")).reply().expect(400);
        assert!(
            told.text().contains("this is a forward proxy"),
            "{}",
            told.text()
        );
        let by_address = format!("https://{address}/proxy.pac");
        curl(version).fetch(&by_address).reply().expect(200);
    }
    // the authority of another host, on a connection to this one
    let host = ["-H", "Host: other.test"];
    let other = curl("--http2")
        .args(host)
        .fetch(&format!("https://proxy.test:{port}/proxy.pac"));
    other.reply().expect(501);
    // the admin interface knows it, too
    let script = tls.ask("GET", "/proxy.pac").expect(200);
    let expected = format!("return \"HTTPS {address}\"");
    assert!(script.text().contains(&expected), "{}", script.text());
    let clear = Weir::serve(&Config::guarded().of_listener("http2 = true"));
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let curl = || Curl::direct().args([version]);
        let script = curl().fetch(&clear.url("/proxy.pac")).reply().expect(200);
        let expected = format!("return \"PROXY {}\"", clear.address());
        assert!(
            script.text().contains(&expected),
            "{version} {}",
            script.text()
        );
        let told = curl().fetch(&clear.url("/a")).reply().expect(400);
        assert!(
            told.text().contains("this is a forward proxy"),
            "{}",
            told.text()
        );
    }
}
