//! The next hop closes an idle connection just when it is used again (R32).

use crate::support::{OriginConnection, RawClient, Setup};
use weir_measure::Metric;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client and a next-hop connection that have carried a request.
fn used(setup: &Setup) -> (RawClient, OriginConnection) {
    let mut client = setup.proxy.client();
    client.send(setup.get("/first"));
    let (hop, _) = setup.origin.answer(OK);
    assert_eq!(client.read_response().text(), "ok");
    (client, hop)
}

#[test]
fn idempotent_request_is_retried_after_the_idle_race() {
    Setup::each(|setup| {
        let methods = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
        for (at, method) in (1..).zip(methods) {
            let (mut client, mut hop) = used(setup);
            let request = setup.head(method, "/second", "1.1", "");
            client.send(&request);
            let first = hop.read_head();
            drop(hop);
            let (_second, again) = setup
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(first.text, again.text);
            assert_eq!(client.read_response().status(), 204);
            assert_eq!(setup.proxy.count(Metric::Retries), at);
        }
        assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
    });
}

#[test]
fn non_idempotent_request_or_one_with_content_is_not_retried() {
    Setup::each(|setup| {
        let content = "Content-Length: 2\r\n";
        for (method, fields, content) in [
            ("POST", "", ""),
            ("PATCH", "", ""),
            ("get", "", ""),
            ("POST", content, "ok"),
            // safe to repeat, but its content is gone
            ("PUT", content, "ok"),
            ("GET", content, "ok"),
        ] {
            let (mut client, mut hop) = used(setup);
            client.send(setup.head(method, "/second", "1.1", fields) + content);
            hop.read_head();
            hop.expect(content);
            drop(hop);
            assert_eq!(client.read_response().status(), 502, "{method}");
            setup.origin.expect_untouched();
            // the client's connection goes on
            client.send(setup.get("/third"));
            let (_hop, head) = setup
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(head.start_line(), "GET /third HTTP/1.1");
            assert_eq!(client.read_response().status(), 204);
        }
        assert_eq!(setup.proxy.count(Metric::Retries), 0);
    });
}

#[test]
fn request_is_retried_only_once() {
    Setup::each(|setup| {
        let (mut client, mut hop) = used(setup);
        client.send(setup.get("/second"));
        hop.read_head();
        drop(hop);
        setup.origin.answer("");
        let response = client.read_response();
        assert_eq!(response.status(), 502);
        setup.origin.expect_untouched();
        assert_eq!(setup.proxy.count(Metric::Retries), 1);
    });
}

#[test]
fn retry_uses_a_new_connection() {
    Setup::each(|setup| {
        let (mut first, mut second) = (setup.proxy.client(), setup.proxy.client());
        first.send(setup.get("/1"));
        let mut older = setup.origin.accept();
        second.send(setup.get("/2"));
        let mut newer = setup.origin.accept();
        older.answer(OK);
        newer.answer(OK);
        first.read_response();
        second.read_response();
        // both are idle, and both are stale
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 2);
        first.send(setup.get("/3"));
        newer.read_head();
        drop(newer);
        let (_fresh, head) = setup.origin.answer(OK);
        assert_eq!(head.start_line(), "GET /3 HTTP/1.1");
        assert_eq!(first.read_response().text(), "ok");
        older.expect_nothing_more();
    });
}

#[test]
fn failure_on_new_connection_or_after_response_began_is_not_retried() {
    Setup::each(|setup| {
        // a new connection
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        setup.origin.answer("");
        assert_eq!(client.read_response().status(), 502);
        setup.origin.expect_untouched();
        // a used one, on which the response had begun
        for begin in [
            "H",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            let (mut client, mut hop) = used(setup);
            client.send(setup.get("/"));
            hop.answer(begin);
            if begin.contains("103") {
                assert_eq!(client.read_head().status(), 103);
            }
            drop(hop);
            assert_eq!(client.read_response().status(), 502, "{begin:?}");
            setup.origin.expect_untouched();
        }
        assert_eq!(setup.proxy.count(Metric::Retries), 0);
    });
}

#[test]
fn connection_closed_while_idle_is_skipped_without_a_retry() {
    Setup::each(|setup| {
        let (mut client, hop) = used(setup);
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        drop(hop);
        // even a POST is not at risk: the end was there before the request
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 2\r\n") + "ok");
        let (mut fresh, _) = setup.origin.answer(OK);
        fresh.expect("ok");
        assert_eq!(client.read_response().text(), "ok");
        assert_eq!(setup.proxy.count(Metric::Retries), 0);
        assert_eq!(setup.proxy.count(Metric::ConnectionCacheUnusable), 1);
    });
}
