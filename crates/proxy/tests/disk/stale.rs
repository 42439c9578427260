//! A stale response that is damaged on disk, whatever the next hop says of it: while nothing was
//! promised it is a miss (R01).

use super::depot::Depot;
use crate::support::{Head, Representation};
use std::thread::scope;
use weir_measure::{DiskLookupEnd, Metric};

const LENGTH: u64 = 3_000_000;
const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";

/// A proxy with a response that is stale, and damaged where it begins.
fn damaged(directives: &str) -> (Depot, Representation) {
    let mut depot = Depot::simulated(|_| {});
    let fields = format!("Cache-Control: max-age=60{directives}\r\nConnection: close\r\n");
    let what = Representation::new("/a", LENGTH).with_fields(&fields);
    depot.store_whole(&what);
    depot.restart_later(100);
    let (path, at) = depot.find(&what.bytes(0, 100));
    depot.flip(&path, at);
    (depot, what)
}

/// The next hop is asked, and answers with `message`.
fn asked(depot: &Depot, message: impl AsRef<[u8]>) -> Head {
    let mut hop = depot.origin.accept();
    let asked = hop.read_head();
    hop.send(message);
    asked
}

fn is_conditional(asked: &Head) -> bool {
    asked.has("if-none-match") || asked.has("if-modified-since")
}

#[test]
fn corrupt_stale_response_is_fetched_and_stored_again_after_validation() {
    let (mut depot, what) = damaged("");
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let response = scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        assert!(is_conditional(&asked(&depot, NOT_MODIFIED)));
        assert!(!is_conditional(&asked(&depot, what.whole())));
        reading.join().expect("no panic")
    });
    what.check_whole(&response);
    assert_eq!(response.verdict(), "fwd=uri-miss;fwd-status=200;stored");
    depot.rest();
    let unusable = Metric::DiskLookups(DiskLookupEnd::Unusable);
    assert_eq!(depot.proxy().count(unusable), 1);
    depot.written(1);
    depot.restart_later(100);
    depot.hit_on_disk(&what);
}

#[test]
fn corrupt_stale_response_is_fetched_once_for_leader_and_followers() {
    let (depot, what) = damaged("");
    let mut clients = depot.proxy().asking(1, &what.get(""));
    let mut hop = depot.origin.accept();
    assert!(is_conditional(&hop.read_head()));
    clients.extend(depot.proxy().asking(3, &what.get("")));
    depot.proxy().wait_for(Metric::FollowersWaiting, 3);
    let responses = scope(|scope| {
        let reading: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(|| client.read_response()))
            .collect();
        hop.send(NOT_MODIFIED);
        assert!(!is_conditional(&asked(&depot, what.whole())));
        let joined = reading.into_iter().map(|reading| reading.join());
        joined.collect::<Result<Vec<_>, _>>().expect("no panic")
    });
    for response in &responses {
        what.check_whole(response);
    }
    depot.rest();
    depot.origin.expect_untouched();
}

/// The one who validates it wants no content: the others find the damage.
#[test]
fn corrupt_response_freshened_by_another_client_is_fetched_again() {
    let (depot, what) = damaged("");
    let tag = what.tag.as_deref().expect("tagged");
    let mut first = depot.proxy().client();
    first.send(what.get(&format!("If-None-Match: {tag}\r\n")));
    let mut hop = depot.origin.accept();
    hop.read_head();
    let mut followers = depot.proxy().asking(1, &what.get(""));
    depot.proxy().wait_for(Metric::FollowersWaiting, 1);
    let response = scope(|scope| {
        let reading = scope.spawn(|| followers[0].read_response());
        hop.send(NOT_MODIFIED);
        assert_eq!(first.read_head().status(), 304);
        let mut hop = depot.origin.accept();
        if is_conditional(&hop.read_head()) {
            hop.send(NOT_MODIFIED);
            hop = depot.origin.accept();
            assert!(!is_conditional(&hop.read_head()));
        }
        hop.send(what.whole());
        reading.join().expect("no panic")
    });
    what.check_whole(&response);
}

#[test]
fn corrupt_response_is_not_served_stale_for_an_error_response() {
    let (depot, what) = damaged(", stale-if-error=3600");
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let error = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(is_conditional(&asked(&depot, error)));
    assert!(!is_conditional(&asked(&depot, error)));
    let response = client.read_response();
    assert_eq!(response.status(), 503);
    assert_eq!(
        response.verdict(),
        "fwd=uri-miss;fwd-status=503;detail=no-explicit-lifetime"
    );
}

#[test]
fn corrupt_response_is_not_served_stale_for_a_failing_next_hop() {
    let (depot, what) = damaged(", stale-if-error=3600");
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let mut hop = depot.origin.accept();
    hop.read_head();
    drop(hop);
    let response = client.read_response();
    assert_eq!(response.status(), 502);
    assert_eq!(response.verdict(), "fwd=miss;detail=next-hop");
}
