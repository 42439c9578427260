//! An error that one client provokes is not what the others get (R65).

use crate::support::{RawClient, Setup};
use weir_measure::Metric;

const GOOD: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nETag: \"a\"\r\nContent-Length: 4\r\n\r\ngood";

/// An error that says nothing of caching, or as little as heuristics live on.
fn error(status: u16) -> String {
    format!(
        "HTTP/1.1 {status} Oops\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nETag: \"e\"\r\nContent-Length: 3\r\n\r\nbad"
    )
}

/// Statuses that an origin answers with because of the request, or because of itself.
const PROVOKED: [u16; 24] = [
    400, 401, 402, 403, 405, 406, 407, 408, 409, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426,
    429, 431, 500, 501, 503,
];

fn ask(setup: &Setup, client: &mut RawClient, fields: &str) {
    client.send(setup.head("GET", "/", "1.1", fields));
}

#[test]
fn error_without_explicit_lifetime_is_not_stored() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        ask(setup, &mut client, "X-HTTP-Method-Override: DELETE\r\n");
        let mut hop = setup.origin.accept();
        for status in PROVOKED {
            hop.answer(error(status));
            assert_eq!(client.read_response().status(), status);
            assert_eq!(
                setup.proxy.count(Metric::StoreEntries),
                0,
                "{status} is stored"
            );
            ask(setup, &mut client, "X-HTTP-Method-Override: DELETE\r\n");
        }
        hop.answer(GOOD);
        assert_eq!(client.read_response().text(), "good");
    });
}

#[test]
fn error_without_explicit_lifetime_leaves_the_stored_response_in_place() {
    Setup::each(|setup| {
        drop(setup.fetch("/", GOOD));
        let mut attacker = setup.proxy.client();
        for status in PROVOKED {
            // the one way past what is fresh
            ask(
                setup,
                &mut attacker,
                "Cache-Control: no-cache\r\nX-HTTP-Method-Override: DELETE\r\n",
            );
            drop(
                setup
                    .origin
                    .answer(error(status).replace("ETag", "Connection: close\r\nETag")),
            );
            assert_eq!(attacker.read_response().status(), status);
            let mut client = setup.proxy.client();
            client.send(setup.get("/") + &setup.head("TRACE", "/", "1.1", ""));
            let response = client.read_response();
            assert_eq!(response.text(), "good", "{status} replaced it");
            assert!(response.is_hit());
        }
    });
}

#[test]
fn failing_next_hop_leaves_the_stored_response_in_place() {
    Setup::each(|setup| {
        drop(setup.fetch("/", GOOD));
        for broken in [
            "nonsense\r\n\r\n",
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ] {
            let mut client = setup.proxy.client();
            ask(setup, &mut client, "Cache-Control: no-cache\r\n");
            drop(setup.origin.answer(broken));
            client.read_response();
            let again = setup.proxy.client().ask(setup.get("/"));
            assert!(again.is_hit() && again.text() == "good", "{broken:?}");
        }
    });
}

#[test]
fn error_with_explicit_lifetime_is_stored() {
    Setup::each(|setup| {
        for status in [400, 404, 500, 501, 503] {
            let path = format!("/{status}");
            let answer = error(status).replace(
                "ETag",
                "Cache-Control: max-age=60\r\nConnection: close\r\nETag",
            );
            drop(setup.fetch(&path, &answer));
            let again = setup.proxy.client().ask(setup.get(&path));
            assert!(again.is_hit() && again.status() == status, "{status}");
        }
    });
}

#[test]
fn status_404_or_410_replaces_the_stored_response() {
    Setup::each(|setup| {
        for status in [404, 410] {
            drop(setup.fetch("/", GOOD));
            setup.proxy.clock.advance_ms(20_000);
            let gone = format!(
                "HTTP/1.1 {status} Gone\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngone"
            );
            assert_eq!(setup.fetch("/", &gone).0.text(), "gone");
            // nothing of the old one is left, whatever the next hop does
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_, head) = setup.origin.answer("HTTP/1.1 404 Gone\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n");
            assert_ne!(head.field("if-none-match"), Some("\"a\""));
            client.read_response();
        }
    });
}

#[test]
fn failed_range_or_precondition_leaves_the_stored_response_a_hit() {
    Setup::each(|setup| {
        let (_, mut hop) = setup.fetch("/", GOOD);
        let mut client = setup.proxy.client();
        for fields in [
            "Range: bytes=99-\r\n",
            "Range: bytes=a-b\r\n",
            "If-Match: \"other\"\r\n",
        ] {
            let response = client.ask(setup.head("GET", "/", "1.1", fields));
            assert!([200, 412, 416].contains(&response.status()));
            let after = client.ask(setup.get("/"));
            assert!(after.is_hit() && after.text() == "good", "{fields:?}");
        }
        hop.expect_nothing_more();
    });
}
