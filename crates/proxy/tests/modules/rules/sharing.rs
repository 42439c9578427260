//! `ignore` of what responses say, and `share`: what is stored by that, and for whom.

use crate::support::{Response, Setup};
use crate::{ruled, rules};
use weir_measure::{Metric, RuleDeviation};

const USES: &str = r#"[
    {"path": ["/kept"], "ignore": []},
    {"ignore": ["response no-cache", "response must-revalidate", "response max-age",
                "response expires"],
     "lifetime": {"default": "100s"}}
]"#;

const UNSAFE: &str = r#"[{
    "path": ["/public"], "share": "unsafe", "lifetime": {"default": "100s"},
    "ignore": ["request authorization", "response private", "response no-store",
               "response set-cookie"]
}]"#;

fn response(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\nConnection: close\r\n\r\nok")
}

fn wait_for(setup: &Setup, what: RuleDeviation, count: u64) {
    setup.proxy.wait_for(Metric::RuleDeviations(what), count);
}

fn hit(setup: &Setup, path: &str, fields: &str) -> Response {
    let mut client = setup.proxy.client();
    client.ask(setup.head("GET", path, "1.1", fields))
}

/// The verdict of a request that is forwarded, and answered so.
fn forwarded(setup: &Setup, path: &str, fields: &str, answer: &str) -> String {
    let mut client = setup.proxy.client();
    client.send(setup.head("GET", path, "1.1", fields));
    setup.origin.answer(answer);
    client.read_response().head.cache_status().to_owned()
}

#[test]
fn response_is_used_as_if_it_did_not_say_what_a_rule_ignores() {
    Setup::each_with(ruled(USES), |setup| {
        for (number, fields) in [
            "Cache-Control: no-cache\r\nETag: \"a\"\r\n",
            "Cache-Control: max-age=0, must-revalidate\r\n",
            "Expires: 0\r\n",
        ]
        .iter()
        .enumerate()
        {
            let (path, answer) = (format!("/{number}"), response(fields));
            let stored = forwarded(setup, &path, "", &answer);
            assert_eq!(stored, "fwd=uri-miss;fwd-status=200;stored;detail=rule");
            let found = hit(setup, &path, "");
            assert_eq!(found.head.cache_status(), "hit;ttl=100;detail=rule");
            // its client gets what the origin said
            let said = fields.split_once("\r\n").expect("a field").0;
            assert!(found.head.text.contains(said), "{}", found.head.text);
            wait_for(
                setup,
                RuleDeviation::ResponseDirective,
                2 * number as u64 + 2,
            );
        }
        // an exception, and what is not ignored
        let answer = response("Cache-Control: no-cache\r\nETag: \"a\"\r\n");
        forwarded(setup, "/kept", "", &answer);
        assert!(forwarded(setup, "/kept", "", &answer).starts_with("fwd=stale"));
        let answer = response("Cache-Control: private\r\n");
        let verdict = forwarded(setup, "/private", "", &answer);
        assert!(verdict.ends_with("detail=private"), "{verdict}");
        wait_for(setup, RuleDeviation::ResponseDirective, 6);
        wait_for(setup, RuleDeviation::Shared, 0);
    });
}

#[test]
fn what_is_for_one_user_is_shared_where_that_is_written_out_and_nowhere_else() {
    Setup::each_with(ruled(UNSAFE), |setup| {
        for (number, (request, fields)) in [
            ("", "Cache-Control: private, max-age=60\r\n"),
            ("", "Cache-Control: no-store, max-age=60\r\n"),
            ("", "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n"),
            (
                "Authorization: Basic eA==\r\n",
                "Cache-Control: max-age=60\r\n",
            ),
        ]
        .iter()
        .enumerate()
        {
            let (path, answer) = (format!("/public/{number}"), response(fields));
            let stored = forwarded(setup, &path, request, &answer);
            assert!(stored.ends_with("stored;detail=rule"), "{fields}: {stored}");
            let found = hit(setup, &path, "");
            assert_eq!(
                found.head.cache_status(),
                "hit;ttl=60;detail=rule",
                "{fields}"
            );
            wait_for(setup, RuleDeviation::Shared, 2 * number as u64 + 2);
            let path = format!("/other/{number}");
            forwarded(setup, &path, request, &answer);
            let again = forwarded(setup, &path, "", &answer);
            assert!(again.starts_with("fwd=uri-miss"), "{fields}: {again}");
        }
        wait_for(setup, RuleDeviation::Shared, 8);
    });
}

