//! One target, whatever request line and Host say (RFC 9110 §7.1, §7.2, RFC 9112 §3.2).

use crate::support::Setup;

/// Sent as it is, the request is refused with 400, the connection ends, and nothing is forwarded.
fn refused(setup: &Setup, request: &str) {
    let mut client = setup.proxy.client();
    let response = client.ask(request);
    assert_eq!(response.status(), 400, "{request:?}");
    client.expect_end();
    setup.origin.expect_untouched();
}

#[test]
fn missing_repeated_or_malformed_host_is_refused_with_400() {
    Setup::each(|setup| {
        let base = &setup.base;
        for fields in [
            "",
            "Host: a\r\nHost: b\r\n",
            "Host: a\r\nHost: a\r\n",
            "Host: a\r\nhost: a\r\n",
            "Host: a, b\r\n",
            "Host: a b\r\n",
            "Host: \r\n",
            "Host: u@a\r\n",
            "Host: a/b\r\n",
            "Host: a:0\r\n",
            "Host: a:65536\r\n",
            "Host: a:b\r\n",
            "Host: a%2eb\r\n",
            "Host: http://a\r\n",
            "Host: a#b\r\n",
            "Host: [::1\r\n",
            "Host: caf\u{e9}\r\n",
        ] {
            refused(setup, &format!("GET {base}/ HTTP/1.1\r\n{fields}\r\n"));
        }
    });
}

