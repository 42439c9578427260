//! A module that fails on a response, which passes without it: what is stored stays.

use crate::support::{Answering, Response, Running, ScriptedOrigin, Setup, scripted};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_measure::Metric;
use weir_proxy::config::{Config, FailurePolicy};

/// Has content passed, and fails on a response with X-Bad: in capitals is what was stored by both.
fn modules(config: &mut Config) {
    let mut failing = scripted("failing", &[("response-received", "fail-if X-Bad")]);
    failing.on_failure = FailurePolicy::Pass;
    let changing = scripted("changing", &[("response-received", "content upper")]);
    config.modules = vec![failing, changing];
}

/// A next hop that sends `v1` and `v2` and so on as content, and X-Bad to a request with X-Fail.
/// With `validator` it finds what is stored to be current.
fn origin(fields: &'static str) -> Answering {
    let served = Arc::new(AtomicU64::new(0));
    ScriptedOrigin::new().answering(move |head, _| {
        let bad = if head.field("x-fail").is_some() {
            "X-Bad: yes\r\n"
        } else {
            ""
        };
        let fields = format!("Cache-Control: {fields}\r\n{bad}");
        if head.field("if-none-match").is_some() {
            return format!("HTTP/1.1 304 Not Modified\r\n{fields}ETag: \"a\"\r\n\r\n").into();
        }
        let number = served.fetch_add(1, Ordering::Relaxed) + 1;
        let tag = if head.start_line().contains("/tagged") {
            "ETag: \"a\"\r\n"
        } else {
            ""
        };
        format!("HTTP/1.1 200 OK\r\n{fields}{tag}Content-Length: 2\r\n\r\nv{number}").into()
    })
}

fn send(proxy: &Running, method: &str, path: &str, fields: &str) -> Response {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
    proxy.client().ask(head)
}

/// Whether a GET is a hit, and what it gets.
fn ask(proxy: &Running, path: &str, fields: &str) -> (bool, String) {
    let response = send(proxy, "GET", path, fields);
    (response.is_hit(), response.text())
}

const FAILING: &str = "X-Fail: yes\r\nCache-Control: no-cache\r\n";

#[test]
fn fresh_response_stays_when_a_module_fails_on_the_one_that_would_replace_it() {
    let origin = origin("max-age=60");
    let proxy = Running::gateway_with(origin.address(), modules);
    assert_eq!(ask(&proxy, "/", ""), (false, "V1".to_owned()));
    let passed = send(&proxy, "GET", "/", FAILING);
    // the other module has seen it
    assert_eq!(passed.text(), "V2");
    let verdict = passed.verdict();
    assert!(
        verdict.contains("detail=module") && !verdict.contains("stored"),
        "{verdict}"
    );
    assert_eq!(ask(&proxy, "/", ""), (true, "V1".to_owned()));
}

#[test]
fn response_is_not_freshened_and_stays_when_a_module_fails_on_its_validation() {
    let origin = origin("max-age=60");
    let proxy = Running::gateway_with(origin.address(), modules);
    assert_eq!(ask(&proxy, "/tagged", ""), (false, "V1".to_owned()));
    proxy.clock.advance_ms(61_000);
    for _ in 0..2 {
        let merged = send(&proxy, "GET", "/tagged", "X-Fail: yes\r\n");
        assert_eq!(merged.text(), "V1");
        let verdict = merged.verdict();
        assert!(
            verdict.contains("fwd-status=304;detail=module"),
            "{verdict}"
        );
    }
    // it is stale still, and good
    let validated = send(&proxy, "GET", "/tagged", "");
    assert_eq!(validated.text(), "V1");
    assert!(
        validated.verdict().contains("fwd-status=304;stored"),
        "{}",
        validated.verdict()
    );
    assert_eq!(ask(&proxy, "/tagged", ""), (true, "V1".to_owned()));
}

#[test]
fn response_that_is_refreshed_in_the_background_stays_when_a_module_fails() {
    let origin = origin("max-age=60, stale-while-revalidate=600");
    let proxy = Running::gateway_with(origin.address(), modules);
    assert_eq!(ask(&proxy, "/", ""), (false, "V1".to_owned()));
    proxy.clock.advance_ms(61_000);
    assert_eq!(ask(&proxy, "/", "X-Fail: yes\r\n"), (true, "V1".to_owned()));
    proxy.wait_for(
        Metric::ResponsesNotStored(weir_measure::NotStored::Module),
        1,
    );
    assert_eq!(origin.seen().len(), 2);
    assert_eq!(ask(&proxy, "/", ""), (true, "V1".to_owned()));
}

#[test]
fn unsafe_request_invalidates_though_a_module_fails_on_its_response() {
    let origin = origin("max-age=60");
    let proxy = Running::gateway_with(origin.address(), modules);
    assert_eq!(ask(&proxy, "/", ""), (false, "V1".to_owned()));
    assert_eq!(ask(&proxy, "/", ""), (true, "V1".to_owned()));
    let posted = send(&proxy, "POST", "/", "X-Fail: yes\r\nContent-Length: 0\r\n");
    assert_eq!(posted.status(), 200);
    assert_eq!(ask(&proxy, "/", ""), (false, "V3".to_owned()));
}

#[test]
fn response_that_the_next_hop_makes_private_is_dropped_though_a_module_fails_on_it() {
    let origin = ScriptedOrigin::new().answering(|head, _| {
        let fields = match head.field("x-fail") {
            Some(_) => "X-Bad: yes\r\nCache-Control: private\r\n",
            None => "Cache-Control: max-age=60\r\n",
        };
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nv1").into()
    });
    let proxy = Running::gateway_with(origin.address(), modules);
    assert_eq!(ask(&proxy, "/", ""), (false, "V1".to_owned()));
    let private = send(&proxy, "GET", "/", FAILING);
    assert!(
        private.verdict().contains("detail=private"),
        "{}",
        private.verdict()
    );
    assert_eq!(ask(&proxy, "/", ""), (false, "V1".to_owned()));
}

#[test]
fn requests_collapse_again_after_a_module_has_failed_on_a_response() {
    Setup::each_with(modules, |setup| {
        let response = |bad: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{bad}Content-Length: 2\r\n\r\nv1"
            )
        };
        let (passed, mut hop) = setup.fetch("/", &response("X-Bad: yes\r\n"));
        assert!(
            passed.verdict().contains("detail=module"),
            "{}",
            passed.verdict()
        );
        let mut leader = setup.proxy.client();
        leader.send(setup.get("/"));
        hop.read_head();
        let followers = setup.follow(2, &setup.get("/"));
        hop.send(response(""));
        assert_eq!(leader.read_response().text(), "V1");
        for mut follower in followers {
            assert_eq!(follower.read_response().text(), "V1");
        }
        setup.origin.expect_untouched();
    });
}
