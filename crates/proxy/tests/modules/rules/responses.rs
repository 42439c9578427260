//! `response`: what clients see, and what is stored.

use crate::support::Setup;
use crate::{answer, ruled};
use std::net::Ipv4Addr;

const FRESH: &str = "Cache-Control: max-age=60\r\nServer: origin\r\nETag: \"a\"\r\n";

#[test]
fn client_sees_changed_fields_whether_the_response_is_stored_or_not() {
    let change = ruled(
        r#"[{"response": ["remove Server", "set X-Served: {client} {host}", "add X-Path: {path}"]}]"#,
    );
    Setup::each_with(change, |setup| {
        let host = setup.host.split(':').next().expect("a host");
        let check = |response: &crate::support::Response| {
            assert!(!response.head.has("server"), "{:?}", response.head);
            let served = format!("127.0.0.1 {host}");
            assert_eq!(response.head.all("x-served"), [&*served]);
            assert_eq!(response.head.all("x-path"), ["/a"]);
        };
        let fields = format!("{FRESH}X-Served: origin\r\nConnection: close\r\n");
        let (miss, _) = setup.fetch("/a?b", &answer(&fields));
        check(&miss);
        let mut client = setup.proxy.client();
        let hit = client.ask(setup.get("/a?b"));
        assert!(hit.is_hit());
        check(&hit);
        let fields = "If-None-Match: \"a\"\r\n";
        let not_modified = client.ask(setup.head("GET", "/a?b", "1.1", fields));
        assert_eq!(not_modified.status(), 304);
        check(&not_modified);
    });
}

#[test]
fn what_a_rule_adds_for_one_client_is_not_stored() {
    let change = ruled(r#"[{"client": ["127.0.0.2"], "response": ["set X-Client: {client}"]}]"#);
    let setup = Setup::gateway_with(change);
    let mut one = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 2));
    one.send(setup.get("/"));
    setup.origin.answer(answer(FRESH));
    let miss = one.read_response();
    assert_eq!(miss.head.field("x-client"), Some("127.0.0.2"));
    assert!(miss.verdict().contains(";stored"));
    let hit = setup.proxy.client().ask(setup.get("/"));
    assert!(hit.is_hit() && !hit.head.has("x-client"), "{:?}", hit.head);
    assert_eq!(hit.head.field("server"), Some("origin"));
}

#[test]
fn change_depends_on_status_and_content_type_as_they_are_sent() {
    let change = ruled(
        r#"[{"status": ["404"], "response": ["set X-Rule: missing"]},
            {"content_type": ["image/*"], "response": ["set X-Rule: image"]},
            {"path": ["/plain"], "response": []},
            {"response": ["set X-Rule: other"]}]"#,
    );
    Setup::each_with(change, |setup| {
        let check = |path: &str, status: &str, content_type: &str, expected: Option<&str>| {
            let response = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n\
                 Cache-Control: max-age=60\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            );
            let (miss, _) = setup.fetch(path, &response);
            assert_eq!(miss.head.field("x-rule"), expected, "{path}");
            let hit = setup.proxy.client().ask(setup.get(path));
            assert!(hit.is_hit(), "{path}");
            assert_eq!(hit.head.field("x-rule"), expected, "{path}");
        };
        check("/1", "404 Not Found", "image/png", Some("missing"));
        check("/2", "200 OK", "Image/PNG", Some("image"));
        check("/3", "200 OK", "text/html", Some("other"));
        check("/plain", "200 OK", "text/html", None);
    });
}

