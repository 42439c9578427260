//! `request` and `bypass`: what the next hop sees, and what is stored.

use crate::support::Setup;
use crate::{answer, ruled};
use std::net::Ipv4Addr;

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn next_hop_sees_the_request_as_rules_change_it() {
    let change = ruled(
        r#"[{"request": ["remove Cookie", "set X-Real-IP: {client}", "add X-For: {host} {path}"]}]"#,
    );
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        let fields = "Cookie: secret\r\nX-Real-IP: forged\r\nX-For: before\r\nAccept: a/b\r\n";
        client.send(setup.head("GET", "/a/b?c=d", "1.1", fields));
        let (_, head) = setup.origin.answer(answer(""));
        assert_eq!(client.read_response().status(), 200);
        assert!(!head.has("cookie"), "{head:?}");
        assert_eq!(head.all("x-real-ip"), ["127.0.0.1"]);
        let host = setup.host.split(':').next().expect("a host");
        assert_eq!(head.all("x-for"), ["before", &format!("{host} /a/b")]);
        assert_eq!(head.all("accept"), ["a/b"]);
        assert!(head.start_line().contains("/a/b?c=d"), "{head:?}");
    });
}

/// Or one client could have the next hop answer all others by what the operator has not set.
#[test]
fn no_client_has_a_field_dropped_that_a_rule_sets() {
    let change = ruled(r#"[{"request": ["set X-Kind: all", "add X-For: {host}"]}]"#);
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        let fields = "Connection: x-kind, X-For\r\nX-Kind: mine\r\nConnection: X-Own\r\n\
                      X-Own: a\r\n";
        client.send(setup.head("GET", "/", "1.1", fields));
        let (_, head) = setup.origin.answer(answer(FRESH));
        client.read_response();
        assert_eq!(head.all("x-kind"), ["all"], "{head:?}");
        assert_eq!(head.all("x-for").len(), 1, "{head:?}");
        assert!(!head.has("x-own"), "{head:?}");
    });
}

/// What follows the content, or is written otherwise, is no way round a rule.
#[test]
fn next_hop_gets_no_other_line_of_a_field_that_a_rule_sets_or_removes() {
    let change =
        ruled(r#"[{"request": ["set X-Real-IP: {client}", "remove X-Secret", "add X-Added: 1"]}]"#);
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        let fields = "X_Real_IP: forged\r\nx-real_ip: forged\r\nX_Secret: s\r\n\
                      Transfer-Encoding: chunked\r\n";
        let trailers = "X-Real-IP: forged\r\nX_Real_IP: forged\r\nx-secret: s\r\n\
                        X-Added: 2\r\nX-Own: 3\r\n";
        client
            .send(setup.head("POST", "/", "1.1", fields) + "2\r\nok\r\n0\r\n" + trailers + "\r\n");
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(head.all("x-real-ip"), ["127.0.0.1"]);
        for name in ["x_real_ip", "x-real_ip", "x_secret", "x-secret"] {
            assert!(!head.has(name), "{head:?}");
        }
        let (content, trailers) = hop.read_chunks();
        assert_eq!(content, b"ok");
        assert_eq!(trailers, "X-Added: 2\r\nX-Own: 3\r\n");
        hop.send(answer(""));
        assert_eq!(client.read_response().status(), 200);
    });
}

#[test]
fn response_is_chosen_by_the_request_as_it_was_forwarded() {
    let change = ruled(r#"[{"path": ["/same"], "request": ["set X-Kind: all"]}]"#);
    Setup::each_with(change, |setup| {
        let get =
            |path: &str, kind: &str| setup.head("GET", path, "1.1", &format!("X-Kind: {kind}\r\n"));
        for (path, is_shared) in [("/same", true), ("/other", false)] {
            let mut client = setup.proxy.client();
            client.send(get(path, "one"));
            let varying = answer(&format!("{FRESH}Vary: X-Kind\r\nConnection: close\r\n"));
            setup.origin.answer(&varying);
            client.read_response();
            client.send(get(path, "two"));
            if is_shared {
                assert!(client.read_response().is_hit(), "{path}");
            } else {
                setup.origin.answer(&varying);
                assert!(!client.read_response().is_hit(), "{path}");
            }
        }
    });
}

/// RFC 9111 §3.5 is about the request that the origin got.
#[test]
fn credentials_that_a_rule_removes_or_sets_decide_as_the_next_hop_sees_them() {
    let change = ruled(
        r#"[{"path": ["/removed"], "request": ["remove Authorization"]},
            {"path": ["/set"], "request": ["set Authorization: Basic eA=="]}]"#,
    );
    Setup::each_with(change, |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/removed", "1.1", "Authorization: Basic eQ==\r\n"));
        let fields = format!("{FRESH}Connection: close\r\n");
        let (_, head) = setup.origin.answer(answer(&fields));
        assert!(!head.has("authorization"));
        assert!(client.read_response().verdict().contains(";stored"));
        assert!(client.ask(setup.get("/removed")).is_hit());
        client.send(setup.get("/set"));
        let (_, head) = setup.origin.answer(answer(&fields));
        assert_eq!(head.field("authorization"), Some("Basic eA=="));
        let verdict = client.read_response().verdict();
        assert!(verdict.ends_with("detail=authorization"), "{verdict}");
    });
}

