//! Parts that are kept: what is inside is a hit, and only what is missing is fetched (RFC 9111
//! §3.3, §3.4).

use super::setup::PartSetup;
use crate::support::{Head, Representation};
use weir_measure::Metric;

const LENGTH: u64 = 1_000_000;

#[test]
fn range_inside_a_stored_part_is_a_hit() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 200_000, 500_000);
    for (range, from, to) in [
        ("200000-499999", 200_000, 500_000),
        ("200000-200000", 200_000, 200_001),
        ("499999-499999", 499_999, 500_000),
        ("300000-309999", 300_000, 310_000),
    ] {
        setup.hit_part(&what, range, from, to);
    }
    // where the end is known, these are inside as well
    setup.keep(&what, 900_000, LENGTH);
    for (range, from) in [
        ("-100000", 900_000),
        ("-1", 999_999),
        ("950000-", 950_000),
        ("999999-2000000", 999_999),
    ] {
        setup.hit_part(&what, range, from, LENGTH);
    }
    let beyond = setup.proxy.client().ask(what.get_range("1000000-"));
    assert_eq!(beyond.status(), 416);
    assert_eq!(beyond.head.field("content-range"), Some("bytes */1000000"));
    setup.origin.expect_untouched();
}

#[test]
fn head_request_on_a_stored_part_is_a_hit_with_the_complete_length() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 5);
    let mut client = setup.proxy.client();
    client.send(what.ask("HEAD", ""));
    let head = client.read_head();
    assert_eq!((head.status(), head.verdict().as_str()), (200, "hit"));
    assert_eq!(head.length(), Some(1_000_000));
    assert!(!head.has("content-range"));
    let tag = what.tag.as_deref().expect("tagged");
    let unchanged = client.ask(what.get(&format!("If-None-Match: {tag}\r\n")));
    assert_eq!(
        (unchanged.status(), unchanged.verdict().as_str()),
        (304, "hit")
    );
    setup.origin.expect_untouched();
}

#[test]
fn request_for_the_whole_fetches_only_the_range_missing_from_a_part() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 400_000);
    let response = setup.complete(&what, &what.get(""), &[(400_000, LENGTH)]);
    assert_eq!(response.verdict(), "fwd=partial;fwd-status=206;stored");
    what.check_whole(&response);
    setup.hit_whole(&what);
    assert_eq!(setup.proxy.count(Metric::BytesRecovered), 400_000);
    assert_eq!(setup.proxy.count(Metric::BytesWasted), 0);
}

#[test]
fn parts_stored_in_any_order_are_combined_into_the_whole() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 600_000, LENGTH);
    setup.keep(&what, 0, 300_000);
    setup.keep(&what, 300_000, 600_000);
    // it is whole although no request was for the whole
    setup.hit_whole(&what);
    setup.hit_part(&what, "299990-600009", 299_990, 600_010);
}

#[test]
fn missing_ranges_between_parts_are_fetched_exactly() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    for at in [100_000, 400_000, 700_000] {
        setup.keep(&what, at, at + 100_000);
    }
    let gaps = [
        (0, 100_000),
        (200_000, 400_000),
        (500_000, 700_000),
        (800_000, LENGTH),
    ];
    let response = setup.complete(&what, &what.get(""), &gaps);
    what.check_whole(&response);
    setup.hit_whole(&what);
    assert_eq!(setup.proxy.count(Metric::BodyBytesFromNextHops), LENGTH);
}

#[test]
fn range_across_missing_ranges_fetches_only_those() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 300_000, 400_000);
    setup.keep(&what, 600_000, 700_000);
    let over = what.get_range("250000-799999");
    let gaps = [(250_000, 300_000), (400_000, 600_000), (700_000, 800_000)];
    let response = setup.complete(&what, &over, &gaps);
    assert_eq!(response.verdict(), "fwd=partial;fwd-status=206;stored");
    what.check_part(&response, 250_000, 800_000);
    setup.hit_part(&what, "250000-799999", 250_000, 800_000);
    // of a suffix too only what is missing
    let suffix = setup.complete(&what, &what.get_range("-300000"), &[(800_000, LENGTH)]);
    what.check_part(&suffix, 700_000, LENGTH);
    let front = setup.complete(&what, &what.get_range("0-"), &[(0, 250_000)]);
    what.check_part(&front, 0, LENGTH);
    setup.hit_whole(&what);
}

