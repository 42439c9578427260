//! Modules that are called for stored responses. The same tests run with a hook at every phase,
//! where no request takes the fast path: what comes of a request does not depend on that.

use crate::support::{IS_THREADED, Response, Setup, scripted, span};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{Config, FailurePolicy, Module};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nServer: s\r\nETag: \"e\"\r\n\
                     Content-Length: 2\r\n\r\nok";

/// A proxy that has stored the response to `/`, and has these modules since.
fn with(modules: impl Fn() -> Vec<Module>, test: impl Fn(&Setup)) {
    Setup::each(|setup| {
        drop(setup.fetch("/", FRESH));
        setup.proxy.wait_for(Metric::StoreEntries, 1);
        setup
            .proxy
            .reload(|config: &mut Config| config.modules = modules());
        test(setup);
    });
}

fn hit(setup: &Setup) -> Response {
    setup.proxy.client().ask(setup.get("/"))
}

fn calls(setup: &Setup) -> u64 {
    setup.proxy.count(Metric::ModuleCalls)
}

fn failures(setup: &Setup, fault: ModuleFault) -> u64 {
    setup.proxy.count(Metric::ModuleFailures(fault))
}

#[test]
fn request_is_judged_with_the_fields_that_modules_add_to_it() {
    for (field, status) in [("X-Any yes", 200), ("If-None-Match \"e\"", 304)] {
        let request = format!("add {field}");
        let modules = || {
            let actions = [
                ("request-received", request.as_str()),
                ("response-sent", "add X-Added yes"),
                ("unstored", "yes"),
            ];
            vec![scripted("first", &actions)]
        };
        with(modules, |setup| {
            let mut client = setup.proxy.client();
            for _ in 0..2 {
                let response = client.ask(setup.get("/"));
                assert_eq!((response.status(), response.is_hit()), (status, true));
                assert_eq!(response.head.all("x-added"), ["yes"], "{field}");
                assert_eq!(response.head.all("etag"), ["\"e\""], "{field}");
            }
        });
    }
}

