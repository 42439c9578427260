//! Modules that break, or take too long.

use crate::support::{IS_THREADED, Running, Setup, asking, scripted, span};
use std::net::UdpSocket;
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{Config, DnsServer, FailurePolicy};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

const HOOKS: [&str; 4] = [
    "request-received",
    "request-sent",
    "response-received",
    "response-sent",
];

fn with(hook: &str, action: &str, on_failure: FailurePolicy) -> impl Fn(&mut Config) {
    move |config| {
        let mut module = scripted("breaks", &[(hook, action)]);
        module.on_failure = on_failure;
        // the others end by themselves, after the trace of a panic was printed
        if action == "defer-for-ever" {
            module.wait = span("100ms");
        }
        config.modules = vec![module];
    }
}

/// A request, and what the next hop answers if it gets it; the response.
fn fetch(setup: &Setup, reaches_origin: bool) -> crate::support::Response {
    let mut client = setup.proxy.client();
    client.send(setup.get("/"));
    let hop = reaches_origin.then(|| setup.origin.answer(FRESH));
    let response = client.read_response();
    drop(hop);
    response
}

#[test]
fn failed_module_has_its_request_refused_and_says_so() {
    for hook in HOOKS {
        for (action, word) in [
            ("panic", "crashed"),
            ("fail", "gave-up"),
            ("unavailable", "unavailable"),
            ("defer-for-ever", "deadline"),
            ("defer-always", "bad-answer"),
        ] {
            Setup::each_with(with(hook, action, FailurePolicy::Refuse), |setup| {
                let response = fetch(setup, hook.starts_with("response"));
                assert_eq!(response.status(), 502, "{hook} {action}");
                let reason = response.head.field("proxy-status").expect("a reason");
                assert!(reason.contains("breaks"), "{reason}");
                assert!(reason.contains(word), "{hook} {action}: {reason}");
                assert!(response.verdict().contains("detail=module-failed"));
            });
        }
    }
}

#[test]
fn request_goes_on_without_a_failed_module_that_may_fail() {
    for hook in HOOKS {
        for action in [
            "panic",
            "fail",
            "unavailable",
            "defer-for-ever",
            "defer-always",
        ] {
            Setup::each_with(with(hook, action, FailurePolicy::Pass), |setup| {
                let response = fetch(setup, true);
                assert_eq!((response.status(), response.text()), (200, "ok".to_owned()));
            });
        }
    }
}

#[test]
fn answer_or_target_where_none_is_taken_is_a_failure() {
    for (hook, action) in [
        ("response-sent", "respond 200 x"),
        ("request-sent", "path /x"),
    ] {
        Setup::each_with(with(hook, action, FailurePolicy::Refuse), |setup| {
            let response = fetch(setup, hook == "response-sent");
            assert_eq!(response.status(), 502);
            let faults = setup
                .proxy
                .count(Metric::ModuleFailures(ModuleFault::BadAnswer));
            assert_eq!(faults, 1);
        });
    }
}

#[test]
fn deferred_module_is_called_again_once_it_is_ready() {
    for hook in HOOKS {
        Setup::each_with(with(hook, "defer", FailurePolicy::Refuse), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_hop, head) = setup.origin.answer(FRESH);
            let response = client.read_response();
            assert_eq!(response.text(), "ok");
            let is_request = hook.starts_with("request");
            let head = if is_request { &head } else { &response.head };
            assert_eq!(head.all("x-deferred"), ["once"], "{hook}");
        });
    }
}

#[test]
fn module_that_fails_five_times_is_not_called_until_its_trial() {
    for (action, fault) in [
        ("panic", ModuleFault::Crashed),
        ("unavailable", ModuleFault::Unavailable),
    ] {
        let config = with("request-received", action, FailurePolicy::Refuse);
        Setup::each_with(config, |setup| {
            for _ in 0..8 {
                assert_eq!(fetch(setup, false).status(), 502);
            }
            let failed = |fault| setup.proxy.count(Metric::ModuleFailures(fault));
            assert_eq!(failed(fault), 5);
            assert_eq!(failed(ModuleFault::BreakerOpen), 3);
            assert_eq!(setup.proxy.count(Metric::ModuleCalls), 5);
            setup.proxy.clock.advance_ms(31_000);
            for _ in 0..2 {
                assert_eq!(fetch(setup, false).status(), 502);
            }
            assert_eq!(failed(fault), 6);
            assert_eq!(failed(ModuleFault::BreakerOpen), 4);
        });
    }
}

