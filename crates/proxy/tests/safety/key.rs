//! A response is never used for a request that differs in what it was made from (R64, R66).

use crate::support::{Head, Running, ScriptedOrigin, Setup};
use weir_proxy::config::{Listener, Mode};

/// A fresh response with this content.
fn fresh(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
}

/// Whether a response to `first` answers `second` too; both are heads without the empty line.
fn shares(first: &str, second: &str) -> bool {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    client.send(format!("{first}\r\n\r\n"));
    let (mut hop, _) = setup.origin.answer(fresh("one"));
    assert_eq!(client.read_response().text(), "one");
    client.send(format!("{second}\r\n\r\n"));
    // a request that is sure to be forwarded shows whether the one before it was
    client.send("GET /last HTTP/1.1\r\nHost: last\r\n\r\n");
    let head = hop.answer(fresh("two"));
    let shared = head.start_line() == "GET /last HTTP/1.1";
    let response = client.read_response();
    assert_eq!(response.text(), if shared { "one" } else { "two" });
    assert_eq!(response.is_hit(), shared);
    if !shared {
        hop.answer(fresh("last"));
    }
    client.read_response();
    shared
}

#[test]
fn equivalent_target_uris_share_a_stored_response() {
    for (first, second) in [
        (
            "GET / HTTP/1.1\r\nHost: A.Example",
            "GET / HTTP/1.1\r\nHost: a.eXample",
        ),
        ("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a:80"),
        ("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a:080"),
        (
            "GET / HTTP/1.1\r\nHost: a:8080",
            "GET HTTP://A:8080/ HTTP/1.1\r\nHost: b",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a",
            "GET http://a HTTP/1.1\r\nHost: a",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\nHost: a",
        ),
        (
            "GET / HTTP/1.1\r\nHost: [::1]:80",
            "GET / HTTP/1.1\r\nHost: [0:0::1]",
        ),
    ] {
        assert!(shares(first, second), "{first:?} {second:?}");
    }
}

#[test]
fn different_target_uris_do_not_share_a_stored_response() {
    for (first, second) in [
        ("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: b"),
        ("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a."),
        ("GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a:81"),
        ("GET /x HTTP/1.1\r\nHost: a", "GET /X HTTP/1.1\r\nHost: a"),
        ("GET /x HTTP/1.1\r\nHost: a", "GET /x/ HTTP/1.1\r\nHost: a"),
        ("GET /x HTTP/1.1\r\nHost: a", "GET //x HTTP/1.1\r\nHost: a"),
        ("GET /x HTTP/1.1\r\nHost: a", "GET /./x HTTP/1.1\r\nHost: a"),
        ("GET /x HTTP/1.1\r\nHost: a", "GET /%78 HTTP/1.1\r\nHost: a"),
        (
            "GET /a/b HTTP/1.1\r\nHost: a",
            "GET /a%2fb HTTP/1.1\r\nHost: a",
        ),
        (
            "GET /a%2fb HTTP/1.1\r\nHost: a",
            "GET /a%2Fb HTTP/1.1\r\nHost: a",
        ),
        (
            "GET /?a=1&b=2 HTTP/1.1\r\nHost: a",
            "GET /?b=2&a=1 HTTP/1.1\r\nHost: a",
        ),
        ("GET / HTTP/1.1\r\nHost: a", "GET /? HTTP/1.1\r\nHost: a"),
        (
            "GET /?a HTTP/1.1\r\nHost: a",
            "GET /?a= HTTP/1.1\r\nHost: a",
        ),
        (
            "GET /x HTTP/1.1\r\nHost: a",
            "GET /x;p=1 HTTP/1.1\r\nHost: a",
        ),
        (
            "GET /x HTTP/1.1\r\nHost: a",
            "GET /x%00 HTTP/1.1\r\nHost: a",
        ),
        // the parts of the key cannot flow into each other
        (
            "GET /b/c HTTP/1.1\r\nHost: a",
            "GET /c HTTP/1.1\r\nHost: ab",
        ),
        (
            "GET /1/ HTTP/1.1\r\nHost: a:8",
            "GET / HTTP/1.1\r\nHost: a:81",
        ),
    ] {
        assert!(!shares(first, second), "{first:?} {second:?}");
    }
}

