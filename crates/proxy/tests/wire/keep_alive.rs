//! How long a client's connection lives, and in which order it is answered (RFC 9112 §9).

use crate::support::{End, Setup};

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn second_request_is_answered_on_the_same_connection() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/1"));
        let (mut hop, _) = setup.origin.answer(PLAIN);
        assert_eq!(client.read_response().text(), "ok");
        client.send(setup.get("/2"));
        let head = hop.answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
        assert_eq!(head.start_line(), "GET /2 HTTP/1.1");
        let response = client.read_response();
        assert_eq!(response.text(), "two");
        assert!(!response.head.has("connection"));
        client.expect_nothing_more();
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    Setup::each(|setup| {
        let (_, mut hop) = setup.fetch("/stored", FRESH);
        let mut client = setup.proxy.client();
        let paths = ["/1", "/stored", "/2", "/stored", "/stored", "/3"];
        let requests: String = paths.iter().map(|path| setup.get(path)).collect();
        client.send(requests);
        for path in ["/1", "/2", "/3"] {
            let head = hop.read_head();
            assert_eq!(head.start_line(), format!("GET {path} HTTP/1.1"));
            hop.expect_nothing_more();
            hop.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{path}"
            ));
        }
        let answers: Vec<String> = paths
            .iter()
            .map(|_| client.read_response().text())
            .collect();
        assert_eq!(answers, ["/1", "ok", "/2", "ok", "ok", "/3"]);
        client.expect_nothing_more();
    });
}

#[test]
fn pipelined_request_is_forwarded_only_after_the_response_before_it() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/1") + &setup.get("/2"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect_nothing_more();
        setup.origin.expect_untouched();
        hop.send(PLAIN);
        assert_eq!(hop.answer(PLAIN).start_line(), "GET /2 HTTP/1.1");
        assert_eq!(client.read_response().text(), "ok");
        assert_eq!(client.read_response().text(), "ok");
    });
}

#[test]
fn http10_connection_is_closed_after_the_response() {
    Setup::each(|setup| {
        for is_asked in [true, false] {
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.0", ""));
            if is_asked {
                drop(setup.origin.answer(FRESH));
            }
            let head = client.read_head();
            assert_eq!(head.field("connection"), Some("close"));
            client.expect("ok");
            assert_eq!(client.expect_end(), End::Closed);
        }
    });
}

#[test]
fn http10_keep_alive_request_is_answered_with_keep_alive() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let request = setup.head("GET", "/", "1.0", "Connection: Keep-Alive\r\n");
        client.send(&request);
        let (_hop, _) = setup.origin.answer(FRESH);
        let miss = client.read_response();
        let hit = client.ask(&request);
        assert!(hit.is_hit() && !miss.is_hit());
        for response in [miss, hit] {
            assert_eq!(response.head.field("connection"), Some("keep-alive"));
            assert_eq!(response.text(), "ok");
        }
        client.expect_nothing_more();
    });
}

#[test]
fn connection_is_closed_after_a_request_with_connection_close() {
    Setup::each(|setup| {
        let close = setup.head("GET", "/", "1.1", "Connection: close\r\n");
        for asks in [true, false] {
            let mut client = setup.proxy.client();
            // what follows a request with close is not read as one
            client.send(close.clone() + &setup.get("/after"));
            if asks {
                drop(setup.origin.answer(FRESH));
            }
            let response = client.read_response();
            assert_eq!(response.head.field("connection"), Some("close"));
            assert_eq!(response.text(), "ok");
            client.expect_end();
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn connection_to_a_closing_next_hop_is_not_reused() {
    Setup::each(|setup| {
        let closing = [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nConnection: foo, CLOSE\r\nContent-Length: 2\r\n\r\nok",
        ];
        let mut client = setup.proxy.client();
        for answer in closing {
            client.send(setup.get("/"));
            let (mut hop, _) = setup.origin.answer(answer);
            let response = client.read_response();
            assert_eq!(response.text(), "ok");
            // what the next hop says of its connection is not said of the client's
            assert!(!response.head.has("connection"), "{answer}");
            hop.expect_end();
        }
    });
}

#[test]
fn http10_next_hop_connection_with_keep_alive_is_reused() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/1"));
        let keeps = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
        let (mut hop, _) = setup.origin.answer(keeps);
        client.read_response();
        client.send(setup.get("/2"));
        assert_eq!(hop.answer(PLAIN).start_line(), "GET /2 HTTP/1.1");
        client.read_response();
    });
}
