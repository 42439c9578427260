//! Content that is not used is never read as a request (R49).

use crate::support::{RawClient, Running, ScriptedOrigin, Setup};

/// Content that looks like a request.
const CONTENT: &str = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The content in both framings: field lines, and bytes.
fn framed() -> [(String, String); 2] {
    let length = CONTENT.len();
    [
        (format!("Content-Length: {length}\r\n"), CONTENT.to_owned()),
        (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{length:x}\r\n{CONTENT}\r\n0\r\n\r\n"),
        ),
    ]
}

/// Behind the answer with `status` comes the answer to the second request, 405, or the end; never
/// anything else.
fn expect_second_or_end(client: &mut RawClient, status: u16) {
    let response = client.read_response();
    assert_eq!(response.status(), status);
    if response.head.field("connection") == Some("close") {
        client.expect_end();
    } else {
        assert_eq!(client.read_response().status(), 405);
        client.expect_end();
    }
}

/// A request with content, then TRACE, which is refused with 405.
fn then_trace(setup: &Setup, method: &str, fields: &str, content: &str) -> String {
    setup.head(method, "/", "1.1", fields) + content + &setup.head("TRACE", "/", "1.1", "")
}

#[test]
fn content_after_a_generated_response_is_not_read_as_a_request() {
    Setup::each(|setup| {
        for (fields, content) in framed() {
            for (method, more, status) in
                [("TRACE", "", 405), ("OPTIONS", "Max-Forwards: 0\r\n", 200)]
            {
                for expect in ["", "Expect: 100-continue\r\n"] {
                    let mut client = setup.proxy.client();
                    let fields = format!("{fields}{more}{expect}");
                    client.send(then_trace(setup, method, &fields, &content));
                    expect_second_or_end(&mut client, status);
                    setup.origin.expect_untouched();
                }
            }
        }
    });
}

#[test]
fn content_of_a_refused_forward_request_is_not_read_as_a_request() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::forward_with(|_| {});
    let smuggled = CONTENT.replace(
        "/smuggled",
        &format!("http://{}/smuggled", origin.address()),
    );
    for (line, status) in [
        ("POST https://a.example/ HTTP/1.1", 501),
        ("POST http://127.0.0.1/ HTTP/1.1", 403),
        ("POST / HTTP/1.1", 400),
    ] {
        for expect in ["", "Expect: 100-continue\r\n"] {
            let mut client = proxy.client();
            client.send(format!(
                "{line}\r\nHost: a.example\r\nContent-Length: {}\r\n{expect}\r\n{smuggled}TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
                smuggled.len()
            ));
            expect_second_or_end(&mut client, status);
            origin.expect_untouched();
        }
    }
}

#[test]
fn content_from_a_denied_client_is_not_read_as_a_request() {
    let proxy = Running::forward_with(|config| {
        config.access.clients = vec!["10.0.0.0/8".parse().expect("a network")];
    });
    let mut client = proxy.client();
    let request = format!(
        "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{CONTENT}",
        CONTENT.len()
    );
    assert_eq!(client.ask(request).status(), 403);
    client.expect_end();
}

#[test]
fn content_without_a_route_or_next_hop_is_not_read_as_a_request() {
    let closed = ScriptedOrigin::new().address();
    let proxy = Running::gateway_with(closed, |config| {
        config.routes[0].path = "/here".parse().expect("a prefix");
    });
    for (fields, content) in framed() {
        for (path, status) in [("/elsewhere", 404), ("/here", 502)] {
            let mut client = proxy.client();
            client.send(format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{content}TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"
            ));
            expect_second_or_end(&mut client, status);
        }
    }
}

#[test]
fn forwarded_content_is_not_read_as_a_request_when_the_next_hop_fails() {
    Setup::each(|setup| {
        for (fields, content) in framed() {
            // the content is sent on whole, then the next hop closes or speaks nonsense
            for answer in ["", "nonsense\r\n\r\n"] {
                let mut client = setup.proxy.client();
                client.send(then_trace(setup, "POST", &fields, &content));
                let mut hop = setup.origin.accept();
                hop.read_head();
                hop.read_until("Host: a.example\r\n\r\n");
                if content.ends_with("0\r\n\r\n") {
                    hop.expect("\r\n0\r\n\r\n");
                }
                hop.send(answer);
                drop(hop);
                expect_second_or_end(&mut client, 502);
                setup.origin.expect_untouched();
            }
        }
    });
}

#[test]
fn rest_of_partly_forwarded_content_is_not_read_as_a_request() {
    Setup::each(|setup| {
        for answer in [
            "",
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ] {
            let mut client = setup.proxy.client();
            let length = 5 + CONTENT.len();
            client.send(setup.head("POST", "/", "1.1", &format!("Content-Length: {length}\r\n")));
            client.send("begin");
            let mut hop = setup.origin.accept();
            hop.read_head();
            hop.expect("begin");
            hop.send(answer);
            if answer.is_empty() {
                drop(hop);
            }
            let status = if answer.contains(" 200 ") { 200 } else { 502 };
            let response = client.read_response();
            assert_eq!(response.status(), status);
            assert_eq!(response.head.field("connection"), Some("close"));
            client.try_send(CONTENT);
            client.expect_end();
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn content_of_a_request_answered_304_is_not_read_as_a_request() {
    Setup::each(|setup| {
        for (fields, content) in framed() {
            let mut client = setup.proxy.client();
            client.send(then_trace(
                setup,
                "GET",
                &(fields + "If-None-Match: \"a\"\r\n"),
                &content,
            ));
            let (_hop, _) = setup
                .origin
                .answer("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
            expect_second_or_end(&mut client, 304);
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn connection_is_closed_after_more_than_64_kib_of_unwanted_content() {
    Setup::each(|setup| {
        let limit = 64 * 1024;
        for (length, stays) in [(limit, true), (limit + 1, false)] {
            let mut client = setup.proxy.client();
            let fields = format!("Max-Forwards: 0\r\nContent-Length: {length}\r\n");
            client.send(setup.head("OPTIONS", "/", "1.1", &fields));
            client.send(vec![b'x'; length]);
            let response = client.read_response();
            assert_eq!(response.status(), 200);
            assert_eq!(response.head.has("connection"), !stays);
            if stays {
                client.send(setup.get("/"));
                drop(setup.origin.answer(OK));
                assert_eq!(client.read_response().text(), "ok");
            } else {
                client.expect_end();
            }
        }
    });
}
