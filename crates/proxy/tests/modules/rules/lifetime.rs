//! `lifetime`: how long a response is fresh that does not say so itself.

use crate::support::Setup;
use crate::{ruled, rules};

const DEBS: &str = r#"[
    {"path": ["/**/pool/**.deb"], "lifetime": {"default": "30d"}},
    {"status": ["404"], "lifetime": {"default": "1min"}},
    {"content_type": ["text/css"], "lifetime": {"default": "2h"}},
    {"path": ["/never"], "lifetime": {"default": "0s"}}
]"#;

const DAY_MS: u64 = 24 * 3600 * 1000;

fn response(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nok")
}

/// Fetches `path`, and says whether it is a hit afterwards, and with how much freshness left.
fn fetch(setup: &Setup, path: &str, answer: &str) -> Option<String> {
    setup.fetch(path, answer);
    let mut client = setup.proxy.client();
    client.send(setup.get(path));
    // what is asked for next shows whether that was forwarded
    client.send(setup.head("GET", "/last", "1.1", "Connection: close\r\n"));
    let last = response("200 OK", "Cache-Control: no-store\r\n");
    let (_, head) = setup.origin.answer(&last);
    let is_hit = head.start_line().contains("/last");
    if !is_hit {
        setup.origin.answer(&last);
    }
    let found = client.read_response();
    client.read_response();
    assert_eq!(found.is_hit(), is_hit, "{path}");
    is_hit.then(|| found.head.cache_status().to_owned())
}

#[test]
fn response_without_a_lifetime_is_fresh_as_long_as_a_rule_says() {
    Setup::each_with(ruled(DEBS), |setup| {
        let check = |path: &str, answer: &str, expected: Option<&str>| {
            let found = fetch(setup, path, answer);
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        let plain = response("200 OK", "");
        check("/debian/pool/a.deb", &plain, Some("hit;ttl=2592000"));
        check("/debian/pool/a.txt", &plain, None);
        let modified = response("200 OK", "Last-Modified: Mon, 01 Dec 2025 00:00:00 GMT\r\n");
        check("/pool/b.deb", &modified, Some("hit;ttl=2592000"));
        check("/never", &modified, None);
        let css = response("200 OK", "Content-Type: text/css; charset=utf-8\r\n");
        check("/a.css", &css, Some("hit;ttl=7200"));
        check(
            "/missing",
            &response("404 Not Found", ""),
            Some("hit;ttl=60"),
        );
        // an error is not kept because successes are
        check("/pool/c.deb", &response("410 Gone", ""), None);
        check(
            "/pool/d.deb",
            &response("500 Internal Server Error", ""),
            None,
        );
        check("/pool/e.deb", &response("302 Found", ""), None);
    });
}

/// What RFC 9111 §3 forbids to store, and what the origin says of freshness, stays in force.
#[test]
fn what_the_response_says_itself_is_stronger_than_a_rule() {
    Setup::each_with(ruled(DEBS), |setup| {
        let check = |path: &str, fields: &str, expected: Option<&str>| {
            let found = fetch(setup, path, &response("200 OK", fields));
            assert_eq!(found.as_deref(), expected, "{fields}");
        };
        check(
            "/pool/1.deb",
            "Cache-Control: max-age=10\r\n",
            Some("hit;ttl=10"),
        );
        check("/pool/2.deb", "Expires: 0\r\n", None);
        check("/pool/3.deb", "Cache-Control: no-store\r\n", None);
        check("/pool/4.deb", "Cache-Control: private\r\n", None);
        check("/pool/5.deb", "Cache-Control: no-cache\r\n", None);
        check("/pool/6.deb", "Set-Cookie: a=b\r\n", None);
        check("/pool/7.deb", "Vary: *\r\n", None);
    });
}

#[test]
fn response_to_a_request_with_credentials_is_not_stored_by_a_rule() {
    Setup::each_with(ruled(DEBS), |setup| {
        let mut client = setup.proxy.client();
        let get = || setup.head("GET", "/pool/a.deb", "1.1", "Authorization: Basic eA==\r\n");
        client.send(get());
        setup.origin.answer(response("200 OK", ""));
        let verdict = client.read_response().verdict();
        assert!(verdict.ends_with("detail=authorization"), "{verdict}");
    });
}

#[test]
fn validated_response_is_fresh_as_long_again() {
    Setup::each_with(ruled(DEBS), |setup| {
        setup.fetch("/pool/a.deb", &response("200 OK", "ETag: \"a\"\r\n"));
        setup.proxy.clock.advance_ms(31 * DAY_MS);
        let mut client = setup.proxy.client();
        client.send(setup.get("/pool/a.deb"));
        let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: close\r\n\r\n";
        let (_, head) = setup.origin.answer(not_modified);
        assert_eq!(head.field("if-none-match"), Some("\"a\""));
        assert_eq!(client.read_response().text(), "ok");
        setup.proxy.clock.advance_ms(29 * DAY_MS);
        let hit = setup.proxy.client().ask(setup.get("/pool/a.deb"));
        assert_eq!(hit.head.cache_status(), "hit;ttl=86400");
    });
}

#[test]
fn reload_with_other_rules_is_for_responses_that_come_after_it() {
    let setup = Setup::gateway_with(ruled(DEBS));
    let plain = response("200 OK", "");
    assert!(fetch(&setup, "/pool/a.deb", &plain).is_some());
    setup.proxy.reload(|config| config.rules = rules("[]"));
    assert!(fetch(&setup, "/pool/b.deb", &plain).is_none());
    assert!(setup.proxy.client().ask(setup.get("/pool/a.deb")).is_hit());
}

#[test]
fn packages_of_a_mirror_that_says_nothing_are_hits_and_their_lists_are_validated() {
    let mirrors = r#"[{"preset": "packages", "host": ["a.example", "127.0.0.1"]}]"#;
    Setup::each_with(ruled(mirrors), |setup| {
        let plain = response("200 OK", "ETag: \"a\"\r\n");
        let deb = "/debian/pool/main/b/bash/bash_5.2_amd64.deb";
        assert_eq!(
            fetch(setup, deb, &plain).as_deref(),
            Some("hit;ttl=31536000")
        );
        assert_eq!(fetch(setup, "/debian/dists/stable/InRelease", &plain), None);
        assert_eq!(fetch(setup, "/debian/README", &plain), None);
    });
}
