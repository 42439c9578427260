//! Content that modules change: what clients get, and what is stored.

use crate::support::{Response, Setup, scripted};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Config;

/// Content that takes many reads.
fn long() -> String {
    "The quick brown fox jumps over the lazy dog.\n".repeat(10_000)
}

/// A fresh response with this content, framed by its length, or in chunks.
fn response(content: &str, is_chunked: bool) -> String {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-MD5: x\r\n";
    let length = content.len();
    if is_chunked {
        return format!(
            "{head}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n{length:x}\r\n{content}\r\n\
             0\r\nX-Sum: 1\r\n\r\n"
        );
    }
    format!("{head}Accept-Ranges: bytes\r\nContent-Length: {length}\r\n\r\n{content}")
}

fn with(actions: &[(&str, &str)]) -> impl Fn(&mut Config) {
    let modules: Vec<_> = actions
        .iter()
        .enumerate()
        .map(|(at, action)| scripted(&format!("m{at}"), &[*action]))
        .collect();
    move |config| config.modules.clone_from(&modules)
}

/// No field tells of the content as it was, and the entity tag is weak.
fn check_changed(response: &Response) {
    let tag = response.head.field("etag").expect("a tag");
    assert!(tag.starts_with("W/\"v1"), "{tag}");
    assert_eq!(response.trailers, "");
    for name in ["content-length", "content-md5", "accept-ranges", "trailer"] {
        assert_eq!(response.head.field(name), None, "{name}");
    }
}

#[test]
fn content_changed_when_sent_is_for_its_client_and_what_is_stored_is_not_changed() {
    for content in ["short".to_owned(), long()] {
        for is_chunked in [false, true] {
            Setup::each_with(with(&[("response-sent", "content upper")]), |setup| {
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                let (hop, _) = setup.origin.answer("");
                let sent = hop.sending(response(&content, is_chunked));
                let miss = client.read_response();
                drop(sent);
                let hit = setup.proxy.client().ask(setup.get("/"));
                assert!(hit.is_hit());
                for response in [&miss, &hit] {
                    assert_eq!(response.status(), 200);
                    check_changed(response);
                    assert!(response.text() == content.to_uppercase());
                }
                setup.proxy.reload(|config| config.modules.clear());
                let plain = setup.proxy.client().ask(setup.get("/"));
                assert!(plain.is_hit());
                assert_eq!(plain.head.field("etag"), Some("\"v1\""));
                assert!(plain.text() == content);
            });
        }
    }
}

#[test]
fn content_changed_when_received_is_not_stored_if_the_module_does_not_permit_it() {
    let unstored = |config: &mut Config| {
        let actions = [("response-received", "content twice"), ("unstored", "yes")];
        config.modules = vec![scripted("a", &actions)];
    };
    for content in ["short".to_owned(), long()] {
        for is_chunked in [false, true] {
            Setup::each_with(unstored, |setup| {
                let twice: String = content.chars().flat_map(|one| [one; 2]).collect();
                let mut client = setup.proxy.client();
                let mut hops = Vec::new();
                for _ in 0..2 {
                    client.send(setup.get("/"));
                    let mut hop = match hops.pop() {
                        Some(hop) => hop,
                        None => setup.origin.accept(),
                    };
                    hop.read_head();
                    let sent = hop.sending(response(&content, is_chunked));
                    let changed = client.read_response();
                    assert_eq!(changed.status(), 200);
                    check_changed(&changed);
                    assert!(changed.text() == twice);
                    assert!(changed.verdict().contains("detail=module"));
                    // its framing toward the next hop is as it was: the connection is used again
                    hops.push(sent.join().expect("all was sent"));
                }
            });
        }
    }
}

#[test]
fn content_without_a_length_passes_a_module_that_only_inspects_it() {
    for hook in ["response-received", "response-sent"] {
        for is_chunked in [false, true] {
            Setup::each_with(with(&[(hook, "inspect upper")]), |setup| {
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                let _hop = setup.origin.answer(response("bad", is_chunked));
                // so it shows that it has seen it
                assert_eq!(client.read_response().text(), "BAD");
            });
        }
    }
}

#[test]
fn content_that_must_not_be_changed_passes_a_module_that_only_inspects_it() {
    for hook in ["response-received", "response-sent"] {
        Setup::each_with(with(&[(hook, "inspect upper")]), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let field = "\r\nCache-Control: no-transform\r\n";
            let kept = response("bad", false).replacen("\r\n", field, 1);
            let _hop = setup.origin.answer(kept);
            assert_eq!(client.read_response().text(), "BAD");
        });
    }
}