#[test]
fn modules_are_called_once_a_hook_for_each_hit() {
    let modules = || {
        let all = [
            ("request-received", "set X-Request one"),
            ("request-sent", "set X-Never sent"),
            ("response-received", "set X-Never received"),
            ("response-sent", "set X-Response one"),
            ("done", "remove X-Any"),
            ("unstored", "yes"),
        ];
        vec![
            scripted("first", &all),
            scripted("second", &[("response-sent", "remove Server")]),
        ]
    };
    with(modules, |setup| {
        let mut client = setup.proxy.client();
        for round in 1..=3 {
            let response = client.ask(setup.get("/"));
            assert_eq!((response.status(), response.text()), (200, "ok".into()));
            assert_eq!(response.head.all("x-response"), ["one"]);
            assert_eq!(response.head.field("x-never"), None);
            assert_eq!(response.head.field("server"), None);
            assert_eq!(response.head.all("age").len(), 1);
            assert_eq!(response.head.length(), Some(2));
            assert!(response.is_hit());
            // the last one may be about to end
            let calls = calls(setup);
            assert!((4 * round - 1..=4 * round).contains(&calls), "{calls}");
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn pipelined_hits_are_answered_in_their_order() {
    let modules = || {
        vec![
            scripted("a", &[("response-sent", "defer")]),
            scripted("b", &[("done", "fail")]),
        ]
    };
    with(modules, |setup| {
        let mut client = setup.proxy.client();
        let head = setup.head("HEAD", "/", "1.1", "");
        client.send([setup.get("/"), head, setup.get("/")].concat());
        assert_eq!(client.read_response().text(), "ok");
        assert_eq!(client.read_head().length(), Some(2));
        assert_eq!(client.read_response().head.all("x-deferred"), ["once"]);
    });
}

#[test]
fn module_that_answered_before_another_one_defers_is_not_called_again() {
    for hook in ["request-received", "response-sent"] {
        let modules = || {
            vec![
                scripted("a", &[(hook, "set X-A a")]),
                scripted("b", &[(hook, "defer")]),
                scripted("c", &[(hook, "set X-C c")]),
            ]
        };
        with(modules, |setup| {
            let response = hit(setup);
            assert_eq!((response.status(), response.text()), (200, "ok".into()));
            if hook == "response-sent" {
                assert_eq!(response.head.all("x-a"), ["a"]);
                assert_eq!(response.head.all("x-deferred"), ["once"]);
                assert_eq!(response.head.all("x-c"), ["c"]);
            }
            assert_eq!(calls(setup), 4, "{hook}");
            setup.origin.expect_untouched();
        });
    }
}

#[test]
fn hit_is_refused_or_sent_without_a_module_that_failed() {
    let faults = [
        ("fail", ModuleFault::GaveUp),
        ("panic", ModuleFault::Crashed),
        ("defer-for-ever", ModuleFault::Deadline),
        ("defer-always", ModuleFault::BadAnswer),
    ];
    for hook in ["request-received", "response-sent"] {
        for (action, fault) in faults {
            for on_failure in [FailurePolicy::Refuse, FailurePolicy::Pass] {
                let modules = || {
                    let other = scripted("other", &[(hook, "set X-Other o")]);
                    let mut module = scripted("breaks", &[(hook, action)]);
                    (module.on_failure, module.wait) = (on_failure, span("50ms"));
                    vec![module, other]
                };
                with(modules, |setup| {
                    let response = hit(setup);
                    let (is_passed, is_sent) =
                        (on_failure == FailurePolicy::Pass, hook == "response-sent");
                    let expected = if is_passed { 200 } else { 502 };
                    assert_eq!(response.status(), expected, "{hook} {action}");
                    let other = response.head.all("x-other").len();
                    assert_eq!(other, usize::from(is_passed && is_sent), "{hook} {action}");
                    assert_eq!(failures(setup, fault), 1, "{hook} {action}");
                    setup.origin.expect_untouched();
                });
            }
        }
    }
}

#[test]
fn hit_is_answered_by_a_module_or_sent_elsewhere() {
    with(
        || vec![scripted("a", &[("request-received", "respond 403 no")])],
        |setup| {
            let response = hit(setup);
            assert_eq!((response.status(), response.text()), (403, "no".into()));
            assert_eq!(setup.proxy.count(Metric::ModuleResponses), 1);
            assert_eq!(calls(setup), 1);
        },
    );
    with(
        || {
            let last = scripted("b", &[("response-sent", "set X-B b")]);
            vec![scripted("a", &[("request-received", "path /other")]), last]
        },
        |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_hop, head) = setup.origin.answer(FRESH);
            assert!(
                head.start_line().contains("/other"),
                "{}",
                head.start_line()
            );
            let response = client.read_response();
            assert_eq!(response.head.all("x-b"), ["b"]);
            assert_eq!(calls(setup), 2);
        },
    );
}

#[test]
fn content_of_a_hit_is_changed_for_its_client_alone() {
    with(
        || vec![scripted("a", &[("response-sent", "content upper")])],
        |setup| {
            for _ in 0..2 {
                let response = hit(setup);
                assert_eq!((response.status(), response.text()), (200, "OK".into()));
                assert_eq!(response.head.field("etag"), Some("W/\"e\""));
            }
            let ranged = setup.head("GET", "/", "1.1", "Range: bytes=0-0\r\n");
            let response = setup.proxy.client().ask(ranged);
            assert_eq!((response.status(), response.text()), (200, "OK".into()));
            setup.proxy.reload(|config| config.modules.clear());
            assert_eq!(hit(setup).text(), "ok");
            setup.origin.expect_untouched();
        },
    );
}

/// The changed request is judged, not the one that was received.
#[test]
fn stored_response_is_chosen_for_the_request_as_modules_changed_it() {
    with(
        || {
            vec![scripted(
                "a",
                &[("request-received", "set If-None-Match \"e\"")],
            )]
        },
        |setup| {
            let response = {
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                client.read_head()
            };
            assert_eq!(response.status(), 304);
            setup.origin.expect_untouched();
        },
    );
    let only = || {
        vec![scripted(
            "a",
            &[("request-received", "set Cache-Control only-if-cached")],
        )]
    };
    with(only, |setup| {
        assert_eq!(hit(setup).status(), 200);
        let other = setup.proxy.client().ask(setup.get("/other"));
        assert_eq!(other.status(), 504);
        setup.origin.expect_untouched();
    });
}

#[test]
fn late_calls_of_a_module_are_counted_from_the_second_on() {
    let modules = || {
        let mut module = scripted("a", &[("response-sent", "spin")]);
        module.deadline = span("1ms");
        vec![module, scripted("b", &[("request-received", "remove X")])]
    };
    with(modules, |setup| {
        for _ in 0..3 {
            assert_eq!(hit(setup).status(), if IS_THREADED { 502 } else { 200 });
        }
        assert!(failures(setup, ModuleFault::Deadline) >= 2);
    });
}

#[test]
fn module_that_fails_for_hits_is_not_called_until_its_trial() {
    with(
        || vec![scripted("a", &[("request-received", "panic")])],
        |setup| {
            for _ in 0..8 {
                assert_eq!(hit(setup).status(), 502);
            }
            assert_eq!(failures(setup, ModuleFault::Crashed), 5);
            assert_eq!(failures(setup, ModuleFault::BreakerOpen), 3);
            setup.proxy.clock.advance_ms(31_000);
            assert_eq!(hit(setup).status(), 502);
            assert_eq!(failures(setup, ModuleFault::Crashed), 6);
        },
    );
}