/// It is the cookie of a session that the origin knows the user of.
#[test]
fn cookie_that_answers_a_cookie_or_credentials_is_never_shared() {
    Setup::each_with(ruled(UNSAFE), |setup| {
        let answer = response("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n");
        for request in ["Cookie: sid=1\r\n", "Authorization: Basic eA==\r\n"] {
            let verdict = forwarded(setup, "/public", request, &answer);
            assert!(verdict.ends_with("detail=set-cookie"), "{verdict}");
        }
        let again = forwarded(setup, "/public", "", &answer);
        assert!(again.starts_with("fwd=uri-miss"), "{again}");
    });
}

#[test]
fn what_was_stored_by_a_rule_is_used_as_long_as_there_is_such_a_rule() {
    let setup = Setup::gateway_with(ruled(UNSAFE));
    let answer = response("Cache-Control: private, max-age=600\r\nETag: \"a\"\r\n");
    setup.fetch("/public", &answer);
    assert!(hit(&setup, "/public", "").is_hit());
    for others in [
        "[]",
        r#"[{"lifetime": {"forced": "1h"}, "stale_for": "1h"}]"#,
        r#"[{"ignore": ["response no-store"], "share": "unsafe"}]"#,
    ] {
        setup.proxy.reload(|config| config.rules = rules(others));
        // not validated either: who has it may not learn that it is current
        let mut client = setup.proxy.client();
        client.send(setup.get("/public"));
        let (_, head) = setup.origin.answer(&answer);
        assert!(!head.has("if-none-match"), "{others}: {head:?}");
        let verdict = client.read_response().verdict();
        assert!(verdict.contains("fwd=uri-miss"), "{others}: {verdict}");
        setup.proxy.reload(|config| config.rules = rules(UNSAFE));
        setup.proxy.purge(&format!("http://{}/public", setup.host));
        setup.fetch("/public", &answer);
        assert!(hit(&setup, "/public", "").is_hit(), "{others}");
    }
}

#[test]
fn stored_response_is_freshened_under_the_rule_it_was_stored_by() {
    Setup::each_with(ruled(UNSAFE), |setup| {
        let control = "Cache-Control: private, max-age=10\r\nETag: \"a\"\r\n";
        setup.fetch("/public", &response(control));
        setup.proxy.clock.advance_ms(10_000);
        let not_modified =
            format!("HTTP/1.1 304 Not Modified\r\n{control}Connection: close\r\n\r\n");
        let again = forwarded(setup, "/public", "", &not_modified);
        assert!(again.starts_with("fwd=stale"), "{again}");
        assert_eq!(
            hit(setup, "/public", "").head.cache_status(),
            "hit;ttl=10;detail=rule"
        );
    });
}

#[test]
fn request_waits_for_a_response_that_a_rule_has_shared() {
    Setup::each_with(ruled(UNSAFE), |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/public"));
        let mut followers = setup.follow(1, &setup.get("/public"));
        hop.send(response("Cache-Control: private, max-age=60\r\n"));
        assert_eq!(leader.read_response().status(), 200);
        let verdict = followers.remove(0).read_response().verdict();
        assert!(verdict.contains("collapsed"), "{verdict}");
        assert!(verdict.ends_with("detail=rule"), "{verdict}");
        wait_for(setup, RuleDeviation::Shared, 2);
    });
}

/// The cookie of one client says nothing of what is stored for all.
#[test]
fn client_with_a_cookie_does_not_throw_out_what_others_use() {
    Setup::each_with(ruled(UNSAFE), |setup| {
        let answer = response("Set-Cookie: id=1\r\nETag: \"a\"\r\n");
        let stored = forwarded(setup, "/public", "", &answer);
        assert!(stored.contains(";stored"), "{stored}");
        for (fields, answer) in [
            ("Cookie: id=2\r\nPragma: no-cache\r\n", answer.clone()),
            (
                "Cookie: id=2\r\nCache-Control: no-cache\r\n",
                answer
                    .replace("200 OK", "304 Not Modified")
                    .replace("Content-Length: 2\r\n", "")
                    .replace("ok", ""),
            ),
        ] {
            let verdict = forwarded(setup, "/public", fields, &answer);
            assert!(verdict.starts_with("fwd=request"), "{verdict}");
            let found = hit(setup, "/public", "");
            assert!(found.is_hit(), "{fields}: {}", found.head.cache_status());
        }
    });
}
