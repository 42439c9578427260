//! Modules that decide on a head by its content: it is handed to them before the head is sent on.

use crate::support::{RawClient, Setup, deciding, scripted, span};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{Config, FailurePolicy, Module};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// More than any test's module looks at.
const ALL: usize = 10_000_000;

/// Content that takes many reads.
fn long() -> String {
    "The quick brown fox jumps over the lazy dog.\n".repeat(10_000)
}

fn with(modules: &[Module]) -> impl Fn(&mut Config) {
    let modules = modules.to_vec();
    move |config| config.modules.clone_from(&modules)
}

fn framed(content: &str, is_chunked: bool) -> String {
    let length = content.len();
    match is_chunked {
        true => format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{content}\r\n0\r\n\r\n"),
        false => format!("Content-Length: {length}\r\n\r\n{content}"),
    }
}

fn post(setup: &Setup, content: &str, is_chunked: bool) -> String {
    let head = setup.head("POST", "/", "1.1", "");
    let head = head.strip_suffix("\r\n").expect("the end of the head");
    head.to_owned() + &framed(content, is_chunked)
}

fn response(content: &str, is_chunked: bool) -> String {
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n".to_owned() + &framed(content, is_chunked)
}

/// A client that sends from a thread of its own.
fn sending(setup: &Setup, request: String) -> std::thread::JoinHandle<RawClient> {
    let mut client = setup.proxy.client();
    std::thread::spawn(move || {
        client.try_send(request);
        client
    })
}

#[test]
fn request_is_sent_on_with_every_byte_once_a_module_has_seen_enough_of_it() {
    for bytes in [1, 1000, 100_000, ALL] {
        for content in ["short".to_owned(), long()] {
            for is_chunked in [false, true] {
                let modules = [
                    scripted("first", &[("request-received", "content twice")]),
                    deciding("m0", "request-received", bytes, "pass"),
                    deciding("m1", "request-received", bytes / 2, "pass"),
                    scripted("last", &[("request-received", "content upper")]),
                ];
                Setup::each_with(with(&modules), |setup| {
                    let client = sending(setup, post(setup, &content, is_chunked));
                    let mut hop = setup.origin.accept();
                    assert!(hop.read_head().is_chunked());
                    let twice: String = content.chars().flat_map(|one| [one; 2]).collect();
                    assert!(hop.read_chunks().0 == twice.to_uppercase().as_bytes());
                    hop.send(OK);
                    let mut client = client.join().expect("sent");
                    assert_eq!(client.read_response().text(), "ok");
                    client.send(setup.get("/next"));
                    hop.answer(OK);
                    assert_eq!(client.read_response().text(), "ok");
                });
            }
        }
    }
}

#[test]
fn response_is_sent_on_with_every_byte_once_a_module_has_seen_enough_of_it() {
    for bytes in [1, 1000, 100_000, ALL] {
        for content in ["short".to_owned(), long()] {
            for is_chunked in [false, true] {
                // on the way of a response the last is called first
                let modules = [
                    scripted("last", &[("response-received", "content upper")]),
                    deciding("m1", "response-received", bytes / 2, "pass"),
                    deciding("m0", "response-received", bytes, "pass"),
                    scripted("first", &[("response-received", "content twice")]),
                ];
                Setup::each_with(with(&modules), |setup| {
                    let mut client = setup.proxy.client();
                    client.send(setup.get("/"));
                    let mut hop = setup.origin.accept();
                    hop.read_head();
                    let sent = hop.sending(response(&content, is_chunked));
                    let twice: String = content.chars().flat_map(|one| [one; 2]).collect();
                    assert!(client.read_response().text() == twice.to_uppercase());
                    // both connections are good for another request
                    let mut hop = sent.join().expect("sent");
                    client.send(setup.head("POST", "/next", "1.1", "Content-Length: 0\r\n"));
                    hop.answer(OK);
                    assert!(client.read_response().text().starts_with("OOKK"));
                });
            }
        }
    }
}