#[test]
fn field_outside_the_cache_key_is_forwarded() {
    let setup = Setup::gateway();
    let names = [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-HTTP-Method-Override",
        "X-Host",
    ];
    let mut client = setup.proxy.client();
    let fields: String = names
        .iter()
        .map(|name| format!("{name}: evil\r\n"))
        .collect();
    client.send(setup.head("GET", "/", "1.1", &fields));
    let (_hop, head) = setup.origin.answer(fresh("one"));
    for name in names {
        assert_eq!(head.field(name), Some("evil"));
    }
    client.read_response();
    // what an origin makes of them it must name in Vary: that is its word, and then it is kept
    assert!(client.ask(setup.get("/")).is_hit());
}

#[test]
fn field_named_in_vary_selects_the_stored_response() {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    let varies = |text: &str| fresh(text).replace("\r\n\r\n", "\r\nVary: x-host\r\n\r\n");
    client.send(setup.head("GET", "/", "1.1", "X-Host: evil\r\n"));
    let (mut hop, _) = setup.origin.answer(varies("evil"));
    client.read_response();
    client.send(setup.get("/"));
    hop.answer(varies("good"));
    assert_eq!(client.read_response().text(), "good");
    assert_eq!(client.ask(setup.get("/")).text(), "good");
    let evil = client.ask(setup.head("GET", "/", "1.1", "x-HOST:   evil\r\n"));
    assert!(evil.is_hit() && evil.text() == "evil");
}

#[test]
fn gateway_and_forward_proxy_do_not_share_stored_responses() {
    // one process, both kinds of listener: a client of the gateway chooses Host, and must not
    // choose what users of the forward proxy get for that name
    let (inside, outside) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let proxy = Running::gateway_with(inside.address(), |config| {
        config.access.allow_destinations = vec![crate::support::localhost()];
        config.listeners.push(Listener {
            address: "127.0.0.1:0".parse().expect("an address"),
            mode: Mode::Forward.into(),
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        });
    });
    let host = outside.address();
    let mut client = proxy.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let (_hop, _) = inside.answer(fresh("inside"));
    assert_eq!(client.read_response().text(), "inside");
    let mut client = crate::support::RawClient::connect(proxy.listener(1));
    client.send(format!(
        "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
    ));
    let (_hop, _) = outside.answer(fresh("outside"));
    assert_eq!(client.read_response().text(), "outside");
    // each keeps its own
    let mut client = proxy.client();
    let again = client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(again.is_hit() && again.text() == "inside");
    // and a purge of the URL forgets both
    assert_eq!(proxy.purge(&format!("http://{host}/")), 2);
}

#[test]
fn private_response_is_not_shared_whatever_its_path() {
    Setup::each(|setup| {
        for (at, path) in [
            "/account/x.css",
            "/account;x.css",
            "/account%00.css",
            "/account%2f..%2fx.js",
            "/account%3fx.png",
            "/account/..;/x.ico",
        ]
        .into_iter()
        .enumerate()
        {
            for private in [
                "Cache-Control: private",
                "Cache-Control: no-store",
                "Cache-Control: private, max-age=60",
            ] {
                let token = format!("secret-{at}");
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", path, "1.1", "Cookie: a\r\n"));
                let answer = format!(
                    "HTTP/1.1 200 OK\r\n{private}\r\nConnection: close\r\nContent-Type: text/css\r\nContent-Length: {}\r\n\r\n{token}",
                    token.len()
                );
                drop(setup.origin.answer(&answer));
                assert_eq!(client.read_response().text(), token);
                let other = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 5\r\n\r\nother";
                assert_eq!(setup.fetch(path, other).0.text(), "other");
            }
        }
        // a response to Authorization is for one user, unless it says otherwise
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/a.css", "1.1", "Authorization: Basic eDp5\r\n"));
        let (mut hop, _) = setup.origin.answer(fresh("mine"));
        client.read_response();
        client.send(setup.get("/a.css"));
        hop.answer(fresh("ours"));
        assert_eq!(client.read_response().text(), "ours");
    });
}