#[test]
fn single_missing_byte_is_fetched_as_a_range_of_its_own() {
    let setup = PartSetup::new();
    let what = Representation::new("/", 1000);
    setup.keep(&what, 0, 499);
    setup.keep(&what, 500, 1000);
    let response = setup.complete(&what, &what.get(""), &[(499, 500)]);
    what.check_whole(&response);
    setup.hit_whole(&what);
}

#[test]
fn part_of_unknown_length_is_completed_with_an_open_ended_range() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep_chunks(&what, 400_000);
    // its length is unknown: neither a range beyond it nor a suffix can be told from here
    for range in ["400000-", "500000-600000", "-10"] {
        let mut client = setup.proxy.client();
        client.send(what.get_range(range));
        let mut hop = setup.origin.accept();
        hop.read_head();
        client.into_peer().reset();
        hop.expect_end();
    }
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("range"), Some("bytes=400000-"));
    assert_eq!(asked.field("if-range"), what.tag.as_deref());
    let response = hop.send_while(&what.part(400_000, LENGTH), || client.read_response());
    assert_eq!(response.verdict(), "fwd=partial;fwd-status=206;stored");
    what.check_whole(&response);
    setup.hit_whole(&what);
}

#[test]
fn range_of_a_part_of_unknown_length_is_requested_from_the_next_hop() {
    for (range, asks, from, to) in [
        ("500000-599999", "500000-599999", 500_000, 600_000),
        ("300000-499999", "400000-499999", 300_000, 500_000),
        ("700000-", "700000-", 700_000, LENGTH),
        // what these are is known when the length is
        ("100-199", "400000-", 100, 200),
        ("-10", "400000-", 999_990, LENGTH),
        ("-700000", "400000-", 300_000, LENGTH),
    ] {
        let setup = PartSetup::new();
        let what = Representation::new("/", LENGTH);
        setup.keep_chunks(&what, 400_000);
        let mut client = setup.proxy.client();
        client.send(what.get_range(range));
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        assert_eq!(asked.field("range"), Some(format!("bytes={asks}").as_str()));
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        let (first, end) = asked_range(&asked);
        let message = what.part(first, end);
        // what the client does not want is not taken
        let pouring = std::thread::spawn(move || hop.try_send(message));
        if range == "-10" {
            // too far away to wait for
            let mut hop = setup.origin.accept();
            let asked = hop.read_head();
            assert_eq!(asked.field("range"), Some("bytes=999990-999999"));
            hop.send(what.part(999_990, LENGTH));
        }
        let response = client.read_response();
        what.check_part(&response, from, to);
        pouring.join().expect("no panic");
        setup.rest();
        // from now on the length is known
        setup.hit_part(&what, "0-99", 0, 100);
    }
}

/// The range that a request asks for.
fn asked_range(asked: &Head) -> (u64, u64) {
    let range = asked.field("range").expect("a range");
    let range = range.strip_prefix("bytes=").expect("bytes");
    let (first, last) = range.split_once('-').expect("a range");
    let first = first.parse().expect("a number");
    match last {
        "" => (first, LENGTH),
        last => (first, last.parse::<u64>().expect("a number") + 1),
    }
}

#[test]
fn requests_for_the_whole_share_one_fetch_of_the_missing_range() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 400_000);
    let (mut first, mut second) = (setup.proxy.client(), setup.proxy.client());
    first.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=400000-999999"));
    second.send(what.get(""));
    setup.proxy.wait_for(Metric::RequestsInFlight, 2);
    let mut third = setup.proxy.client();
    hop.send_while(&what.part(400_000, LENGTH), || {
        let response = first.read_response();
        assert_eq!(response.verdict(), "fwd=partial;fwd-status=206;stored");
        what.check_whole(&response);
        let response = second.read_response();
        assert_eq!(response.verdict(), "fwd=partial;collapsed");
        what.check_whole(&response);
    });
    third.send(what.get(""));
    what.check_whole(&third.read_response());
    setup.origin.expect_untouched();
    assert_eq!(setup.proxy.count(Metric::BodyBytesFromNextHops), LENGTH);
}

