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
