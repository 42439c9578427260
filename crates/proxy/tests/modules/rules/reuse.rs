//! `lifetime.forced` and `stale_for`: how long a stored response is used, whatever it says.

use crate::support::Setup;
use crate::{ruled, rules};
use weir_measure::{Metric, RuleDeviation};

const FORCED: &str = r#"[
    {"path": ["/short"], "lifetime": {"forced": "10s"}},
    {"status": ["5xx"], "lifetime": {"forced": "1h"}},
    {"lifetime": {"forced": "1h"}}
]"#;

const STALE: &str = r#"[{"path": ["/kept"], "stale_for": "1h"}]"#;

fn response(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nok")
}

/// Waits until rules have departed so often from RFC 9111: a request may be counted when its client
/// has its response already.
fn wait_for(setup: &Setup, what: RuleDeviation, count: u64) {
    setup.proxy.wait_for(Metric::RuleDeviations(what), count);
}

fn verdict(setup: &Setup, path: &str, fields: &str) -> String {
    let mut client = setup.proxy.client();
    let response = client.ask(setup.head("GET", path, "1.1", fields));
    response.head.cache_status().to_owned()
}

/// The verdict of a request that is forwarded, and answered so.
fn forwarded(setup: &Setup, path: &str, fields: &str, answer: &str) -> String {
    let mut client = setup.proxy.client();
    client.send(setup.head("GET", path, "1.1", fields));
    setup.origin.answer(answer);
    client.read_response().head.cache_status().to_owned()
}

#[test]
fn forced_lifetime_counts_from_when_the_response_is_stale_by_itself() {
    Setup::each_with(ruled(FORCED), |setup| {
        setup.fetch("/", &response("200 OK", "Cache-Control: max-age=10\r\n"));
        assert_eq!(verdict(setup, "/", ""), "hit;ttl=3600");
        setup.proxy.clock.advance_ms(9_000);
        assert_eq!(verdict(setup, "/", ""), "hit;ttl=3591");
        wait_for(setup, RuleDeviation::LifetimeForced, 0);
        setup.proxy.clock.advance_ms(1_000);
        assert_eq!(verdict(setup, "/", ""), "hit;ttl=3590;detail=rule");
        wait_for(setup, RuleDeviation::LifetimeForced, 1);
        setup.proxy.clock.advance_ms(3_590_000);
        let answer = response("200 OK", "Cache-Control: max-age=10\r\n");
        assert!(forwarded(setup, "/", "", &answer).starts_with("fwd=stale"));
        wait_for(setup, RuleDeviation::LifetimeForced, 1);
    });
}

#[test]
fn response_that_nothing_else_could_reuse_is_stored_for_its_forced_lifetime() {
    Setup::each_with(ruled(FORCED), |setup| {
        setup.fetch("/", &response("200 OK", "Cache-Control: max-age=0\r\n"));
        assert_eq!(verdict(setup, "/", ""), "hit;ttl=3600;detail=rule");
    });
}

#[test]
fn forced_lifetime_has_nothing_stored_that_http_forbids() {
    Setup::each_with(ruled(FORCED), |setup| {
        for (number, fields) in [
            "Cache-Control: no-store\r\n",
            "Cache-Control: private, max-age=60\r\n",
            "Vary: *\r\n",
            "Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n",
        ]
        .iter()
        .enumerate()
        {
            let (path, answer) = (format!("/{number}"), response("200 OK", fields));
            setup.fetch(&path, &answer);
            let again = forwarded(setup, &path, "", &answer);
            assert!(again.starts_with("fwd=uri-miss"), "{fields}: {again}");
        }
        let credentials = "Authorization: Basic eA==\r\n";
        let answer = response("200 OK", "Cache-Control: max-age=60\r\n");
        let verdict = forwarded(setup, "/auth", credentials, &answer);
        assert!(verdict.ends_with("detail=authorization"), "{verdict}");
        // to be validated each time
        let answer = response("200 OK", "Cache-Control: no-cache\r\nETag: \"a\"\r\n");
        setup.fetch("/no-cache", &answer);
        assert!(forwarded(setup, "/no-cache", "", &answer).starts_with("fwd=stale"));
        for deviation in [RuleDeviation::LifetimeForced, RuleDeviation::Stale] {
            wait_for(setup, deviation, 0);
        }
    });
}