#[test]
fn bypassing_request_uses_and_changes_nothing_that_is_stored() {
    let change = ruled(r#"[{"client": ["127.0.0.2"], "bypass": true}]"#);
    Setup::each_with(change, |setup| {
        let fields = format!("{FRESH}Connection: close\r\n");
        let (first, _) = setup.fetch("/", &answer(&fields));
        assert!(first.verdict().contains(";stored"), "{}", first.verdict());
        let mut other = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 2));
        other.send(setup.get("/"));
        let body = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nno";
        setup.origin.answer(body);
        let response = other.read_response();
        assert_eq!(response.text(), "no");
        let verdict = response.verdict();
        assert!(verdict.contains("fwd=bypass"), "{verdict}");
        assert!(verdict.ends_with("detail=rule"), "{verdict}");
        let hit = setup.proxy.client().ask(setup.get("/"));
        assert!(hit.is_hit());
        assert_eq!(hit.text(), "ok");
    });
}

/// The response to the request of some clients, as a rule has changed it, is theirs alone.
#[test]
fn response_to_a_request_changed_for_some_clients_is_not_given_to_others() {
    let change = ruled(
        r#"[{"client": ["127.0.0.2"], "request": ["set X-Staff: yes"], "bypass": true},
            {"request": ["remove X-Staff"]}]"#,
    );
    let setup = Setup::gateway_with(change);
    let mut staff = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 2));
    staff.send(setup.get("/"));
    let secret = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nsecret";
    let (mut hop, head) = setup.origin.answer(secret);
    assert_eq!(head.field("x-staff"), Some("yes"));
    assert_eq!(staff.read_response().text(), "secret");
    let mut other = setup.proxy.client();
    other.send(setup.head("GET", "/", "1.1", "X-Staff: yes\r\n"));
    let head = hop.answer(answer(FRESH));
    assert!(!head.has("x-staff"), "{head:?}");
    assert_eq!(other.read_response().text(), "ok");
    // nor is staff given what is stored for the others
    staff.send(setup.get("/"));
    hop.answer(secret);
    assert_eq!(staff.read_response().text(), "secret");
}

#[test]
fn request_that_a_rule_cannot_change_is_refused() {
    let change = ruled(r#"[{"request": ["set X-Path: {path}"]}]"#);
    Setup::each_with(change, |setup| {
        let long = format!("/{}", "a".repeat(4096));
        let response = setup.proxy.client().ask(setup.get(&long));
        assert_eq!(response.status(), 400);
        setup.origin.expect_untouched();
        let (response, _) = setup.fetch(&long[..4096], &answer(""));
        assert_eq!(response.status(), 200);
    });
}

#[test]
fn validation_in_the_background_has_the_changes_of_its_request() {
    let change = ruled(r#"[{"request": ["remove Cookie", "set X-A: 1"]}]"#);
    Setup::each_with(change, |setup| {
        let fields = "Cache-Control: max-age=10, stale-while-revalidate=60\r\nETag: \"a\"\r\n";
        let fields = format!("{fields}Connection: close\r\n");
        setup.fetch("/", &answer(&fields));
        setup.proxy.clock.advance_ms(20_000);
        let mut client = setup.proxy.client();
        let stale = client.ask(setup.head("GET", "/", "1.1", "Cookie: b\r\n"));
        assert!(stale.verdict().contains("stale-while-revalidate"));
        let (_, head) = setup.origin.answer(answer(&fields));
        assert_eq!(head.field("if-none-match"), Some("\"a\""));
        assert_eq!(head.field("x-a"), Some("1"));
        assert!(!head.has("cookie"));
    });
}