#[test]
fn malformed_target_or_request_line_is_refused_with_400() {
    Setup::each(|setup| {
        for target in [
            "http://u:p@a/",
            "http://a/#f",
            "/#f",
            "http:///x",
            "http://a:99999/",
            "ftp://a/",
            "a:80",
            "a",
            "http:/a",
            "http://a?q",
            "//",
        ] {
            // "//" is a path, and a forward proxy wants a whole URL
            if target != "//" || !setup.base.is_empty() {
                refused(setup, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            }
        }
        for line in [
            "GET /\tx HTTP/1.1",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            " GET / HTTP/1.1",
            "GET /\u{e9} HTTP/1.1",
            "GET / http/1.1",
            "GET / HTTP/1.1\u{b}",
            "G(T / HTTP/1.1",
        ] {
            refused(setup, &format!("{line}\r\nHost: a\r\n\r\n"));
        }
    });
}

#[test]
fn unsupported_http_version_is_refused() {
    Setup::each(|setup| {
        for (line, statuses) in [
            ("GET / HTTP/1.32", [400, 505]),
            ("GET / HTTP/2.0", [400, 505]),
            ("GET / HTTP/0.9", [400, 505]),
            ("GET /", [400, 505]),
            ("PRI * HTTP/2.0", [400, 505]),
        ] {
            let mut client = setup.proxy.client();
            let response = client.ask(format!("{line}\r\nHost: a\r\n\r\n"));
            assert!(statuses.contains(&response.status()), "{line:?}");
            client.expect_end();
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn absolute_form_target_overrides_host() {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    client.send("GET HTTP://A.Example:8080/x HTTP/1.1\r\nX: 1\r\nhost: b.example\r\nY: 2\r\n\r\n");
    let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";
    let (mut hop, head) = setup.origin.answer(fresh);
    assert_eq!(head.start_line(), "GET /x HTTP/1.1");
    let fields = head.fields();
    assert_eq!(
        fields[..3],
        [("X", "1"), ("Host", "a.example:8080"), ("Y", "2")]
    );
    client.read_response();
    // and the key is that of the target: Host alone finds it, the other name does not
    let hit = client.ask("GET /x HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
    assert!(hit.is_hit());
    client.send("GET /x HTTP/1.1\r\nHost: b.example\r\n\r\n");
    hop.answer(fresh);
    assert!(!client.read_response().is_hit());

    let setup = Setup::forward();
    let mut client = setup.proxy.client();
    client.send(format!(
        "GET {}/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        setup.base
    ));
    let (_hop, head) = setup.origin.answer(fresh);
    assert_eq!(head.all("host"), [setup.host.as_str()]);
    client.read_response();
}

#[test]
fn path_is_forwarded_without_normalization() {
    Setup::each(|setup| {
        let mut hop = None;
        let mut client = setup.proxy.client();
        for path in [
            "//a",
            "/a%2Fb",
            "/a/../b",
            "/a%2e%2e/",
            "/?a=b?c",
            "/a;b",
            "/A",
            "/a//b/./",
            "/%00",
        ] {
            client.send(setup.get(path));
            let hop = hop.get_or_insert_with(|| setup.origin.accept());
            let head = hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
            assert_eq!(head.start_line(), format!("GET {path} HTTP/1.1"));
            client.read_response();
        }
    });
}

#[test]
fn http10_request_without_host_is_forwarded_with_the_listener_address() {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let (_hop, head) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(head.start_line(), "GET / HTTP/1.1");
    assert_eq!(
        head.field("host"),
        Some(&*setup.proxy.address().to_string())
    );
    assert_eq!(client.read_response().status(), 204);
}

#[test]
fn origin_form_request_to_forward_proxy_is_refused_with_400() {
    let setup = Setup::forward();
    refused(
        &setup,
        &format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", setup.host),
    );
}

/// Spellings of one host, and what is sent on for all of them.
const SPELLINGS: [(&str, &str); 9] = [
    ("a.test", "a.test"),
    ("A.TEST", "a.test"),
    ("a.test:", "a.test"),
    ("a.test:80", "a.test"),
    ("a.test:080", "a.test"),
    ("A.test:08080", "a.test:8080"),
    ("a.test:443", "a.test:443"),
    ("[0:0::1]:80", "[::1]"),
    ("[::1]:8080", "[::1]:8080"),
];

#[test]
fn host_is_forwarded_in_canonical_form_for_every_spelling() {
    let ask = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (method, path, fields) in [
        ("GET", "/", ""),
        ("HEAD", "/", ""),
        ("POST", "/", "Content-Length: 0\r\n"),
        ("OPTIONS", "*", ""),
        ("GET", "/chat", ask),
        ("GET", "/", "Range: bytes=0-1\r\n"),
    ] {
        let setup = Setup::gateway();
        for (spelling, canonical) in SPELLINGS {
            let mut client = setup.proxy.client();
            client.send(format!(
                "{method} {path} HTTP/1.1\r\nX: 1\r\nhOsT: {spelling}\r\n{fields}\r\n"
            ));
            let (_hop, head) = setup.origin.answer(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
            assert_eq!(head.all("host"), [canonical], "{method} {path} {spelling}");
            assert_eq!(head.fields()[..2], [("X", "1"), ("Host", canonical)]);
            client.read_head();
        }
    }
}

#[test]
fn host_of_a_background_refresh_is_canonical() {
    let setup = Setup::gateway();
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1, stale-while-revalidate=60\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";
    let mut client = setup.proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let (mut hop, _) = setup.origin.answer(answer);
    client.read_response();
    setup.proxy.clock.advance_ms(5_000);
    client.send("HEAD / HTTP/1.1\r\nHost: A.Test:080\r\n\r\n");
    assert!(client.read_head().verdict().starts_with("hit;"));
    let refresh = hop.answer(answer);
    assert_eq!(refresh.start_line(), "GET / HTTP/1.1");
    assert_eq!(refresh.all("host"), ["a.test"]);
    assert!(refresh.has("if-none-match"));
}

#[test]
fn host_of_a_request_for_the_missing_range_is_canonical() {
    let setup = Setup::gateway();
    let part = |range: &str, text: &str| {
        format!(
            "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Range: bytes {range}/4\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
    };
    let mut client = setup.proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nRange: bytes=0-1\r\n\r\n");
    let (mut hop, _) = setup.origin.answer(part("0-1", "ab"));
    client.read_response();
    client.send("GET / HTTP/1.1\r\nHost: A.TEST:080\r\n\r\n");
    let rest = hop.answer(part("2-3", "cd"));
    assert_eq!(rest.field("range"), Some("bytes=2-3"));
    assert_eq!(rest.all("host"), ["a.test"]);
    assert_eq!(client.read_response().text(), "abcd");
}

#[test]
fn https_target_on_a_plain_gateway_is_refused_with_421() {
    let setup = Setup::gateway();
    for line in [
        "GET https://a.test/ HTTP/1.1",
        "GET HTTPS://a.test:80/ HTTP/1.1",
        "HEAD https://a.test/ HTTP/1.1",
        "POST https://a.test/ HTTP/1.1",
        "OPTIONS https://a.test HTTP/1.1",
    ] {
        let mut client = setup.proxy.client();
        client.send(format!("{line}\r\nHost: a.test\r\n\r\n"));
        assert_eq!(
            client.read_head().start_line(),
            "HTTP/1.1 421 Misdirected Request",
            "{line}"
        );
        setup.origin.expect_untouched();
    }
    // its neighbour: the same host over the scheme that this listener has
    let mut client = setup.proxy.client();
    client.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let (_hop, _) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.read_response().status(), 204);
}
