//! `deny`.

use crate::support::{End, Running, Setup, span};
use crate::{answer, ruled, rules};
use std::net::Ipv4Addr;
use weir_measure::Metric;

const CLOSED: &str = r#"[
    {"path": ["/open"], "deny": "off"},
    {"path": ["/**.exe", "/closed", "/open"], "deny": "closed during lessons"}
]"#;

#[test]
fn request_that_a_rule_denies_is_answered_here_with_its_text() {
    Setup::each_with(ruled(CLOSED), |setup| {
        let mut client = setup.proxy.client();
        for (number, path) in ["/closed", "/closed/x?y", "/a/b.exe"].iter().enumerate() {
            let response = client.ask(setup.get(path));
            assert_eq!(response.status(), 403, "{path}");
            assert!(response.text().contains("closed during lessons"), "{path}");
            assert!(
                response.verdict().ends_with("detail=rule"),
                "{}",
                response.verdict()
            );
            assert_eq!(setup.proxy.count(Metric::RuleDenied), number as u64 + 1);
        }
        setup.origin.expect_untouched();
        // the connection goes on, and what no rule is for is served
        client.send(setup.get("/other"));
        setup.origin.answer(answer("Cache-Control: max-age=60\r\n"));
        assert_eq!(client.read_response().status(), 200);
        assert_eq!(setup.proxy.count(Metric::RuleDenied), 3);
    });
}

#[test]
fn earlier_rule_with_off_is_an_exception() {
    Setup::each_with(ruled(CLOSED), |setup| {
        let (response, _) = setup.fetch("/open/a.exe", &answer(""));
        assert_eq!(response.status(), 200);
    });
}

/// RFC 9112 §9.6.
#[test]
fn connection_of_a_denied_request_closes_if_its_client_asks_for_that() {
    Setup::each_with(ruled(CLOSED), |setup| {
        for (version, fields) in [("1.1", "Connection: close\r\n"), ("1.0", "")] {
            let mut client = setup.proxy.client();
            let denied = setup.head("GET", "/closed", version, fields);
            client.send(denied + &setup.get("/other"));
            assert_eq!(client.read_response().status(), 403);
            let (rest, _) = client.read_to_end();
            assert_eq!(rest, b"", "{version}");
        }
        setup.origin.expect_untouched();
    });
}

/// What follows its head might be taken for a request.
#[test]
fn connection_of_a_denied_request_with_content_closes() {
    Setup::each_with(ruled(CLOSED), |setup| {
        let mut client = setup.proxy.client();
        let inner = setup.get("/other");
        let fields = format!("Content-Length: {}\r\n", inner.len());
        client.send(setup.head("POST", "/closed", "1.1", &fields) + &inner);
        assert_eq!(client.read_response().status(), 403);
        let (rest, _) = client.read_to_end();
        assert_eq!(rest, b"");
        setup.origin.expect_untouched();
    });
}

#[test]
fn stored_response_is_not_given_to_a_client_that_is_denied() {
    let change = ruled(r#"[{"client": ["127.0.0.2"], "deny": "not you"}]"#);
    let setup = Setup::gateway_with(change);
    setup.fetch("/", &answer("Cache-Control: max-age=60\r\n"));
    let mut other = setup.proxy.client_at(Ipv4Addr::new(127, 0, 0, 2));
    assert_eq!(other.ask(setup.get("/")).status(), 403);
    assert!(setup.proxy.client().ask(setup.get("/")).is_hit());
}

#[test]
fn tunnel_is_denied_by_the_host_of_its_target() {
    let proxy = Running::forward_with(|config| {
        ruled(
            r#"[{"host": ["*.example"], "path": ["/"], "deny": "by path"},
                {"host": ["a.example"], "deny": "by host"}]"#,
        )(config);
        config.limits.next_hop_idle = span("1h");
    });
    let mut client = proxy.client();
    client.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
    let response = client.read_response();
    assert_eq!(response.status(), 403);
    assert!(response.text().contains("by host"), "{}", response.text());
}

#[test]
fn reload_puts_other_rules_in_force() {
    let setup = Setup::gateway_with(ruled(CLOSED));
    let mut client = setup.proxy.client();
    assert_eq!(client.ask(setup.get("/closed")).status(), 403);
    setup.proxy.reload(|config| {
        config.rules = rules(r#"[{"path": ["/other"], "deny": "now this"}]"#);
    });
    assert_eq!(client.ask(setup.get("/other")).status(), 403);
    client.send(setup.get("/closed"));
    setup.origin.answer(answer(""));
    assert_eq!(client.read_response().status(), 200);
    setup.proxy.reload(|config| config.rules.clear());
    client.send(setup.head("GET", "/other", "1.1", "Connection: close\r\n"));
    setup.origin.answer(answer("Connection: close\r\n"));
    assert_eq!(client.read_response().status(), 200);
    assert_eq!(client.expect_end(), End::Closed);
}