/// Their own lifetime, of which a rule would make another, is what makes them safe to share.
#[test]
fn response_that_only_its_own_lifetime_lets_others_have_is_not_stored_for_a_rule() {
    const RULES: &str = r#"[
        {"path": ["/forced"], "lifetime": {"forced": "1h"}},
        {"path": ["/stale"], "stale_for": "7d"}
    ]"#;
    Setup::each_with(ruled(RULES), |setup| {
        for (number, (fields, cookie)) in [
            ("Authorization: Basic eA==\r\n", ""),
            ("", "Set-Cookie: a=b\r\n"),
        ]
        .iter()
        .enumerate()
        {
            for (kind, control) in [
                ("forced", "s-maxage=0"),
                ("forced", "public, max-age=0"),
                ("stale", "public, max-age=0"),
            ] {
                let path = format!("/{kind}/{number}/{}", control.len());
                let answer = response("200 OK", &format!("Cache-Control: {control}\r\n{cookie}"));
                forwarded(setup, &path, fields, &answer);
                let again = forwarded(setup, &path, "", &answer);
                assert!(again.starts_with("fwd=uri-miss"), "{path}: {again}");
            }
        }
    });
}

/// Stored to be validated each time: for each client, and also if the rule came later.
#[test]
fn stored_response_that_only_its_own_lifetime_lets_others_have_is_validated_under_a_rule() {
    for (fields, cookie) in [
        ("Authorization: Basic eA==\r\n", ""),
        ("", "Set-Cookie: a=b\r\n"),
    ] {
        let setup = Setup::gateway_with(|_| {});
        let control = format!("Cache-Control: public, max-age=0\r\nETag: \"a\"\r\n{cookie}");
        let answer = response("200 OK", &control);
        let stored = forwarded(&setup, "/", fields, &answer);
        assert!(stored.ends_with("stored"), "{stored}");
        setup.proxy.reload(|config| {
            config.rules = rules(r#"[{"lifetime": {"forced": "1h"}, "stale_for": "7d"}]"#);
        });
        let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: close\r\n\r\n";
        for answer in [not_modified, not_modified, &answer] {
            let again = forwarded(&setup, "/", "", answer);
            assert!(again.starts_with("fwd=stale"), "{fields}{cookie}: {again}");
        }
    }
}

#[test]
fn forced_lifetime_that_is_shorter_has_the_response_validated_earlier() {
    Setup::each_with(ruled(FORCED), |setup| {
        let answer = response("200 OK", "Cache-Control: max-age=3600\r\nETag: \"a\"\r\n");
        setup.fetch("/short", &answer);
        setup.proxy.clock.advance_ms(10_000);
        assert!(forwarded(setup, "/short", "", &answer).starts_with("fwd=stale"));
        wait_for(setup, RuleDeviation::LifetimeForced, 0);
    });
}

#[test]
fn error_is_fresh_for_a_minute_at_most_by_a_rule() {
    Setup::each_with(ruled(FORCED), |setup| {
        let answer = response("500 Internal Server Error", "Cache-Control: max-age=5\r\n");
        setup.fetch("/", &answer);
        setup.proxy.clock.advance_ms(59_000);
        assert_eq!(verdict(setup, "/", ""), "hit;ttl=1;detail=rule");
        setup.proxy.clock.advance_ms(1_000);
        assert!(forwarded(setup, "/", "", &answer).starts_with("fwd=stale"));
    });
}

#[test]
fn stale_response_is_served_while_it_is_validated_as_long_as_a_rule_says() {
    Setup::each_with(ruled(STALE), |setup| {
        let answer = response("200 OK", "Cache-Control: max-age=10\r\nETag: \"a\"\r\n");
        setup.fetch("/kept", &answer);
        setup.proxy.clock.advance_ms(20_000);
        assert_eq!(verdict(setup, "/kept", ""), "hit;ttl=-10;detail=rule");
        wait_for(setup, RuleDeviation::Stale, 1);
        // the validation in the background
        let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: close\r\n\r\n";
        let (_, head) = setup.origin.answer(not_modified);
        assert!(head.has("if-none-match"));
        setup.proxy.wait_for(Metric::Freshened, 1);
        setup.proxy.clock.advance_ms(3_611_000);
        assert!(forwarded(setup, "/kept", "", &answer).starts_with("fwd=stale"));
        // without a rule
        setup.fetch("/other", &answer);
        setup.proxy.clock.advance_ms(20_000);
        assert!(forwarded(setup, "/other", "", &answer).starts_with("fwd=stale"));
        wait_for(setup, RuleDeviation::Stale, 1);
    });
}

#[test]
fn error_of_a_validation_does_not_replace_what_a_rule_has_served_stale_meanwhile() {
    Setup::each_with(ruled(STALE), |setup| {
        let answer = response("200 OK", "Cache-Control: max-age=10\r\nETag: \"a\"\r\n");
        setup.fetch("/kept", &answer);
        setup.proxy.clock.advance_ms(20_000);
        assert_eq!(verdict(setup, "/kept", ""), "hit;ttl=-10;detail=rule");
        let failing = response("503 Service Unavailable", "Cache-Control: max-age=600\r\n");
        setup.origin.answer(&failing);
        // once it is over
        let received = (answer.len() + failing.len()) as u64;
        setup.proxy.wait_for(Metric::BytesFromNextHops, received);
        assert_eq!(setup.proxy.count(Metric::Stored), 1);
        assert_eq!(verdict(setup, "/kept", ""), "hit;ttl=-10;detail=rule");
    });
}

/// As if it were stored already.
#[test]
fn requests_are_collapsed_for_a_response_that_only_a_rule_has_answer_others() {
    Setup::each_with(ruled(FORCED), |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(2, &setup.get("/"));
        hop.send(response("200 OK", "Cache-Control: max-age=0\r\n"));
        assert!(leader.read_response().verdict().contains(";stored"));
        for mut follower in followers {
            let response = follower.read_response();
            assert_eq!(response.text(), "ok");
            let verdict = response.verdict();
            assert!(verdict.contains("collapsed"), "{verdict}");
            assert!(verdict.ends_with("detail=rule"), "{verdict}");
        }
        wait_for(setup, RuleDeviation::LifetimeForced, 2);
        setup.origin.expect_untouched();
        // what is still on its way is joined
        let (_leader, mut hop) = setup.lead(&setup.get("/large"));
        hop.send(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nContent-Length: 200000\r\n\r\nbegin",
        );
        setup.proxy.wait_for(Metric::FetchesUnderWay, 1);
        let mut joined = setup.proxy.client();
        joined.send(setup.get("/large"));
        assert!(joined.read_head().cache_status().ends_with("detail=rule"));
        setup.origin.expect_untouched();
    });
}