#[test]
fn part_is_not_served_as_the_whole_and_if_range_must_match() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", "Range: bytes=0-1\r\n"));
        let part = "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nContent-Range: bytes 0-1/6\r\nContent-Length: 2\r\n\r\non";
        let (mut hop, head) = setup.origin.answer(part);
        assert_eq!(head.field("range"), Some("bytes=0-1"));
        assert_eq!(client.read_response().status(), 206);
        client.send(setup.get("/"));
        hop.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\nContent-Length: 6\r\n\r\nonetwo");
        assert_eq!(client.read_response().text(), "onetwo");
        let mut ask = |range: &str| {
            let response = client.ask(setup.head("GET", "/", "1.1", range));
            assert!(response.is_hit());
            (response.status(), response.text())
        };
        assert_eq!(ask("Range: bytes=3-\r\n"), (206, "two".into()));
        assert_eq!(ask("Range: bytes=-2\r\n"), (206, "wo".into()));
        assert_eq!(ask("Range: bytes=0-99999999999999999999\r\n").0, 206);
        assert_eq!(ask("Range: bytes=9-\r\n").0, 416);
        assert_eq!(
            ask("Range: bytes=3-\r\nIf-Range: \"1\"\r\n"),
            (206, "two".into())
        );
        assert_eq!(
            ask("Range: bytes=3-\r\nIf-Range: W/\"1\"\r\n"),
            (200, "onetwo".into())
        );
        assert_eq!(
            ask("Range: bytes=3-\r\nIf-Range: \"2\"\r\n"),
            (200, "onetwo".into())
        );
        // many parts are never more than the whole
        let many = format!("Range: bytes={}\r\n", vec!["0-"; 10_000].join(","));
        let (status, text) = ask(&many);
        assert!(status == 200 && text == "onetwo" || status == 416 && text.is_empty());
    });
}

#[test]
fn concurrent_requests_over_pooled_connections_get_their_own_responses() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let echo = |head: &Head, _: &[u8]| {
        let line = head.start_line().to_owned() + head.field("cookie").unwrap_or("");
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: {}\r\n\r\n{line}",
            line.len()
        )
        .into_bytes()
    };
    let _origin = origin.answering(echo);
    let proxy = Running::gateway_with(address, |config| config.workers = 2);
    std::thread::scope(|scope| {
        for at in 0..8 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut client = proxy.client();
                for turn in 0..50 {
                    let response = client.ask(format!(
                        "GET /{turn} HTTP/1.1\r\nHost: a\r\nCookie: c{at}\r\n\r\n"
                    ));
                    assert_eq!(response.text(), format!("GET /{turn} HTTP/1.1c{at}"));
                }
            });
        }
    });
}

#[test]
fn redirect_built_from_host_is_stored_with_the_canonical_host() {
    for spelling in ["A.Example", "a.example:080", "a.example:", "A.EXAMPLE:80"] {
        let setup = Setup::gateway();
        let mut client = setup.proxy.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: {spelling}\r\n\r\n"));
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        // as nginx does with $http_host
        let host = asked.field("host").expect("a Host");
        hop.send(format!(
            "HTTP/1.1 301 Moved Permanently\r\nLocation: https://{host}/\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n"
        ));
        client.read_response();
        let hit = client.ask("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert!(hit.is_hit(), "{spelling}");
        assert_eq!(
            hit.head.field("location"),
            Some("https://a.example/"),
            "{spelling}"
        );
    }
}