#[test]
fn content_passes_modules_from_the_next_hop_to_the_client() {
    let actions = [
        ("response-sent", "content reverse"),
        ("response-received", "content twice"),
        ("response-received", "content upper"),
        ("response-sent", "content twice"),
    ];
    Setup::each_with(with(&actions), |setup| {
        let (changed, _hop) = setup.fetch("/", &response("abc", false));
        assert_eq!(changed.text(), "CCCCBBBBAAAA");
    });
}

#[test]
fn every_client_of_a_fetch_gets_changed_content() {
    Setup::each_with(with(&[("response-sent", "content upper")]), |setup| {
        let content = long();
        let (mut leader, hop) = setup.lead(&setup.get("/"));
        let followers = setup.follow(3, &setup.get("/"));
        let sent = hop.sending(response(&content, false));
        let reading = followers
            .into_iter()
            .map(|mut client| std::thread::spawn(move || client.read_response()));
        let reading: Vec<_> = reading.collect();
        assert!(leader.read_response().text() == content.to_uppercase());
        for client in reading {
            let response = client.join().expect("a response");
            assert!(response.text() == content.to_uppercase());
        }
        drop(sent);
    });
}

#[test]
fn range_of_what_a_module_may_change_is_answered_by_the_whole() {
    for hook in ["response-sent", "response-received"] {
        Setup::each_with(with(&[(hook, "content upper")]), |setup| {
            let fields = "Range: bytes=1-2\r\nIf-Range: \"v1\"\r\n";
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.1", fields));
            let (_hop, head) = setup.origin.answer(response("abcd", false));
            assert_eq!((head.field("range"), head.field("if-range")), (None, None));
            let changed = client.read_response();
            assert_eq!((changed.status(), changed.text()), (200, "ABCD".to_owned()));
            let hit = client.ask(setup.head("GET", "/", "1.1", fields));
            assert!(hit.is_hit());
            assert_eq!((hit.status(), hit.text()), (200, "ABCD".to_owned()));
        });
    }
}

#[test]
fn no_transform_keeps_content_as_it_is() {
    for hook in ["response-sent", "response-received"] {
        Setup::each_with(with(&[(hook, "content upper")]), |setup| {
            let kept = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, no-transform\r\n\
                        ETag: \"v1\"\r\nContent-Length: 2\r\n\r\nok";
            let (response, hop) = setup.fetch("/kept", kept);
            assert_eq!(response.head.field("etag"), Some("\"v1\""));
            assert_eq!(response.text(), "ok");
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.1", "Cache-Control: no-transform\r\n"));
            let mut hops = vec![hop];
            let mut hop = crate::support::OriginConnection::asked(&mut hops);
            hop.send(self::response("ok", false));
            assert_eq!(client.read_response().text(), "ok");
        });
    }
}

#[test]
fn no_transform_that_a_module_removes_keeps_content_as_it_is() {
    for hook in ["response-sent", "response-received"] {
        // on the way of a response the last one is called first
        let removing = [
            (hook, "content upper"),
            ("response-received", "remove Cache-Control"),
        ];
        Setup::each_with(with(&removing), |setup| {
            let kept = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, no-transform\r\n\
                        Content-Length: 2\r\n\r\nok";
            let (response, _hop) = setup.fetch("/kept", kept);
            assert_eq!(response.text(), "ok");
            assert_eq!(response.head.field("cache-control"), Some("no-transform"));
        });
        let removing = [
            (hook, "content upper"),
            ("request-received", "remove Cache-Control"),
        ];
        Setup::each_with(with(&removing), |setup| {
            let (changed, hop) = setup.fetch("/", &self::response("ok", false));
            assert_eq!(changed.text(), "OK");
            let mut client = setup.proxy.client();
            let fields = "Cache-Control: no-transform\r\n";
            client.send(setup.head("GET", "/kept", "1.1", fields));
            let mut hops = vec![hop];
            let mut hop = crate::support::OriginConnection::asked(&mut hops);
            hop.send(self::response("ok", false));
            assert_eq!(client.read_response().text(), "ok");
        });
    }
}

#[test]
fn head_of_changed_content_is_that_of_a_get() {
    for hook in ["response-sent", "response-received"] {
        Setup::each_with(with(&[(hook, "content upper")]), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.head("HEAD", "/", "1.1", ""));
            let head = response("", false).replace("Content-Length: 0", "Content-Length: 9");
            let (_hop, _) = setup.origin.answer(head);
            let response = client.read_head();
            let tag = response.field("etag").expect("a tag");
            assert!(tag.starts_with("W/\"v1"), "{tag}");
            assert_eq!(response.field("content-length"), None);
            // nothing follows it
            client.send(setup.head("GET", "/x", "1.1", "Cache-Control: only-if-cached\r\n"));
            assert_eq!(client.read_response().status(), 504);
        });
    }
}

