//! Content of requests that modules change: what the next hop gets.

use crate::support::{Head, OriginConnection, RawClient, Setup, scripted};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Config;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Content that takes many reads.
fn long() -> String {
    "The quick brown fox jumps over the lazy dog.\n".repeat(10_000)
}

fn with(hook: &'static str, how: &[&str]) -> impl Fn(&mut Config) {
    let modules = how.iter().enumerate();
    let modules: Vec<_> = modules
        .map(|(at, how)| scripted(&format!("m{at}"), &[(hook, *how)]))
        .collect();
    move |config| config.modules.clone_from(&modules)
}

fn received(how: &[&str]) -> impl Fn(&mut Config) {
    with("request-received", how)
}

/// The fields and the framed content of a request.
fn framed(content: &str, is_chunked: bool) -> (String, String) {
    if is_chunked {
        let length = content.len();
        let fields = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n";
        let content = match length {
            0 => "0\r\n\r\n".to_owned(),
            _ => format!("{length:x}\r\n{content}\r\n0\r\nX-Sum: 1\r\n\r\n"),
        };
        return (fields.to_owned(), content);
    }
    let fields = format!("Content-Length: {}\r\nDigest: d\r\n", content.len());
    (fields, content.to_owned())
}

/// A client that sends a request with content from a thread of its own.
fn sending(setup: &Setup, content: &str, is_chunked: bool) -> std::thread::JoinHandle<RawClient> {
    let (fields, content) = framed(content, is_chunked);
    let mut client = setup.proxy.client();
    client.send(setup.head("POST", "/", "1.1", &fields));
    std::thread::spawn(move || {
        client.try_send(content);
        client
    })
}

/// No field tells of the content as it was.
fn check_changed(head: &Head) {
    assert!(head.is_chunked(), "{head:?}");
    for name in ["content-length", "digest", "trailer"] {
        assert_eq!(head.field(name), None, "{name}");
    }
}

