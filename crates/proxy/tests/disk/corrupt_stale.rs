//! A stale response that is damaged on disk, whatever the next hop says of it: while nothing was
//! promised it is a miss (R01).

use super::setup::DiskSetup;
use crate::support::{Head, Representation};
use std::thread::scope;
use weir_measure::{DiskLookupEnd, Metric};

const LENGTH: u64 = 3_000_000;
const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";

/// A proxy with a response that is stale, and damaged where it begins.
fn damaged(directives: &str) -> (DiskSetup, Representation) {
    let mut setup = DiskSetup::simulated(|_| {});
    let fields = format!("Cache-Control: max-age=60{directives}\r\nConnection: close\r\n");
    let what = Representation::new("/a", LENGTH).with_fields(&fields);
    setup.store_whole(&what);
    setup.restart_later(100);
    let (path, at) = setup.find(&what.bytes(0, 100));
    setup.flip(&path, at);
    (setup, what)
}

/// The next hop is asked, and answers with `message`.
fn asked(setup: &DiskSetup, message: impl AsRef<[u8]>) -> Head {
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    hop.send(message);
    asked
}

fn is_conditional(asked: &Head) -> bool {
    asked.has("if-none-match") || asked.has("if-modified-since")
}

#[test]
fn corrupt_stale_response_is_fetched_and_stored_again_after_validation() {
    let (mut setup, what) = damaged("");
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let response = scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        assert!(is_conditional(&asked(&setup, NOT_MODIFIED)));
        assert!(!is_conditional(&asked(&setup, what.whole())));
        reading.join().expect("no panic")
    });
    what.check_whole(&response);
    assert_eq!(response.verdict(), "fwd=uri-miss;fwd-status=200;stored");
    setup.rest();
    let unusable = Metric::DiskLookups(DiskLookupEnd::Unusable);
    assert_eq!(setup.proxy().count(unusable), 1);
    setup.written(1);
    setup.restart_later(100);
    setup.hit_on_disk(&what);
}

#[test]
fn corrupt_stale_response_is_fetched_once_for_leader_and_followers() {
    let (setup, what) = damaged("");
    let mut clients = setup.proxy().asking(1, &what.get(""));
    let mut hop = setup.origin.accept();
    assert!(is_conditional(&hop.read_head()));
    clients.extend(setup.proxy().asking(3, &what.get("")));
    setup.proxy().wait_for(Metric::FollowersWaiting, 3);
    let responses = scope(|scope| {
        let reading: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(|| client.read_response()))
            .collect();
        hop.send(NOT_MODIFIED);
        assert!(!is_conditional(&asked(&setup, what.whole())));
        let joined = reading.into_iter().map(|reading| reading.join());
        joined.collect::<Result<Vec<_>, _>>().expect("no panic")
    });
    for response in &responses {
        what.check_whole(response);
    }
    setup.rest();
    setup.origin.expect_untouched();
}

/// The one who validates it wants no content: the others find the damage.
#[test]
fn corrupt_response_freshened_by_another_client_is_fetched_again() {
    let (setup, what) = damaged("");
    let tag = what.tag.as_deref().expect("tagged");
    let mut first = setup.proxy().client();
    first.send(what.get(&format!("If-None-Match: {tag}\r\n")));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let mut followers = setup.proxy().asking(1, &what.get(""));
    setup.proxy().wait_for(Metric::FollowersWaiting, 1);
    let response = scope(|scope| {
        let reading = scope.spawn(|| followers[0].read_response());
        hop.send(NOT_MODIFIED);
        assert_eq!(first.read_head().status(), 304);
        let mut hop = setup.origin.accept();
        if is_conditional(&hop.read_head()) {
            hop.send(NOT_MODIFIED);
            hop = setup.origin.accept();
            assert!(!is_conditional(&hop.read_head()));
        }
        hop.send(what.whole());
        reading.join().expect("no panic")
    });
    what.check_whole(&response);
}

#[test]
fn corrupt_response_is_not_served_stale_for_an_error_response() {
    let (setup, what) = damaged(", stale-if-error=3600");
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let error = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(is_conditional(&asked(&setup, error)));
    assert!(!is_conditional(&asked(&setup, error)));
    let response = client.read_response();
    assert_eq!(response.status(), 503);
    assert_eq!(
        response.verdict(),
        "fwd=uri-miss;fwd-status=503;detail=no-explicit-lifetime"
    );
}

#[test]
fn corrupt_response_is_not_served_stale_for_a_failing_next_hop() {
    let (setup, what) = damaged(", stale-if-error=3600");
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    hop.read_head();
    drop(hop);
    let response = client.read_response();
    assert_eq!(response.status(), 502);
    assert_eq!(response.verdict(), "fwd=miss;detail=next-hop");
}