#[test]
fn pipelined_request_behind_content_that_was_looked_at_is_answered() {
    let modules = [deciding("m", "request-received", ALL, "pass")];
    Setup::each_with(with(&modules), |setup| {
        let mut client = setup.proxy.client();
        client.send(post(setup, "text", true) + &setup.get("/next"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        assert_eq!(hop.read_chunks().0, b"text");
        hop.send(OK);
        assert_eq!(client.read_response().text(), "ok");
        hop.answer(OK);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn request_that_a_module_blocks_by_its_content_reaches_no_next_hop() {
    for (before, behind) in [(0, 0), (50_000, 10), (150_000, 150_000)] {
        let modules = [deciding("m", "request-received", ALL, "block")];
        Setup::each_with(with(&modules), |setup| {
            let content = "x".repeat(before) + "bad" + &"x".repeat(behind);
            let client = sending(setup, post(setup, &content, false));
            let mut client = client.join().expect("sent or blocked");
            let blocked = client.read_response();
            assert_eq!(
                (blocked.status(), blocked.text()),
                (403, "blocked".to_owned())
            );
            setup.origin.expect_untouched();
            client.send(setup.get("/"));
            setup.origin.answer(OK);
            assert_eq!(client.read_response().text(), "ok");
        });
    }
}

#[test]
fn response_that_a_module_blocks_by_its_content_is_not_sent() {
    for (before, behind) in [(0, 0), (50_000, 10), (150_000, 150_000)] {
        let modules = [deciding("m", "response-received", ALL, "block")];
        Setup::each_with(with(&modules), |setup| {
            let content = "x".repeat(before) + "bad" + &"x".repeat(behind);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sent = hop.sending(response(&content, false));
            let blocked = client.read_response();
            assert_eq!(
                (blocked.status(), blocked.text()),
                (403, "blocked".to_owned())
            );
            sent.join().expect("sent");
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        });
    }
}

#[test]
fn client_that_waits_for_100_is_sent_it_where_its_content_decides() {
    let modules = [deciding("m", "request-received", ALL, "block")];
    Setup::each_with(with(&modules), |setup| {
        let fields = "Content-Length: 4\r\nExpect: 100-continue\r\n";
        for content in ["good", "a bad"] {
            let mut client = setup.proxy.client();
            let fields = fields.replace('4', &content.len().to_string());
            client.send(setup.head("POST", "/", "1.1", &fields));
            client.expect("HTTP/1.1 100 Continue\r\n\r\n");
            setup.origin.expect_untouched();
            client.send(content);
            if content == "good" {
                let mut hop = setup.origin.accept();
                hop.read_head();
                assert_eq!(hop.read_chunks().0, b"good");
                hop.send(OK);
                assert_eq!(client.read_response().text(), "ok");
            } else {
                assert_eq!(client.read_response().status(), 403);
            }
        }
    });
}

#[test]
fn transform_that_is_set_again_takes_the_place_of_the_one_that_looked() {
    for content in ["short".to_owned(), long()] {
        let modules = [
            deciding("m0", "request-received", 1000, "upper"),
            deciding("m1", "response-received", 1000, "upper"),
        ];
        Setup::each_with(with(&modules), |setup| {
            let client = sending(setup, post(setup, &content, false));
            let mut hop = setup.origin.accept();
            hop.read_head();
            assert!(hop.read_chunks().0 == content.to_uppercase().as_bytes());
            let sent = hop.sending(response(&content, false));
            let mut client = client.join().expect("sent");
            assert!(client.read_response().text() == content.to_uppercase());
            sent.join().expect("sent");
        });
    }
}

#[test]
fn message_continues_without_a_failed_module_only_if_that_has_touched_no_content() {
    for (what, continues) in [("fail-untouched", true), ("fail", false)] {
        for (hook, is_chunked) in [
            ("request-received", false),
            ("request-received", true),
            ("response-received", false),
            ("response-received", true),
        ] {
            let mut module = deciding("m", hook, 1000, what);
            module.on_failure = FailurePolicy::Pass;
            Setup::each_with(with(&[module]), |setup| {
                let content = long();
                let client = sending(setup, post(setup, &content, is_chunked));
                if hook == "response-received" || continues {
                    let mut hop = setup.origin.accept();
                    let head = hop.read_head();
                    let came = match head.is_chunked() {
                        true => hop.read_chunks().0,
                        false => hop.read_exactly(content.len()),
                    };
                    assert_eq!(head.is_chunked(), head.length().is_none());
                    assert!(came == content.as_bytes());
                    let _sent = hop.sending(response(&content, is_chunked));
                    let mut client = client.join().expect("sent");
                    let response = client.read_response();
                    assert_eq!(response.status(), if continues { 200 } else { 502 });
                    assert!(!continues || response.text() == content);
                } else {
                    let mut client = client.join().expect("sent or refused");
                    assert_eq!(client.read_response().status(), 502);
                    setup.origin.expect_untouched();
                }
                let fault = Metric::ModuleFailures(ModuleFault::GaveUp);
                assert_eq!(setup.proxy.count(fault), 1);
            });
        }
    }
}

#[test]
fn module_that_waits_for_ever_fails_once_it_has_all_content() {
    for hook in ["request-received", "response-received"] {
        let mut module = deciding("m", hook, ALL, "never");
        module.wait = span("100ms");
        Setup::each_with(with(&[module]), |setup| {
            let mut client = setup.proxy.client();
            client.send(post(setup, "text", false));
            if hook == "response-received" {
                drop(setup.origin.answer(response("text", false)));
            }
            let refused = client.read_response();
            assert_eq!(refused.status(), 502);
            let fault = Metric::ModuleFailures(ModuleFault::Deadline);
            assert_eq!(setup.proxy.count(fault), 1);
        });
    }
}

#[test]
fn module_is_not_to_blame_for_a_client_or_a_next_hop_that_sends_nothing() {
    for (hook, status) in [("request-received", 408), ("response-received", 504)] {
        let mut module = deciding("m", hook, ALL, "pass");
        module.wait = span("100ms");
        let change = move |config: &mut Config| {
            config.modules = vec![module.clone()];
            config.limits.client_silence = span("500ms");
            config.limits.next_hop_silence = span("500ms");
        };
        Setup::each_with(change, |setup| {
            let mut client = setup.proxy.client();
            let hop = if hook == "request-received" {
                let fields = "Content-Length: 9\r\n";
                client.send(setup.head("POST", "/", "1.1", fields) + "text");
                None
            } else {
                client.send(setup.get("/"));
                let cut = response("text", false).replace("Length: 4", "Length: 9");
                Some(setup.origin.answer(cut))
            };
            assert_eq!(client.read_response().status(), status);
            drop(hop);
            let fault = Metric::ModuleFailures(ModuleFault::Deadline);
            assert_eq!(setup.proxy.count(fault), 0);
        });
    }
}

#[test]
fn message_that_ends_before_it_is_whole_is_not_sent_on() {
    let modules = [
        deciding("m0", "request-received", ALL, "pass"),
        deciding("m1", "response-received", ALL, "pass"),
    ];
    Setup::each_with(with(&modules), |setup| {
        let mut client = setup.proxy.client();
        let begun = setup.head("POST", "/", "1.1", "Content-Length: 9\r\n") + "text";
        client.send(&begun);
        client.finish();
        assert_eq!(client.read_response().status(), 400);
        let mut client = setup.proxy.client();
        let chunked = "Transfer-Encoding: chunked\r\n";
        client.send(setup.head("POST", "/", "1.1", chunked) + "3\r\nabc\r\nx\r\n");
        assert_eq!(client.read_response().status(), 400);
        setup.origin.expect_untouched();
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let cut = response("text", false).replace("Length: 4", "Length: 9");
        drop(setup.origin.answer(cut));
        assert_eq!(client.read_response().status(), 502);
        let failures = setup.proxy.snapshot();
        for fault in [
            ModuleFault::GaveUp,
            ModuleFault::BadAnswer,
            ModuleFault::Deadline,
        ] {
            assert_eq!(failures.get(Metric::ModuleFailures(fault)), 0);
        }
    });
}

#[test]
fn next_hop_is_left_when_the_client_leaves_while_a_module_looks_at_the_response() {
    let modules = [deciding("m", "response-received", ALL, "pass")];
    Setup::each_with(with(&modules), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 0\r\n"));
        let cut = response("text", false).replace("Length: 4", "Length: 9");
        let (hop, _) = setup.origin.answer(cut);
        client.into_peer().reset();
        hop.into_peer().expect_end();
        setup.proxy.wait_for(Metric::ClientAborts, 1);
    });
}

#[test]
fn response_without_content_has_a_module_see_its_end() {
    let modules = [deciding("m", "response-received", ALL, "pass")];
    Setup::each_with(with(&modules), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("HEAD", "/", "1.1", ""));
        let (mut hop, _) = setup
            .origin
            .answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        assert_eq!(client.read_head().length(), None);
        client.send(setup.get("/"));
        hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_head().status(), 204);
    });
}

#[test]
fn followers_of_a_response_that_a_module_looks_at_are_answered() {
    let modules = [deciding("m", "response-received", ALL, "pass")];
    Setup::each_with(with(&modules), |setup| {
        // no connection is used again
        let whole = response("text", false).replace("\r\nCache", "\r\nConnection: close\r\nCache");
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(2, &setup.get("/"));
        hop.send(&whole);
        assert_eq!(leader.read_response().text(), "text");
        for _ in 0..2 {
            drop(setup.origin.answer(&whole));
        }
        for mut client in followers {
            assert_eq!(client.read_response().text(), "text");
        }
    });
}
