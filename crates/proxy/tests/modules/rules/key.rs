//! `key`: what of a target and of preferences is in the cache key, and in the request.

use crate::ruled;
use crate::support::{Head, Setup};
use weir_measure::{Metric, RuleDeviation};

const QUERY: &str = r#"[
    {"path": ["/exact"], "key": {}},
    {"path": ["/none"], "key": {"keep_query": []}},
    {"key": {"drop_query": ["utm_*", "ref"], "sort_query": true}}
]"#;

const PREFERENCES: &str = r#"[{"key": {"languages": ["de", "en"], "codings": ["gzip"]}}]"#;

const FRESH: &str = "Cache-Control: max-age=60\r\n";

fn response(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nok")
}

/// What the next hop gets of a request.
fn forwarded(setup: &Setup, method: &str, path: &str, fields: &str, answer: &str) -> Head {
    let mut client = setup.proxy.client();
    client.send(setup.head(method, path, "1.1", fields));
    let (_, head) = setup.origin.answer(answer);
    assert_eq!(client.read_response().status(), 200);
    head
}

fn is_hit(setup: &Setup, path: &str, fields: &str) -> bool {
    let mut client = setup.proxy.client();
    let response = client.ask(setup.head("GET", path, "1.1", fields));
    response.is_hit()
}

fn path_of(head: &Head) -> String {
    let target = head.start_line().split(' ').nth(1).expect("a target");
    let path = target.find("://").map_or(target, |at| {
        let rest = &target[at + 3..];
        &rest[rest.find('/').expect("a path")..]
    });
    path.to_owned()
}

/// Or what the origin answers to one client by it would be for all others.
#[test]
fn next_hop_sees_no_parameter_that_the_key_lacks() {
    Setup::each_with(ruled(QUERY), |setup| {
        let check = |path: &str, expected: &str| {
            let head = forwarded(
                setup,
                "GET",
                path,
                "",
                &response("Cache-Control: no-store\r\n"),
            );
            assert_eq!(path_of(&head), expected);
        };
        check("/a", "/a");
        check("/a?utm_source=x&id=2&ref=y&b", "/a?b&id=2");
        check("/a?ref=1", "/a");
        check("/exact?ref=1", "/exact?ref=1");
        check("/none?a=1&b=2", "/none");
        // as it is written
        check("/a?re%66=1", "/a?re%66=1");
        setup
            .proxy
            .wait_for(Metric::RuleDeviations(RuleDeviation::Key), 3);
    });
}

#[test]
fn requests_that_differ_in_what_is_dropped_or_sorted_get_one_response() {
    Setup::each_with(ruled(QUERY), |setup| {
        forwarded(setup, "GET", "/a?b=1&a=2&utm_x=3", "", &response(FRESH));
        for path in ["/a?a=2&b=1", "/a?ref=z&a=2&b=1", "/a?b=1&utm_y&a=2"] {
            assert!(is_hit(setup, path, ""), "{path}");
        }
        forwarded(setup, "GET", "/a?a=2&b=2", "", &response(FRESH));
        forwarded(setup, "GET", "/exact?a=1&ref=1", "", &response(FRESH));
        assert!(is_hit(setup, "/exact?a=1&ref=1", ""));
        forwarded(setup, "GET", "/exact?a=1&ref=2", "", &response(FRESH));
        let mut client = setup.proxy.client();
        let found = client.ask(setup.get("/a?a=2&ref=q&b=1"));
        assert_eq!(found.head.cache_status(), "hit;ttl=60;detail=rule");
    });
}

#[test]
fn purge_finds_what_is_stored_for_any_spelling_of_the_target() {
    Setup::each_with(ruled(QUERY), |setup| {
        for path in ["/a?a=2&b=1", "/a?b=1&utm_x=7&a=2"] {
            forwarded(setup, "GET", "/a?b=1&a=2&utm_x=3", "", &response(FRESH));
            let purged = setup.proxy.purge(&format!("http://{}{path}", setup.host));
            assert_eq!(purged, 1, "{path}");
        }
        forwarded(setup, "GET", "/a?a=2&b=1", "", &response(FRESH));
    });
}

/// What was stored before there was a rule is purged, too.
#[test]
fn purge_finds_what_is_stored_for_the_target_as_it_is_written() {
    let setup = Setup::gateway();
    forwarded(&setup, "GET", "/a?utm_x=3", "", &response(FRESH));
    setup.proxy.reload(ruled(QUERY));
    let purged = setup
        .proxy
        .purge(&format!("http://{}/a?utm_x=3", setup.host));
    assert_eq!(purged, 1);
}

#[test]
fn unsafe_request_keeps_its_query_and_invalidates_what_is_stored_without() {
    Setup::each_with(ruled(QUERY), |setup| {
        for path in ["/a?utm_x=9&a=1", "/a?a=1"] {
            forwarded(setup, "GET", "/a?utm_x=1&a=1", "", &response(FRESH));
            assert!(is_hit(setup, "/a?a=1", ""));
            let content = "Content-Length: 0\r\n";
            let head = forwarded(setup, "POST", path, content, &response(""));
            assert_eq!(path_of(&head), path);
            // of a reference in its response, too
            forwarded(setup, "GET", "/a?a=1", "", &response(FRESH));
            let location = response("Location: /a?ref=2&a=1\r\n");
            forwarded(setup, "POST", "/other", content, &location);
            forwarded(setup, "GET", "/a?a=1", "", &response(FRESH));
            setup.proxy.purge(&format!("http://{}/a?a=1", setup.host));
        }
    });
}

#[test]
fn response_that_varies_on_preferences_is_stored_once_for_each_listed_one() {
    Setup::each_with(ruled(PREFERENCES), |setup| {
        let varying = response(&format!(
            "{FRESH}Vary: Accept-Language, Accept-Encoding\r\n"
        ));
        let german = "Accept-Language: de-AT, en;q=0.5\r\nAccept-Encoding: gzip, br\r\n";
        let head = forwarded(setup, "GET", "/", german, &varying);
        assert_eq!(head.all("accept-language"), ["de"]);
        assert_eq!(head.all("accept-encoding"), ["gzip"]);
        let same = "Accept-Language: fr, de;q=0.9\r\nAccept-Encoding: x-gzip\r\n";
        assert!(is_hit(setup, "/", same));
        let none = "Accept-Language: fr\r\n";
        let head = forwarded(setup, "GET", "/", none, &varying);
        assert!(!head.has("accept-language"), "{head:?}");
        assert_eq!(head.all("accept-encoding"), ["identity"]);
        assert!(is_hit(setup, "/", "Accept-Encoding: br\r\n"));
        // no parameter of the target was touched
        setup
            .proxy
            .wait_for(Metric::RuleDeviations(RuleDeviation::Key), 0);
    });
}
