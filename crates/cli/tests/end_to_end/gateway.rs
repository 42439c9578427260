//! A gateway: routes by host and path, next hops in turn, and one of them dead.

use crate::support::{Config, Curl, Nginx, RawClient, Weir};
use std::collections::BTreeMap;

fn named(name: &str) -> Nginx {
    Nginx::start(&format!(
        "location / {{ add_header Cache-Control no-store; return 200 \"{name} $http_host $request_uri\"; }}
         location /cached {{ add_header Cache-Control max-age=3600; return 200 \"{name} $request_id\"; }}"
    ))
}

#[test]
fn origin_flag_makes_a_caching_gateway() {
    let nginx = named("a");
    let config = Config::guarded();
    let weir = Weir::serve_with(
        &config,
        &["--origin", &nginx.origin(), "--listen", "127.0.0.1:0"],
    );
    let get = |path: &str| Curl::direct().fetch(&weir.url(path)).reply().expect(200);
    assert_eq!(get("/x?y").text(), format!("a {} /x?y", weir.address()));
    let (first, second) = (get("/cached"), get("/cached"));
    assert!(
        second.is_hit() && first.body == second.body,
        "{}",
        second.head
    );
}

#[test]
fn request_goes_to_the_next_hop_of_the_most_specific_route() {
    let names = ["any", "exact", "below", "static", "any-static"];
    let hops = names.map(named);
    let config = Config::gateway(&[&hops[0].origin()])
        .route("host = \"www.example.com\"", &[&hops[1].origin()])
        .route("host = \"*.example.com\"", &[&hops[2].origin()])
        .route(
            "host = \"www.example.com\"\npath = \"/static\"",
            &[&hops[3].origin()],
        )
        .route("path = \"/static\"", &[&hops[4].origin()]);
    let weir = Weir::serve(&config);
    let check = |host: &str, path: &str, expected: &str| {
        let curl = Curl::direct().field(&format!("Host: {host}"));
        let reply = curl.fetch(&weir.url(path)).reply().expect(200);
        let canonical = host.to_ascii_lowercase();
        assert_eq!(reply.text(), format!("{expected} {canonical} {path}"));
    };
    check("www.example.com", "/", "exact");
    check("WWW.Example.com", "/a", "exact");
    check("www.example.com", "/static/a", "static");
    check("www.example.com", "/staticky", "exact");
    check("other.example.com", "/", "below");
    check("example.com", "/", "any");
    check("elsewhere.test", "/static", "any-static");
    check("elsewhere.test", "/", "any");
}

#[test]
fn host_without_route_gets_404_destination_not_found() {
    let nginx = named("a");
    let config = Config::gateway(&[])
        .without_routes()
        .route("host = \"www.example.com\"", &[&nginx.origin()]);
    let weir = Weir::serve(&config);
    let curl = Curl::direct().field("Host: elsewhere.test");
    let reply = curl.fetch(&weir.url("/")).reply().expect(404);
    assert!(
        reply
            .field("proxy-status")
            .contains("destination_not_found"),
        "{}",
        reply.head
    );
    // nor is it a forward proxy
    let mut client = RawClient::connect(weir.address());
    assert_eq!(client.get(&nginx.url("/")).status(), 404);
    let mut client = RawClient::connect(weir.address());
    client.send(format!(
        "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n",
        nginx.address
    ));
    assert!(matches!(client.reply().status(), 400..=499));
}

#[test]
fn next_hops_take_turns() {
    let hops = ["a", "b"].map(named);
    let weir = Weir::serve(&Config::gateway(&[&hops[0].origin(), &hops[1].origin()]));
    assert_eq!(
        shares(&weir, 20),
        BTreeMap::from([("a".into(), 10), ("b".into(), 10)])
    );
}

#[test]
fn failed_next_hop_is_skipped_and_no_request_fails() {
    let mut hops = ["a", "b"].map(named);
    let weir = Weir::serve(&Config::gateway(&[&hops[0].origin(), &hops[1].origin()]));
    shares(&weir, 2);
    hops[1].stop();
    // every request is answered, those in whose turn the death was found as well
    assert_eq!(shares(&weir, 20), BTreeMap::from([("a".into(), 20)]));
    let refused = weir
        .metrics()
        .count("weir_next_hop_connections_total{outcome=\"refused\"}");
    assert_eq!(refused, 1, "it rests: nobody tries it again");

    // so is a request with content, of which nothing was sent
    let curl = Curl::direct().args(["-d", "content"]);
    curl.fetch(&weir.url("/")).reply().expect(200);
}

#[test]
fn sole_next_hop_is_tried_again_right_after_a_failure() {
    let mut nginx = named("a");
    let weir = Weir::serve(&Config::gateway(&[&nginx.origin()]));
    nginx.stop();
    Curl::direct().fetch(&weir.url("/")).reply().expect(502);
    nginx.start_again();
    assert_eq!(shares(&weir, 3), BTreeMap::from([("a".into(), 3)]));
}

/// Who answered how many of `count` requests; fails if one is not answered well.
fn shares(weir: &Weir, count: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for number in 0..count {
        let mut client = RawClient::connect(weir.address());
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: any.test\r\n\r\n"));
        let text = client.reply().expect(200).text();
        let name = text.split(' ').next().unwrap_or_default().to_owned();
        *shares.entry(name).or_insert(0) += 1;
    }
    shares
}