#[test]
fn field_that_a_rule_replaces_comes_neither_before_nor_behind_the_response() {
    let change = ruled(
        r#"[{"status": ["404"], "response": ["remove X-Missing"]},
            {"response": ["remove X-Secret", "set X-Set: rule", "add X-Added: rule"]},
            {"response": ["remove Link"]}]"#,
    );
    Setup::each_with(change, |setup| {
        let fields = "X-Secret: s\r\nx_secret: s\r\nX-Set: s\r\nX-Missing: s\r\nX-Added: 1\r\n\
                      Link: </a>\r\n";
        for (number, control) in ["max-age=60", "no-store"].iter().enumerate() {
            let mut client = setup.proxy.client();
            client.send(setup.get(&format!("/{number}")));
            let mut hop = setup.origin.accept();
            hop.read_head();
            hop.send(format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n"));
            let early = client.read_head();
            assert_eq!(early.status(), 103);
            hop.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: {control}\r\n{fields}\
                 Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{fields}\r\n"
            ));
            let response = client.read_response();
            assert_eq!(response.trailers, "X-Added: 1\r\nLink: </a>\r\n");
            for head in [&early, &response.head] {
                assert!(!head.has("x-secret") && !head.has("x_secret"), "{head:?}");
                assert!(head.has("x-added") && head.has("link"), "{head:?}");
            }
            assert!(!early.has("x-missing") && !early.has("x-set"));
            assert_eq!(response.head.all("x-set"), ["rule"]);
            assert!(response.head.has("x-missing"));
        }
    });
}

#[test]
fn head_of_a_switch_of_protocols_is_changed_as_that_of_any_response() {
    let change = ruled(r#"[{"response": ["remove X-Secret", "set X-Set: rule"]}]"#);
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
        client.send(setup.head("GET", "/", "1.1", fields));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             X-Secret: s\r\n\r\nfirst words",
        );
        let head = client.read_head();
        assert_eq!(
            (head.status(), head.field("upgrade")),
            (101, Some("websocket"))
        );
        assert_eq!(head.all("x-set"), ["rule"]);
        assert!(!head.has("x-secret"), "{head:?}");
        client.expect("first words");
    });
}

/// A cookie shows that a response is for one client; without it, what it has for that client would
/// look as if it were for all.
#[test]
fn response_that_loses_its_cookie_stays_private_unless_its_origin_shares_it() {
    let change = ruled(r#"[{"path": ["/removed"], "response": ["remove set_cookie"]}]"#);
    Setup::each_with(change, |setup| {
        let check = |path: &str, control: &str, is_private: bool| {
            let fields = format!(
                "Cache-Control: {control}\r\nSet-Cookie: a=b\r\nCDN-Cache-Control: max-age=60\r\n\
                 Surrogate-Control: max-age=60\r\nConnection: close\r\n"
            );
            let (response, _) = setup.fetch(path, &answer(&fields));
            let head = &response.head;
            let controls = head.all("cache-control");
            let expected = [control, "private"];
            assert_eq!(controls, expected[..1 + usize::from(is_private)], "{path}");
            assert_eq!(head.has("cdn-cache-control"), !is_private, "{path}");
            assert_eq!(head.has("surrogate-control"), !is_private, "{path}");
            assert_eq!(head.has("set-cookie"), path.starts_with("/kept"));
        };
        check("/removed/1", "max-age=60", true);
        check("/removed/2", "public, max-age=60", false);
        check("/removed/3", "s-maxage=60", false);
        check("/kept", "max-age=60", false);
    });
}

#[test]
fn response_too_large_for_the_fast_path_is_changed_too() {
    let change = ruled(r#"[{"response": ["set X-Rule: yes", "remove Server"]}]"#);
    Setup::each_with(change, |setup| {
        let content = "a".repeat(300_000);
        let response = format!(
            "HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {}\r\nConnection: close\r\n\r\n{content}",
            content.len()
        );
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let sending = hop.sending(response);
        let miss = client.read_response();
        sending.join().expect("sent");
        let hit = client.ask(setup.get("/"));
        assert!(hit.is_hit());
        for response in [miss, hit] {
            assert_eq!(response.text().len(), content.len());
            assert_eq!(response.head.field("x-rule"), Some("yes"));
            assert!(!response.head.has("server"));
        }
    });
}