#[test]
fn part_shorter_than_requested_is_followed_by_another_range_request() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 100_000);
    // a server may send less than it was asked for (RFC 9110 §15.3.7)
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=100000-999999"));
    let mut bytes = hop.send_while(&what.part(100_000, 300_000), || {
        assert_eq!(client.read_head().length(), Some(1_000_000));
        client.read_exactly(300_000)
    });
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=300000-999999"));
    bytes.extend(hop.send_while(&what.part(300_000, LENGTH), || client.read_exactly(700_000)));
    what.check(0, &bytes);
    setup.hit_whole(&what);
}

#[test]
fn stale_part_is_validated_before_use() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 400_000);
    setup.proxy.clock.advance_ms(4_000_000);
    // validated by what completes it
    let response = setup.complete(&what, &what.get(""), &[(400_000, LENGTH)]);
    assert_eq!(response.verdict(), "fwd=stale;fwd-status=206;stored");
    what.check_whole(&response);
    setup.hit_whole(&what);
    let what = Representation::new("/inside", LENGTH);
    setup.keep(&what, 0, 400_000);
    setup.proxy.clock.advance_ms(4_000_000);
    let mut client = setup.proxy.client();
    client.send(what.get_range("0-9"));
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
    hop.send(what.head_with("304 Not Modified", ""));
    what.check_part(&client.read_response(), 0, 10);
    setup.hit_part(&what, "0-399999", 0, 400_000);
}

#[test]
fn part_of_another_variant_is_not_served() {
    let setup = PartSetup::new();
    let fields = "Cache-Control: max-age=3600\r\nVary: Accept-Language\r\nConnection: close\r\n";
    let what = Representation::new("/", LENGTH).with_fields(fields);
    setup.keep(&what, 0, 400_000);
    let mut client = setup.proxy.client();
    let other = what.next(500);
    client.send(what.get("Accept-Language: de\r\nRange: bytes=0-9\r\n"));
    let mut hop = setup.origin.accept();
    assert!(!hop.read_head().has("if-range"));
    hop.send(other.part(0, 10));
    let response = client.read_response();
    assert_eq!(response.verdict(), "fwd=vary-miss;fwd-status=206;stored");
    other.check_part(&response, 0, 10);
    setup.hit_part(&what, "0-9", 0, 10);
}

#[test]
fn purged_part_is_neither_served_nor_completed() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 400_000);
    assert_eq!(setup.proxy.purge("http://a.example/"), 1);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert!(!hop.read_head().has("range"));
    let response = hop.send_while(&what.whole(), || client.read_response());
    what.check_whole(&response);
}

#[test]
fn bytes_beyond_the_content_range_of_a_206_are_not_stored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", 20);
    let mut client = setup.proxy.client();
    client.send(what.get_range("0-4"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let fields = "Content-Range: bytes 0-4/20\r\nTransfer-Encoding: chunked\r\n";
    let mut part = what.head_with("206 Partial Content", fields).into_bytes();
    part.extend(b"a\r\n");
    part.extend(what.bytes(0, 5));
    part.extend(b"XXXXX\r\n0\r\n\r\n");
    // with the head, in one read
    hop.send(part);
    let response = client.read_response();
    assert_eq!(response.status(), 206);
    what.check(0, &response.body);
    assert_eq!(response.body.len(), 5);
    let whole = setup.complete(&what, &what.get(""), &[(5, 20)]);
    what.check_whole(&whole);
    // the same where it ends in the middle of what is missing
    setup.proxy.purge_all();
    setup.keep(&what, 8, 10);
    let mut other = setup.proxy.client();
    other.send(what.get_range("5-9"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let fields = "Content-Range: bytes 5-7/20\r\nTransfer-Encoding: chunked\r\n";
    let mut part = what.head_with("206 Partial Content", fields).into_bytes();
    part.extend(b"9\r\n");
    part.extend(what.bytes(5, 8));
    part.extend(b"QQQQQQ\r\n0\r\n\r\n");
    hop.send(part);
    what.check_part(&other.read_response(), 5, 10);
    let whole = setup.complete(&what, &what.get(""), &[(0, 5), (10, 20)]);
    what.check_whole(&whole);
}