#[test]
fn client_of_http_1_0_gets_changed_content_up_to_the_end_of_the_connection() {
    for hook in ["response-sent", "response-received"] {
        Setup::each_with(with(&[(hook, "content twice")]), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.0", ""));
            let (_hop, _) = setup.origin.answer(response("abc", false));
            let (text, _) = client.into_peer().read_to_end();
            assert!(text.ends_with(b"\r\n\r\naabbcc"));
        });
    }
}

/// Reads to the end of the connection: what came does not look like a whole response, unless it
/// is a refusal that names the module and the failure.
fn check_refused_or_cut(client: crate::support::RawClient, failure: &str) {
    let (bytes, _) = client.into_peer().read_to_end();
    let text = String::from_utf8_lossy(&bytes);
    if text.starts_with("HTTP/1.1 502 ") {
        assert!(text.contains("m0") && text.contains(failure), "{text}");
    } else {
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(!text.ends_with("0\r\n\r\n"), "it looks whole");
    }
}

#[test]
fn content_that_a_module_gives_up_does_not_look_whole() {
    for hook in ["response-sent", "response-received"] {
        // the last holds more than it may
        for (how, fault) in [
            ("content cut", (ModuleFault::GaveUp, "gave-up")),
            ("content fail", (ModuleFault::GaveUp, "gave-up")),
            ("content reverse", (ModuleFault::BadAnswer, "bad-answer")),
        ] {
            Setup::each_with(with(&[(hook, how)]), |setup| {
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", "/", "1.1", "Connection: close\r\n"));
                let mut hop = setup.origin.accept();
                hop.read_head();
                let sent = hop.sending(response(&long(), false));
                check_refused_or_cut(client, fault.1);
                drop(sent);
                let failures = setup.proxy.count(Metric::ModuleFailures(fault.0));
                assert_eq!(failures, 1, "{hook} {how}");
            });
        }
    }
}

#[test]
fn hit_that_a_module_gives_up_at_once_is_refused() {
    Setup::each_with(with(&[("response-sent", "content fail")]), |setup| {
        setup.proxy.reload(|config| config.modules.clear());
        let (stored, _hop) = setup.fetch("/", &response("abc", false));
        assert_eq!(stored.text(), "abc");
        setup
            .proxy
            .reload(with(&[("response-sent", "content fail")]));
        let mut client = setup.proxy.client();
        for _ in 0..2 {
            let refused = client.ask(setup.get("/"));
            assert_eq!(refused.status(), 502);
            let reason = refused.head.field("proxy-status").expect("a reason");
            assert!(
                reason.contains("m0") && reason.contains("gave-up"),
                "{reason}"
            );
        }
    });
}

#[test]
fn response_with_framing_in_doubt_is_refused_whatever_modules_would_make_of_it() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: -1",
        "Content-Length: +6",
        "Content-Length: 5, 6",
        "Content-Length: 99999999999999999999",
    ] {
        for action in ["content upper", "content plain", "set X-Any yes"] {
            let change = |config: &mut weir_proxy::config::Config| {
                config.modules = vec![scripted("a", &[("response-received", action)])];
            };
            Setup::each_with(change, |setup| {
                let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}");
                let answer = format!("{head}\r\n\r\nsecret");
                for _ in 0..2 {
                    let (response, _hop) = setup.fetch("/", &answer);
                    assert_eq!(response.status(), 502, "{fields} {action}");
                    assert!(!response.text().to_ascii_lowercase().contains("secret"));
                }
            });
        }
    }
}

/// The head is sent before the content, as without modules: `stored` says what the cache is about
/// to do (RFC 9211 section 2.6), and the client sees that the response is cut.
#[test]
fn response_that_is_cut_was_announced_as_stored_and_is_not() {
    // the module gives up behind 100,000 bytes, the next hop behind 50,000
    for actions in [&[("response-received", "content cut")][..], &[]] {
        Setup::each_with(with(actions), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let whole = response(&long(), true);
            let (first, rest) = whole.split_at(50_000);
            hop.send(first);
            let head = client.read_head();
            assert!(head.cache_status().contains("stored"), "{head:?}");
            let sent = match actions {
                [] => {
                    drop(hop);
                    None
                }
                _ => Some(hop.sending(rest)),
            };
            let (bytes, _) = client.read_to_end();
            assert!(!bytes.ends_with(b"0\r\n\r\n"), "it looks whole");
            drop(sent);
            setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
            setup.proxy.wait_for(Metric::RequestsInFlight, 0);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let _hop = setup
                .origin
                .answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            let again = client.read_response();
            assert_eq!((again.status(), again.is_hit()), (404, false));
        });
    }
}