#[test]
fn no_transform_that_a_module_removes_keeps_content_as_it_is() {
    let removing = received(&["remove Cache-Control", "content upper"]);
    Setup::each_with(removing, |setup| {
        let fields = "Cache-Control: no-transform\r\nContent-Length: 2\r\n";
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", fields) + "ab");
        let (mut hop, _) = setup.origin.answer("");
        assert_eq!(hop.read_exactly(2), b"ab");
        hop.send(OK);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn next_hop_gets_changed_content_in_chunks_without_trailers() {
    for content in ["short".to_owned(), long()] {
        for is_chunked in [false, true] {
            Setup::each_with(received(&["content upper"]), |setup| {
                let client = sending(setup, &content, is_chunked);
                let mut hop = setup.origin.accept();
                let head = hop.read_head();
                check_changed(&head);
                let (came, trailers) = hop.read_chunks();
                assert!(came == content.to_uppercase().as_bytes());
                assert_eq!(trailers, "");
                hop.send(OK);
                let mut client = client.join().expect("sent");
                assert_eq!(client.read_response().text(), "ok");
                // both connections are good for another request
                client.send(setup.get("/next"));
                hop.answer(OK);
                assert_eq!(client.read_response().text(), "ok");
                let got = setup.proxy.count(Metric::BytesFromClients);
                assert!(got >= content.len() as u64, "{got}");
            });
        }
    }
}

#[test]
fn content_passes_modules_from_the_client_to_the_next_hop() {
    let how = ["content twice", "content reverse", "content upper"];
    Setup::each_with(received(&how), |setup| {
        let client = sending(setup, "abc", false);
        let mut hop = setup.origin.accept();
        check_changed(&hop.read_head());
        assert_eq!(hop.read_chunks().0, b"CCBBAA");
        hop.send(OK);
        let mut client = client.join().expect("sent");
        assert_eq!(client.read_response().status(), 200);
    });
}

#[test]
fn content_behind_the_end_that_a_module_sets_is_received_and_dropped() {
    for content in ["short".to_owned(), long()] {
        Setup::each_with(received(&["content first"]), |setup| {
            let client = sending(setup, &content, true);
            let mut hop = setup.origin.accept();
            check_changed(&hop.read_head());
            assert_eq!(hop.read_chunks().0, &content.as_bytes()[..2]);
            hop.send(OK);
            let mut client = client.join().expect("sent");
            assert_eq!(client.read_response().text(), "ok");
            client.send(setup.get("/next"));
            hop.answer(OK);
            assert_eq!(client.read_response().text(), "ok");
        });
    }
}

#[test]
fn request_without_content_and_one_that_forbids_it_pass_as_they_are() {
    Setup::each_with(received(&["content upper"]), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, head) = setup.origin.answer(OK);
        assert!(!head.is_chunked());
        assert_eq!(client.read_response().text(), "ok");
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 0\r\n"));
        let head = hop.answer(OK);
        assert_eq!((head.is_chunked(), head.length()), (false, Some(0)));
        assert_eq!(client.read_response().text(), "ok");
        let fields = "Cache-Control: no-transform\r\nContent-Length: 4\r\n";
        client.send(setup.head("POST", "/", "1.1", fields) + "text");
        let head = hop.read_head();
        assert_eq!((head.is_chunked(), head.length()), (false, Some(4)));
        hop.expect("text");
        hop.send(OK);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn client_of_http_1_0_may_send_content_that_is_changed() {
    Setup::each_with(received(&["content twice"]), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.0", "Content-Length: 3\r\n") + "abc");
        let mut hop = setup.origin.accept();
        check_changed(&hop.read_head());
        assert_eq!(hop.read_chunks().0, b"aabbcc");
        hop.send(OK);
        let (text, _) = client.into_peer().read_to_end();
        assert!(text.ends_with(b"ok"));
    });
}

/// The next hop has some of a request, and cannot take it for a whole one.
fn check_cut(hop: OriginConnection) {
    let (bytes, _) = hop.into_peer().read_to_end();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.ends_with("0\r\n\r\n"), "it looks whole");
}

#[test]
fn request_whose_content_a_module_gives_up_is_refused_and_does_not_look_whole() {
    for (how, fault, reason) in [
        ("content cut", ModuleFault::GaveUp, "gave-up"),
        ("content fail", ModuleFault::GaveUp, "gave-up"),
        // it holds more than it may
        ("content reverse", ModuleFault::BadAnswer, "bad-answer"),
    ] {
        Setup::each_with(received(&[how]), |setup| {
            let client = sending(setup, &long(), false);
            let hop = setup.origin.accept();
            check_cut(hop);
            let mut client = client.join().expect("sent or refused");
            let refused = client.read_response();
            assert_eq!(refused.status(), 502, "{how}");
            let status = refused.head.field("proxy-status").expect("a reason");
            assert!(status.contains("m0") && status.contains(reason), "{status}");
            let failures = setup.proxy.count(Metric::ModuleFailures(fault));
            assert_eq!(failures, 1, "{how}");
            assert_eq!(setup.proxy.count(Metric::ClientAborts), 0, "{how}");
        });
    }
}

#[test]
fn client_that_breaks_off_does_not_make_a_whole_request() {
    for how in ["content upper", "content blocks", "content first"] {
        Setup::each_with(received(&[how]), |setup| {
            let mut client = setup.proxy.client();
            client.send(setup.head("POST", "/", "1.1", "Content-Length: 9\r\n") + "abc");
            let hop = setup.origin.accept();
            client.into_peer().reset();
            check_cut(hop);
        });
    }
}

#[test]
fn response_that_comes_before_the_content_is_whole_is_cut_if_a_module_gives_up() {
    Setup::each_with(received(&["content cut"]), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Transfer-Encoding: chunked\r\n"));
        client.send("3\r\nabc\r\n");
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        let head = client.read_head();
        assert_eq!(head.status(), 200);
        let rest = format!("{:x}\r\n{}\r\n0\r\n\r\n", 200_000, "x".repeat(200_000));
        client.try_send(rest);
        client.read_cut(&head);
        check_cut(hop);
    });
}

#[test]
fn content_that_is_changed_elsewhere_is_a_failure_of_its_module() {
    Setup::each_with(with("request-sent", &["content upper"]), |setup| {
        let mut client = setup.proxy.client();
        let head = setup.head("POST", "/", "1.1", "Content-Length: 3\r\n");
        assert_eq!(client.ask(head + "abc").status(), 502);
        let fault = Metric::ModuleFailures(ModuleFault::BadAnswer);
        assert_eq!(setup.proxy.count(fault), 1);
    });
}

#[test]
fn request_with_changed_content_is_sent_once() {
    Setup::each_with(received(&["content upper"]), |setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, _) = setup.origin.answer(OK);
        assert_eq!(client.read_response().text(), "ok");
        // the connection that is used again is closed without an answer
        client.send(setup.head("PUT", "/", "1.1", "Content-Length: 3\r\n") + "abc");
        check_changed(&hop.read_head());
        assert_eq!(hop.read_chunks().0, b"ABC");
        drop(hop);
        assert_eq!(client.read_response().status(), 502);
        setup.origin.expect_untouched();
    });
}
