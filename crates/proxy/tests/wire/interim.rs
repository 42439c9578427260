//! Interim responses, and requests that wait for one (RFC 9110 §10.1.1, §15.2).

use crate::support::Setup;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn expect_100_continue_is_forwarded_and_its_100_returned() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let fields = "Expect: 100-continue\r\nContent-Length: 5\r\n";
        client.send(setup.head("POST", "/", "1.1", fields));
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(head.field("expect"), Some("100-continue"));
        hop.expect_nothing_more();
        hop.send("HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(client.read_head().status(), 100);
        client.send("hello");
        hop.expect("hello");
        hop.send(OK);
        assert_eq!(client.read_response().text(), "ok");
        // both connections go on
        client.send(setup.get("/next"));
        hop.answer(OK);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn connections_are_closed_when_the_expected_content_was_not_sent() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let fields = "Expect: 100-continue\r\nContent-Length: 34\r\n";
        client.send(setup.head("POST", "/", "1.1", fields));
        let (mut hop, _) = setup
            .origin
            .answer("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno");
        let response = client.read_response();
        assert_eq!(response.status(), 417);
        assert_eq!(response.text(), "no");
        assert_eq!(response.head.field("connection"), Some("close"));
        // content or a request, that cannot be told: it is neither
        client.try_send("GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n");
        client.expect_end();
        // and the next hop's connection does not go on either
        hop.expect_end();
        setup.origin.expect_untouched();
    });
}

#[test]
fn early_final_response_reaches_a_client_that_is_still_sending() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 100000\r\n"));
        client.send(vec![b'x'; 1000]);
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
        client.try_send(vec![b'x'; 20_000]);
        let response = client.read_response();
        assert_eq!(response.status(), 413);
        assert_eq!(response.head.field("connection"), Some("close"));
        client.expect_end();
    });
}

#[test]
fn interim_responses_are_forwarded_in_order() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, _) = setup.origin.answer(
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n",
        );
        assert_eq!(client.read_head().start_line(), "HTTP/1.1 102 Processing");
        let hints = client.read_head();
        assert_eq!(hints.start_line(), "HTTP/1.1 103 Early Hints");
        assert_eq!(hints.fields(), [("Link", "</a.css>; rel=preload")]);
        client.expect_nothing_more();
        hop.send("HTTP/1.1 103 Early Hints\r\n\r\n".to_owned() + OK);
        assert_eq!(client.read_head().status(), 103);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn interim_responses_are_not_sent_to_http10_clients() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.0", "Expect: 100-continue\r\n"));
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let (_hop, _) = setup.origin.answer(interim.to_owned() + OK);
        let head = client.read_head();
        assert_eq!(head.status(), 200);
        assert!(!head.has("link"));
        client.expect("ok");
        client.expect_end();
    });
}

#[test]
fn interim_response_beyond_the_limit_of_32_becomes_502() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
        hop.send(interim.repeat(32));
        for _ in 0..32 {
            assert_eq!(client.read_head().status(), 103);
        }
        hop.send(interim);
        let response = client.read_response();
        assert_eq!(response.status(), 502);
        hop.expect_end();
    });
}

#[test]
fn final_response_after_32_interim_responses_is_forwarded() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.0", ""));
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(32);
        let (_hop, _) = setup.origin.answer(interim + OK);
        assert_eq!(client.read_head().status(), 200);
    });
}

#[test]
fn interim_response_is_forwarded_without_framing_fields() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (_hop, _) = setup.origin.answer(
            "HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\nLink: </a>\r\n\r\n".to_owned() + OK,
        );
        let hints = client.read_head();
        assert_eq!(hints.status(), 103);
        assert_eq!(hints.fields(), [("Link", "</a>")]);
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn response_204_has_no_framing_fields_as_miss_or_hit() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, _) = setup.origin.answer(
            "HTTP/1.1 204 No Content\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n",
        );
        for method in ["", "GET", "HEAD"] {
            if !method.is_empty() {
                client.send(setup.head(method, "/", "1.1", ""));
            }
            let head = client.read_head();
            assert_eq!(head.status(), 204);
            assert!(!head.has("content-length") && !head.has("transfer-encoding"));
        }
        // and that length agrees with the status, so the connection goes on
        client.send(setup.get("/other"));
        hop.answer(OK);
        assert_eq!(client.read_response().text(), "ok");
    });
}
