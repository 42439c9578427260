//! The next hop closes an idle connection just when it is used again (R32).

use crate::support::{OriginConnection, RawClient, Way};
use weir_measure::Metric;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A client and a next-hop connection that have carried a request.
fn used(way: &Way) -> (RawClient, OriginConnection) {
    let mut client = way.proxy.client();
    client.send(way.get("/first"));
    let (hop, _) = way.origin.answer(OK);
    assert_eq!(client.read_response().text(), "ok");
    (client, hop)
}

#[test]
fn idempotent_request_is_retried_after_the_idle_race() {
    Way::each(|way| {
        let methods = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
        for (at, method) in (1..).zip(methods) {
            let (mut client, mut hop) = used(way);
            let request = way.head(method, "/second", "1.1", "");
            client.send(&request);
            let first = hop.read_head();
            drop(hop);
            let (_second, again) = way
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(first.text, again.text);
            assert_eq!(client.read_response().status(), 204);
            assert_eq!(way.proxy.count(Metric::Retries), at);
        }
        assert_eq!(way.proxy.count(Metric::NextHopErrors), 0);
    });
}

#[test]
fn non_idempotent_request_or_one_with_content_is_not_retried() {
    Way::each(|way| {
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
            let (mut client, mut hop) = used(way);
            client.send(way.head(method, "/second", "1.1", fields) + content);
            hop.read_head();
            hop.expect(content);
            drop(hop);
            assert_eq!(client.read_response().status(), 502, "{method}");
            way.origin.expect_untouched();
            // the client's connection goes on
            client.send(way.get("/third"));
            let (_hop, head) = way
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(head.start_line(), "GET /third HTTP/1.1");
            assert_eq!(client.read_response().status(), 204);
        }
        assert_eq!(way.proxy.count(Metric::Retries), 0);
    });
}

#[test]
fn request_is_retried_only_once() {
    Way::each(|way| {
        let (mut client, mut hop) = used(way);
        client.send(way.get("/second"));
        hop.read_head();
        drop(hop);
        way.origin.answer("");
        let response = client.read_response();
        assert_eq!(response.status(), 502);
        way.origin.expect_untouched();
        assert_eq!(way.proxy.count(Metric::Retries), 1);
    });
}

#[test]
fn retry_uses_a_new_connection() {
    Way::each(|way| {
        let (mut first, mut second) = (way.proxy.client(), way.proxy.client());
        first.send(way.get("/1"));
        let mut older = way.origin.accept();
        second.send(way.get("/2"));
        let mut newer = way.origin.accept();
        older.answer(OK);
        newer.answer(OK);
        first.read_response();
        second.read_response();
        // both are idle, and both are stale
        way.proxy.wait_for(Metric::ConnectionCacheIdle, 2);
        first.send(way.get("/3"));
        newer.read_head();
        drop(newer);
        let (_fresh, head) = way.origin.answer(OK);
        assert_eq!(head.start_line(), "GET /3 HTTP/1.1");
        assert_eq!(first.read_response().text(), "ok");
        older.expect_nothing_more();
    });
}

#[test]
fn failure_on_new_connection_or_after_response_began_is_not_retried() {
    Way::each(|way| {
        // a new connection
        let mut client = way.proxy.client();
        client.send(way.get("/"));
        way.origin.answer("");
        assert_eq!(client.read_response().status(), 502);
        way.origin.expect_untouched();
        // a used one, on which the response had begun
        for begin in [
            "H",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            let (mut client, mut hop) = used(way);
            client.send(way.get("/"));
            hop.answer(begin);
            if begin.contains("103") {
                assert_eq!(client.read_head().status(), 103);
            }
            drop(hop);
            assert_eq!(client.read_response().status(), 502, "{begin:?}");
            way.origin.expect_untouched();
        }
        assert_eq!(way.proxy.count(Metric::Retries), 0);
    });
}

#[test]
fn connection_closed_while_idle_is_skipped_without_a_retry() {
    Way::each(|way| {
        let (mut client, hop) = used(way);
        way.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        drop(hop);
        // even a POST is not at risk: the end was there before the request
        client.send(way.head("POST", "/", "1.1", "Content-Length: 2\r\n") + "ok");
        let (mut fresh, _) = way.origin.answer(OK);
        fresh.expect("ok");
        assert_eq!(client.read_response().text(), "ok");
        assert_eq!(way.proxy.count(Metric::Retries), 0);
        assert_eq!(way.proxy.count(Metric::ConnectionCacheUnusable), 1);
    });
}
