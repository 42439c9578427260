//! One target, whatever request line and Host say (RFC 9110 §7.1, §7.2, RFC 9112 §3.2).

use crate::support::Way;

/// Sent as it is, the request is refused with 400, the connection ends, and nobody is asked.
fn refused(way: &Way, request: &str) {
    let mut client = way.proxy.client();
    let response = client.ask(request);
    assert_eq!(response.status(), 400, "{request:?}");
    client.expect_end();
    way.origin.expect_untouched();
}

#[test]
fn doubtful_host_is_accepted() {
    Way::each(|way| {
        let base = &way.base;
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
            refused(way, &format!("GET {base}/ HTTP/1.1\r\n{fields}\r\n"));
        }
    });
}

#[test]
fn doubtful_target_is_accepted() {
    Way::each(|way| {
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
            if target != "//" || !way.base.is_empty() {
                refused(way, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
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
            refused(way, &format!("{line}\r\nHost: a\r\n\r\n"));
        }
    });
}

#[test]
fn version_that_does_not_exist_is_guessed() {
    Way::each(|way| {
        for (line, statuses) in [
            ("GET / HTTP/1.32", [400, 505]),
            ("GET / HTTP/2.0", [400, 505]),
            ("GET / HTTP/0.9", [400, 505]),
            ("GET /", [400, 505]),
            ("PRI * HTTP/2.0", [400, 505]),
        ] {
            let mut client = way.proxy.client();
            let response = client.ask(format!("{line}\r\nHost: a\r\n\r\n"));
            assert!(statuses.contains(&response.status()), "{line:?}");
            client.expect_end();
            way.origin.expect_untouched();
        }
    });
}

#[test]
fn host_beats_the_absolute_form() {
    let way = Way::gateway();
    let mut client = way.proxy.client();
    client.send("GET HTTP://A.Example:8080/x HTTP/1.1\r\nX: 1\r\nhost: b.example\r\nY: 2\r\n\r\n");
    let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";
    let (mut hop, head) = way.origin.answer(fresh);
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

    let way = Way::forward();
    let mut client = way.proxy.client();
    client.send(format!(
        "GET {}/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        way.base
    ));
    let (_hop, head) = way.origin.answer(fresh);
    assert_eq!(head.all("host"), [way.host.as_str()]);
    client.read_response();
}

#[test]
fn path_is_normalised_on_its_way() {
    Way::each(|way| {
        let mut hop = None;
        let mut client = way.proxy.client();
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
            client.send(way.get(path));
            let hop = hop.get_or_insert_with(|| way.origin.accept());
            let head = hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
            assert_eq!(head.start_line(), format!("GET {path} HTTP/1.1"));
            client.read_response();
        }
    });
}

#[test]
fn http10_request_without_host_has_none_or_a_wrong_one() {
    let way = Way::gateway();
    let mut client = way.proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let (_hop, head) = way.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(head.start_line(), "GET / HTTP/1.1");
    assert_eq!(head.field("host"), Some(&*way.proxy.address().to_string()));
    assert_eq!(client.read_response().status(), 204);
}

#[test]
fn forward_proxy_guesses_the_scheme_of_a_path() {
    let way = Way::forward();
    refused(
        &way,
        &format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", way.host),
    );
}
