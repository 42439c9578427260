//! Methods that a proxy treats in a way of their own (RFC 9110 §7.6.2, §9.3).

use crate::support::{ScriptedOrigin, Setup};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn options_asterisk_is_forwarded_as_asterisk() {
    let setup = Setup::gateway();
    let mut client = setup.proxy.client();
    client.send("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let (mut hop, head) = setup.origin.answer(OK);
    assert_eq!(head.start_line(), "OPTIONS * HTTP/1.1");
    assert_eq!(head.field("host"), Some("a.example"));
    assert_eq!(client.read_response().text(), "ok");
    // RFC 9112 §3.2.4: an absolute-form without a path means the same
    client.send("OPTIONS http://a.example HTTP/1.1\r\nHost: b\r\n\r\n");
    let head = hop.answer(OK);
    assert_eq!(head.start_line(), "OPTIONS * HTTP/1.1");
    assert_eq!(head.field("host"), Some("a.example"));
    client.read_response();

    let setup = Setup::forward();
    let mut client = setup.proxy.client();
    client.send(setup.head("OPTIONS", "", "1.1", ""));
    let (mut hop, head) = setup.origin.answer(OK);
    assert_eq!(head.start_line(), "OPTIONS * HTTP/1.1");
    client.read_response();
    client.send(setup.head("OPTIONS", "/", "1.1", ""));
    assert_eq!(hop.answer(OK).start_line(), "OPTIONS / HTTP/1.1");
    client.read_response();
}

#[test]
fn options_asterisk_to_forward_proxy_is_answered_locally() {
    let setup = Setup::forward();
    let mut client = setup.proxy.client();
    let request = format!("OPTIONS * HTTP/1.1\r\nHost: {}\r\n\r\n", setup.host);
    let response = client.ask(request);
    assert_eq!(response.status(), 200);
    assert!(
        response
            .head
            .field("allow")
            .expect("methods")
            .contains("GET")
    );
    setup.origin.expect_untouched();
    // the connection goes on
    client.send(setup.get("/"));
    let (_hop, _) = setup.origin.answer(OK);
    assert_eq!(client.read_response().text(), "ok");
}

#[test]
fn get_with_an_asterisk_target_is_refused_with_400() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let response = client.ask("GET * HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(response.status(), 400);
        client.expect_end();
        setup.origin.expect_untouched();
    });
}

#[test]
fn options_is_forwarded_only_as_far_as_max_forwards_allows() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        for content in ["", "Content-Length: 5\r\n"] {
            let fields = format!("Max-Forwards: 0\r\n{content}");
            client.send(setup.head("OPTIONS", "/", "1.1", &fields));
            if !content.is_empty() {
                client.send("GET /");
            }
            let response = client.read_response();
            assert_eq!(response.status(), 200);
            assert!(response.head.has("allow"));
            setup.origin.expect_untouched();
        }
        for (received, sent) in [("1", "0"), ("10", "9"), ("007", "6")] {
            let fields = format!("A: b\r\nmax-Forwards: {received}\r\nC: d\r\n");
            let mut client = setup.proxy.client();
            client.send(setup.head("OPTIONS", "/", "1.1", &fields));
            let (_, head) = setup.origin.answer(OK);
            assert_eq!(head.fields()[2], ("max-Forwards", sent));
            client.read_response();
        }
    });
}

#[test]
fn max_forwards_is_ignored_for_get_or_if_malformed() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", "Max-Forwards: 0\r\n"));
        let (mut hop, head) = setup.origin.answer(OK);
        assert_eq!(head.field("max-forwards"), Some("0"));
        client.read_response();
        // what is no number says nothing
        client.send(setup.head("OPTIONS", "/", "1.1", "Max-Forwards: -1\r\n"));
        assert_eq!(hop.answer(OK).field("max-forwards"), Some("-1"));
        client.read_response();
    });
}

#[test]
fn trace_is_refused_with_405_and_echoes_nothing() {
    Setup::each(|setup| {
        for fields in [
            "Cookie: secret\r\n",
            "Max-Forwards: 0\r\nCookie: secret\r\n",
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.head("TRACE", "/", "1.1", fields));
            let response = client.read_response();
            assert_eq!(response.status(), 405);
            assert!(
                !response
                    .head
                    .field("allow")
                    .expect("methods")
                    .contains("TRACE")
            );
            assert!(!response.text().contains("secret"));
            client.expect_end();
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn method_other_than_get_or_head_is_forwarded_unchanged() {
    Setup::each(|setup| {
        let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";
        let (_, mut hop) = setup.fetch("/", fresh);
        let mut client = setup.proxy.client();
        for method in ["get", "PROPFIND", "M-SEARCH", "!#$%&'*+.^_`|~", "POST"] {
            client.send(setup.head(method, "/", "1.1", "Content-Length: 0\r\n"));
            let head = hop.answer(OK);
            assert_eq!(head.start_line(), format!("{method} / HTTP/1.1"));
            assert!(!client.read_response().is_hit());
        }
    });
}

#[test]
fn get_with_content_bypasses_the_cache() {
    Setup::each(|setup| {
        let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nfat";
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", "Content-Length: 4\r\n") + "body");
        let (mut hop, _) = setup.origin.answer(fresh);
        hop.expect("body");
        assert_eq!(client.read_response().text(), "fat");
        client.send(setup.get("/"));
        hop.answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nthin");
        assert_eq!(client.read_response().text(), "thin");
        client.send(setup.head("GET", "/", "1.1", "Content-Length: 4\r\n") + "body");
        assert_eq!(hop.answer(fresh).length(), Some(4));
        hop.expect("body");
        assert_eq!(client.read_response().text(), "fat");
    });
}

#[test]
fn refused_next_hop_connection_is_answered_with_502() {
    let closed = ScriptedOrigin::new().address();
    let setup = Setup::forward();
    let mut client = setup.proxy.client();
    let response = client.ask(format!(
        "GET http://{closed}/ HTTP/1.1\r\nHost: {closed}\r\n\r\n"
    ));
    assert_eq!(response.status(), 502);
    let status = response.head.field("proxy-status").expect("a reason");
    assert!(status.contains("error=connection_refused"), "{status}");
    client.expect_nothing_more();
}
