//! `deny`.

use crate::support::{End, RawClient, Running, Setup, span};
use crate::{answer, ruled, rules};
use std::net::{Ipv4Addr, SocketAddr};
use weir_measure::Metric;
use weir_proxy::config::Listener;

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

/// An address that the configuration can name.
fn own_address() -> SocketAddr {
    let port = xtask::ports::take().expect("a port");
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The one listener, with `fields` beside its address.
fn listener_at(address: SocketAddr, fields: &str) -> Vec<Listener> {
    let listeners = format!(r#"[{{"address": "{address}"{fields}}}]"#);
    serde_json::from_str(&listeners).expect("listeners")
}

#[test]
fn reload_that_names_a_listener_takes_no_rule_off_its_open_connections() {
    let address = own_address();
    let setup = Setup::forward_with(|config| config.listeners = listener_at(address, ""));
    let mut client = setup.proxy.client();
    client.send(setup.get("/a"));
    let (mut hop, _) = setup.origin.answer(answer(""));
    assert_eq!(client.read_response().status(), 200);
    let by_address = address.to_string();
    for (name, rule) in [
        (r#", "name": "lan""#, "lan"),
        (r#", "name": "lan""#, &by_address),
        (r#", "name": "office""#, "office"),
        ("", &by_address),
    ] {
        let closed = rules(&format!(
            r#"[{{"listener": ["{rule}"], "deny": "closed"}}]"#
        ));
        setup.proxy.reload(|config| {
            config.listeners = listener_at(address, name);
            config.rules = closed;
        });
        assert_eq!(client.ask(setup.get("/a")).status(), 403, "{name}: {rule}");
    }
    // nor do rules go on for a name that another has now
    let closed = rules(r#"[{"listener": ["office"], "deny": "closed"}]"#);
    setup.proxy.reload(|config| {
        let other = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let others = listener_at(other, r#", "name": "office""#);
        config.listeners.extend(others);
        config.rules = closed;
    });
    client.send(setup.get("/b"));
    hop.read_head();
    hop.send(answer(""));
    assert_eq!(client.read_response().status(), 200);
}

#[test]
fn connections_of_a_listener_that_gets_another_mode_end() {
    let address = own_address();
    let gateway = r#", "mode": "gateway""#;
    let setup = Setup::gateway_with(|config| config.listeners = listener_at(address, gateway));
    let mut idle = setup.proxy.client();
    idle.send(setup.get("/a"));
    let (mut hop, _) = setup.origin.answer(answer(""));
    assert_eq!(idle.read_response().status(), 200);
    let mut waiting = setup.proxy.client();
    waiting.send(setup.get("/b"));
    hop.read_head();
    setup.proxy.reload(|config| {
        config.routes.clear();
        config.listeners = listener_at(address, "");
        config.rules = rules(r#"[{"listener": ["forward"], "deny": "closed"}]"#);
    });
    assert_eq!(idle.expect_end(), End::Closed);
    hop.send(answer(""));
    let response = waiting.read_response();
    assert_eq!(response.status(), 200);
    assert_eq!(response.head.field("connection"), Some("close"));
    assert_eq!(waiting.expect_end(), End::Closed);
    let mut next = RawClient::connect(address);
    let response = next.ask("GET http://a.example/c HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(response.status(), 403);
    assert!(response.text().contains("closed"), "{}", response.text());
}
