//! `ignore`: directives of requests.

use crate::support::{Response, Setup};
use crate::{answer, ruled};
use weir_measure::{Metric, RuleDeviation};

const FRESH: &str = "Cache-Control: max-age=60\r\nConnection: close\r\n";

const RELOADS: &str = r#"[
    {"path": ["/kept"], "ignore": []},
    {"ignore": ["request no-cache", "request max-age"]}
]"#;

/// Waits until so many requests were answered because a directive is ignored: a request may be
/// counted when its client has its response already.
fn wait_for_deviations(setup: &Setup, count: u64) {
    let what = RuleDeviation::RequestDirective;
    setup.proxy.wait_for(Metric::RuleDeviations(what), count);
}

fn get(setup: &Setup, path: &str, fields: &str) -> Response {
    let mut client = setup.proxy.client();
    client.ask(setup.head("GET", path, "1.1", fields))
}

#[test]
fn reload_by_a_client_is_answered_from_the_cache_and_says_so() {
    Setup::each_with(ruled(RELOADS), |setup| {
        setup.fetch("/", &answer(FRESH));
        setup.proxy.clock.advance_ms(20_000);
        for (number, fields) in [
            "Cache-Control: no-cache\r\n",
            "Pragma: no-cache\r\n",
            "Cache-Control: max-age=0\r\n",
            "Cache-Control: max-age=19\r\n",
        ]
        .iter()
        .enumerate()
        {
            let response = get(setup, "/", fields);
            assert_eq!(
                response.head.cache_status(),
                "hit;ttl=40;detail=rule",
                "{fields}"
            );
            wait_for_deviations(setup, number as u64 + 1);
        }
        // these change nothing
        for fields in [
            "",
            "Cache-Control: max-age=20\r\n",
            "Cache-Control: max-stale\r\n",
        ] {
            let response = get(setup, "/", fields);
            assert_eq!(response.head.cache_status(), "hit;ttl=40", "{fields}");
        }
        wait_for_deviations(setup, 4);
    });
}

#[test]
fn directive_that_is_not_ignored_stays_in_force() {
    Setup::each_with(ruled(RELOADS), |setup| {
        let check = |path: &str, fields: &str| {
            setup.fetch(path, &answer(FRESH));
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", path, "1.1", fields));
            setup.origin.answer(answer(FRESH));
            let verdict = client.read_response().verdict();
            assert!(verdict.starts_with("fwd=request"), "{verdict}");
        };
        check("/kept", "Cache-Control: no-cache\r\n");
        check("/other", "Cache-Control: min-fresh=61\r\n");
        wait_for_deviations(setup, 0);
    });
}

/// The next hop may be a cache, too, and decides by itself.
#[test]
fn next_hop_gets_ignored_directives_as_they_came() {
    Setup::each_with(ruled(RELOADS), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n"));
        let (_, head) = setup.origin.answer(answer(FRESH));
        assert_eq!(head.field("cache-control"), Some("no-cache"));
        let verdict = client.read_response().verdict();
        assert!(
            verdict.contains("fwd=uri-miss") && !verdict.contains("rule"),
            "{verdict}"
        );
        wait_for_deviations(setup, 0);
    });
}

#[test]
fn request_whose_no_cache_is_ignored_waits_for_the_response_to_another() {
    Setup::each_with(ruled(RELOADS), |setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let reload = setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n");
        let mut followers = setup.follow(1, &reload);
        hop.send(answer(FRESH));
        assert_eq!(leader.read_response().status(), 200);
        let response = followers.remove(0).read_response();
        let verdict = response.verdict();
        assert!(verdict.contains("collapsed"), "{verdict}");
        assert!(verdict.ends_with("detail=rule"), "{verdict}");
        wait_for_deviations(setup, 1);
    });
}

/// What must be validated before each use is: no rule speaks of that here.
#[test]
fn stale_response_is_validated_whatever_a_rule_ignores() {
    Setup::each_with(ruled(RELOADS), |setup| {
        setup.fetch("/", &answer(FRESH));
        setup.proxy.clock.advance_ms(60_000);
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n"));
        setup.origin.answer(answer(FRESH));
        let verdict = client.read_response().verdict();
        assert!(verdict.starts_with("fwd=stale"), "{verdict}");
        wait_for_deviations(setup, 0);
    });
}
