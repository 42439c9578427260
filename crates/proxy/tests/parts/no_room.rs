//! Parts of responses that find no room as a whole: what is asked for is answered all the same.

use super::setup::PartSetup;
use crate::support::{Representation, Response};
use weir_measure::{Metric, NotStored};
use weir_policy::eviction::EvictionKind;
use weir_proxy::config::ByteSize;

const LENGTH: u64 = 3_000_000;

fn fetch(setup: &PartSetup, request: &str, message: &[u8]) -> Response {
    let mut client = setup.proxy.client();
    client.send(request);
    let mut hop = setup.origin.accept();
    hop.read_head();
    let response = hop.send_while(message, || client.read_response());
    setup.rest();
    response
}

#[test]
fn part_of_a_response_too_large_to_store_is_completed_for_the_client() {
    let setup = PartSetup::with(|config| config.cache.largest_response = ByteSize::from_mib(1));
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 100_000, 200_000);
    // the gaps on both sides
    let range = what.get_range("50000-299999");
    let response = setup.complete(&what, &range, &[(50_000, 100_000), (200_000, 300_000)]);
    what.check_part(&response, 50_000, 300_000);
    setup.hit_part(&what, "50000-299999", 50_000, 300_000);
    // and all of it, which passes by
    for _ in 0..2 {
        let response = setup.complete(&what, &what.get(""), &[(0, 50_000), (300_000, LENGTH)]);
        what.check_whole(&response);
        setup.hit_part(&what, "50000-299999", 50_000, 300_000);
    }
    assert_eq!(setup.proxy.count(Metric::PassedThrough), 2);
}

#[test]
fn part_without_room_for_its_rest_is_completed_for_the_client() {
    let setup = PartSetup::with(|config| {
        config.cache.memory = ByteSize::from_mib(8);
        config.cache.largest_response = ByteSize::from_mib(8);
        config.cache.eviction = EvictionKind::Lru;
    });
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 100_000);
    // half of the memory is for what is arriving, and taken
    let other = Representation::new("/other", LENGTH);
    let mut slow = setup.proxy.client();
    slow.send(other.get(""));
    let (mut hop, _) = setup.origin.answer(other.head());
    slow.read_head();
    for request in [
        what.get(""),
        what.get_range("0-"),
        what.get_range("50000-2999999"),
    ] {
        let mut client = setup.proxy.client();
        client.send(&request);
        let mut rest = setup.origin.accept();
        assert_eq!(
            rest.read_head().field("range"),
            Some("bytes=100000-2999999")
        );
        let message = what.part(100_000, LENGTH);
        let response = rest.send_while(&message, || client.read_response());
        let verdict = "fwd=partial;fwd-status=206;detail=no-room-in-flight";
        assert_eq!(response.verdict(), verdict);
        if request.contains("Range") {
            let from = LENGTH - response.body.len() as u64;
            what.check_part(&response, from, LENGTH);
        } else {
            what.check_whole(&response);
        }
        setup.proxy.wait_for(Metric::FetchesUnderWay, 1);
    }
    // what was there still is
    let response = setup.proxy.client().ask(what.get_range("0-99999"));
    assert_eq!(response.verdict(), "hit");
    let response = hop.send_while(&other.bytes(0, LENGTH), || slow.read_exactly(3_000_000));
    other.check(0, &response);
    // and now there is room
    setup.rest();
    let response = setup.complete(&what, &what.get(""), &[(100_000, LENGTH)]);
    what.check_whole(&response);
    setup.hit_whole(&what);
}

#[test]
fn small_parts_of_a_huge_response_are_stored() {
    let setup = PartSetup::with(|config| {
        config.cache.memory = ByteSize::from_mib(8);
        config.cache.largest_response = ByteSize::from_mib(8);
        config.cache.eviction = EvictionKind::Lru;
    });
    // a film of which a little is seen
    let what = Representation::new("/", 5_000_000_000);
    for from in [0, 4_999_000_000, 1000, 2_000_000_000] {
        let range = what.get_range(&format!("{from}-{}", from + 999));
        let response = fetch(&setup, &range, &what.part(from, from + 1000));
        what.check_part(&response, from, from + 1000);
    }
    for from in [0, 4_999_000_000, 1000, 2_000_000_000] {
        setup.hit_part(&what, &format!("{from}-{}", from + 999), from, from + 1000);
    }
}

#[test]
fn response_too_large_for_the_small_queue_is_forwarded_with_that_detail() {
    let setup = PartSetup::with(|config| {
        config.cache.memory = ByteSize::from_mib(8);
        config.cache.largest_response = ByteSize::from_mib(8);
    });
    let fits = Representation::new("/fits", 700_000);
    let response = fetch(&setup, &fits.get(""), &fits.whole());
    fits.check_whole(&response);
    setup.hit_whole(&fits);
    // a tenth of the memory are 838 860 bytes
    let larger = Representation::new("/larger", 900_000);
    for _ in 0..2 {
        let response = fetch(&setup, &larger.get(""), &larger.whole());
        larger.check_whole(&response);
        let verdict = "fwd=uri-miss;fwd-status=200;detail=too-large-for-small-queue";
        assert_eq!(response.verdict(), verdict);
    }
    let reason = NotStored::TooLargeForSmallQueue;
    let refused = Metric::ResponsesNotStored(reason);
    assert_eq!(setup.proxy.count(refused), 2);
    setup.hit_whole(&fits);
}