#[test]
fn stale_response_is_served_in_place_of_an_error_as_long_as_a_rule_says() {
    Setup::each_with(ruled(STALE), |setup| {
        setup.fetch(
            "/kept",
            &response("200 OK", "Cache-Control: max-age=10\r\n"),
        );
        setup.proxy.clock.advance_ms(20_000);
        let failing = response("503 Service Unavailable", "");
        // with max-age it is not served before the next hop has answered
        let fields = "Cache-Control: max-age=1000\r\n";
        let verdict = forwarded(setup, "/kept", fields, &failing);
        assert_eq!(verdict, "fwd=stale;fwd-status=503;ttl=-10;detail=rule");
        wait_for(setup, RuleDeviation::Stale, 1);
    });
}

#[test]
fn response_that_must_not_be_served_stale_is_not_by_a_rule() {
    Setup::each_with(ruled(STALE), |setup| {
        for fields in [
            "Cache-Control: max-age=10, must-revalidate\r\n",
            "Cache-Control: max-age=10, proxy-revalidate\r\n",
            "Cache-Control: s-maxage=10\r\n",
        ] {
            let answer = response("200 OK", fields);
            let url = format!("http://{}/kept", setup.host);
            setup.proxy.purge(&url);
            setup.fetch("/kept", &answer);
            setup.proxy.clock.advance_ms(20_000);
            let verdict = forwarded(setup, "/kept", "", &answer);
            assert!(verdict.starts_with("fwd=stale"), "{fields}: {verdict}");
        }
        wait_for(setup, RuleDeviation::Stale, 0);
    });
}

#[test]
fn rules_of_use_are_those_that_are_in_force_now() {
    let setup = Setup::gateway_with(ruled(FORCED));
    let answer = response("200 OK", "Cache-Control: max-age=10\r\n");
    setup.fetch("/", &answer);
    setup.proxy.clock.advance_ms(20_000);
    assert_eq!(verdict(&setup, "/", ""), "hit;ttl=3580;detail=rule");
    setup.proxy.reload(|config| config.rules = rules("[]"));
    assert!(forwarded(&setup, "/", "", &answer).starts_with("fwd=stale"));
}