/// One line each: a module that is not called cannot fail.
#[test]
fn operator_reads_that_a_breaker_opened_and_closed_once_each() {
    let config = |config: &mut Config| {
        with(
            "request-received",
            "unavailable-if X-Bad",
            FailurePolicy::Pass,
        )(config);
    };
    Setup::each_with(config, |setup| {
        let send = |is_bad: bool| {
            let mut client = setup.proxy.client();
            let bad = if is_bad { "X-Bad: 1\r\n" } else { "" };
            client.send(setup.head("GET", "/", "1.1", bad));
            let _hop = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
            assert_eq!(client.read_response().status(), 204);
        };
        for _ in 0..8 {
            send(true);
        }
        let opened = "module `breaks` failed 5 times within 10 s, the last time by unavailable: it \
                      is not called for 30 s, and requests continue without it; failures since the \
                      start: 5";
        setup.proxy.wait_until_said(opened, 1);
        setup.proxy.clock.advance_ms(31_000);
        send(true);
        send(true);
        let again = "module `breaks` failed again when it was tried (unavailable): it is not called \
                     for 30 s, and requests continue without it; failures since the start: 6";
        setup.proxy.wait_until_said(again, 1);
        setup.proxy.clock.advance_ms(31_000);
        for _ in 0..3 {
            send(false);
        }
        let closed = "module `breaks` worked when it was tried: it is called again";
        setup.proxy.wait_until_said(closed, 1);
        for line in [opened, again, closed] {
            assert_eq!(setup.proxy.said(line), 1, "{line}");
        }
    });
}

/// Any client could send such messages, and would take the module from the others.
#[test]
fn module_that_gives_up_messages_is_called_for_the_next_ones() {
    Setup::each_with(
        with("request-received", "fail", FailurePolicy::Refuse),
        |setup| {
            for _ in 0..8 {
                assert_eq!(fetch(setup, false).status(), 502);
            }
            let gave_up = Metric::ModuleFailures(ModuleFault::GaveUp);
            assert_eq!(setup.proxy.count(gave_up), 8);
            assert_eq!(setup.proxy.count(Metric::ModuleCalls), 8);
        },
    );
}

/// On a worker it cannot be stopped, and what it answered holds. On a thread of its own it is given
/// up.
#[test]
fn call_beyond_its_deadline_is_counted() {
    let change = |config: &mut Config| {
        with("response-sent", "spin", FailurePolicy::Refuse)(config);
        config.modules[0].deadline = span("1ms");
    };
    Setup::each_with(change, |setup| {
        let response = fetch(setup, true);
        assert_eq!(response.status(), if IS_THREADED { 502 } else { 200 });
        let slow = setup
            .proxy
            .count(Metric::ModuleFailures(ModuleFault::Deadline));
        assert_eq!(slow, 1);
    });
}

#[test]
fn failure_at_the_end_of_an_exchange_changes_nothing_for_its_client() {
    Setup::each_with(with("done", "panic", FailurePolicy::Refuse), |setup| {
        let mut client = setup.proxy.client();
        for path in ["/one", "/two"] {
            client.send(setup.get(path));
            drop(setup.origin.answer(FRESH));
            assert_eq!(client.read_response().text(), "ok");
        }
        // that of the first, at least: the second may be about to end
        let crashed = Metric::ModuleFailures(ModuleFault::Crashed);
        setup.proxy.wait_for_at_least(crashed, 1);
    });
}

/// Of the request of a client, and of a module's own.
#[test]
fn dead_name_server_ends_requests_and_the_streams_of_their_modules() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("it is bound");
    let proxy = Running::forward_with(|config| {
        config.dns.servers = vec![DnsServer(address)];
        config.limits.dns = span("300ms");
        let hooks = [HOOKS[0], HOOKS[1], HOOKS[2], HOOKS[3], "done"];
        let actions = hooks.map(|hook| (hook, "fail-if X-Nothing"));
        config.modules = vec![scripted("watches", &actions), asking("asks", &[])];
    });
    let get =
        |fields: &str| format!("GET http://dead.test/ HTTP/1.1\r\nHost: dead.test\r\n{fields}\r\n");
    let used_bytes = proxy.count(Metric::StoreUsedBytes);
    for calls in 1..=2 {
        let refused = proxy.client().ask(get(""));
        assert_eq!(refused.status(), 504);
        let reason = refused.head.field("proxy-status").expect("a reason");
        assert!(reason.contains("dns_timeout"), "{reason}");
        proxy.wait_for(Metric::RequestsInFlight, 0);
        let seen = proxy.count(Metric::ModuleCalls);
        assert!(seen >= 2 * calls, "{seen}");
    }
    let asked = "X-Do: fetch http://dead.test/\r\nX-Timeout-Ms: 10000\r\n";
    let answered = proxy.client().ask(get(asked));
    // its own time limit is longer
    assert_eq!(answered.text(), "Unreachable");
    proxy.wait_for(Metric::RequestsInFlight, 0);
    proxy.wait_for(Metric::DnsInFlight, 0);
    proxy.wait_for(Metric::StoreUsedBytes, used_bytes);
    // it is nothing that a module has done
    for fault in [
        ModuleFault::Deadline,
        ModuleFault::Crashed,
        ModuleFault::BadAnswer,
        ModuleFault::Unavailable,
        ModuleFault::NoMemory,
    ] {
        assert_eq!(proxy.count(Metric::ModuleFailures(fault)), 0);
    }
}
