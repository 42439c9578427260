//! CONNECT through the forward proxy.

use crate::support::{Config, Curl, Nginx, RawClient, Weir, content};

fn tunnel(weir: &Weir) -> Curl {
    Curl::through(weir.address()).args(["--proxytunnel"])
}

#[test]
fn tunnel_to_an_allowed_port_passes_bytes_unchanged_both_ways() {
    let nginx = Nginx::start("location /put/ { dav_methods PUT; }");
    let port = nginx.address.port();
    let config = Config::forward().set("access.connect_ports", &format!("[{port}]"));
    let weir = Weir::serve(&config);
    let large = content(5, 10 << 20);
    let file = nginx.file("large", &large);
    let fetched = tunnel(&weir).fetch(&nginx.url("/large"));
    assert!(fetched.heads[0].contains(" 200 "), "{:?}", fetched.heads);
    let reply = fetched.reply().expect(200);
    assert!(reply.body == large);
    // what goes through a tunnel is not ours to mark
    assert_eq!(
        (reply.cache_status(), reply.field("via")),
        Default::default()
    );

    std::fs::create_dir(nginx.path("put")).expect("a folder");
    let curl = tunnel(&weir).args(["-T", &file.to_string_lossy()]);
    curl.fetch(&nginx.url("/put/large")).reply().expect(201);
    assert!(std::fs::read(nginx.path("put/large")).expect("stored") == large);

    let metrics = weir.until("closed", |metrics| metrics.requests("tunnel") == 2);
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 2);
    assert_eq!(metrics.count("weir_tunnels_open"), 0);
    let bytes = metrics.count("weir_tunnel_client_sent_bytes_total");
    assert!(bytes > 10 << 20, "{bytes}");
}

#[test]
fn connect_to_a_port_not_in_connect_ports_is_refused_with_403() {
    let nginx = Nginx::start("");
    let weir = Weir::serve(&Config::forward());
    let fetched = tunnel(&weir).fetch(&nginx.url("/connection"));
    // 56: refused by the proxy
    assert_eq!(fetched.exit, 56, "{fetched:?}");
    assert!(fetched.heads[0].contains(" 403 "), "{:?}", fetched.heads);
    assert!(
        fetched.heads[0].contains("http_request_denied"),
        "{:?}",
        fetched.heads
    );
    let metrics = weir.until("counted", |metrics| metrics.requests("refused") == 1);
    assert_eq!(metrics.count("weir_next_hop_connections_open"), 0);
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 0);
}

#[test]
fn connect_to_a_prohibited_destination_is_refused() {
    let nginx = Nginx::start("");
    let port = nginx.address.port();
    let weir = Weir::serve(&Config::guarded().set("access.connect_ports", &format!("[{port}]")));
    let fetched = tunnel(&weir).fetch(&nginx.url("/connection"));
    assert_eq!(fetched.exit, 56, "{fetched:?}");
    assert!(
        fetched.heads[0].contains("destination_ip_prohibited"),
        "{:?}",
        fetched.heads
    );
}

#[test]
fn tunnel_forwards_early_bytes_and_closes_when_both_sides_end() {
    let nginx = Nginx::start("");
    let port = nginx.address.port();
    let config = Config::forward().set("access.connect_ports", &format!("[{port}]"));
    let weir = Weir::serve(&config);
    let mut client = RawClient::connect(weir.address());
    // bytes right behind the request belong to the tunnel
    client.send(format!(
        "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\nGET /connection HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        nginx.address
    ));
    assert_eq!(client.head().status(), 200);
    client.end_sending();
    assert_eq!(client.reply().expect(200).text(), "1 1");
    assert!(client.is_closed());
}
