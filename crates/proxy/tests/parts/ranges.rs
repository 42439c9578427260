//! Ranges on a cold target, and several ranges at once (RFC 9110 §14).

use super::setup::PartSetup;
use crate::support::{Head, Representation, Response};
use weir_measure::{Metric, NotStored};

const LENGTH: u64 = 500_000;

/// Asks for `fields` of `what`, answers with `message`: what was asked, and the response.
fn fetch(
    setup: &PartSetup,
    what: &Representation,
    fields: &str,
    message: &[u8],
) -> (Head, Response) {
    let mut client = setup.proxy.client();
    client.send(what.get(fields));
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    let response = hop.send_while(message, || client.read_response());
    setup.rest();
    (asked, response)
}

#[test]
fn range_request_on_a_miss_is_forwarded_and_its_part_stored() {
    for (range, from, to) in [
        ("0-0", 0, 1),
        ("100000-199999", 100_000, 200_000),
        ("-1000", LENGTH - 1000, LENGTH),
        ("400000-", 400_000, LENGTH),
        ("0-", 0, LENGTH),
    ] {
        let setup = PartSetup::new();
        let what = Representation::new("/", LENGTH);
        let fields = format!("Range: bytes={range}\r\n");
        let (asked, response) = fetch(&setup, &what, &fields, &what.part(from, to));
        assert_eq!(
            asked.field("range"),
            Some(format!("bytes={range}").as_str())
        );
        assert!(!asked.has("if-range"));
        what.check_part(&response, from, to);
        assert_eq!(response.verdict(), "fwd=uri-miss;fwd-status=206;stored");
        let inside = format!("{from}-{}", to - 1);
        setup.hit_part(&what, &inside, from, to);
        if to - from == LENGTH {
            setup.hit_whole(&what);
        } else {
            assert_eq!(setup.proxy.count(Metric::PartsStored), 1);
        }
    }
}

#[test]
fn chunked_part_is_stored_with_its_declared_range() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 1000-199999/500000\r\nTransfer-Encoding: chunked\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.chunk(1000, 100_000));
    message.extend(what.chunk(100_000, 200_000));
    message.extend(b"0\r\n\r\n");
    let (_, response) = fetch(&setup, &what, "Range: bytes=1000-199999\r\n", &message);
    what.check_part(&response, 1000, 200_000);
    setup.hit_part(&what, "1000-199999", 1000, 200_000);
    let response = setup.complete(&what, &what.get(""), &[(0, 1000), (200_000, LENGTH)]);
    what.check_whole(&response);
}

#[test]
fn part_shorter_than_its_content_range_is_truncated_and_stored_as_such() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 0-199999/500000\r\nTransfer-Encoding: chunked\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.chunk(0, 100_000));
    message.extend(b"0\r\n\r\n");
    let mut client = setup.proxy.client();
    client.send(what.get_range("0-199999"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.send_while(&message, || {
        assert!(client.read_head().is_chunked());
        let (content, _) = client.read_to_end();
        assert!(!content.ends_with(b"\r\n0\r\n\r\n"), "it looks whole");
    });
    setup.rest();
    setup.hit_part(&what, "0-99999", 0, 100_000);
    let rest = setup.complete(&what, &what.get_range("0-199999"), &[(100_000, 200_000)]);
    what.check_part(&rest, 0, 200_000);
}

#[test]
fn part_without_a_strong_entity_tag_is_not_stored() {
    for tag in [None, Some("W/\"a\""), Some("unquoted")] {
        let setup = PartSetup::new();
        let what = Representation::new("/", LENGTH).tagged(tag);
        for times in 1..3 {
            let (_, response) = fetch(&setup, &what, "Range: bytes=0-9\r\n", &what.part(0, 10));
            what.check_part(&response, 0, 10);
            assert_eq!(
                response.verdict(),
                "fwd=uri-miss;fwd-status=206;detail=partial-content"
            );
            let reason = Metric::ResponsesNotStored(NotStored::PartialContent);
            assert_eq!(setup.proxy.count(reason), times);
        }
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    }
}

#[test]
fn part_of_unknown_complete_length_is_not_stored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 0-9/*\r\nContent-Length: 10\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.bytes(0, 10));
    let (_, response) = fetch(&setup, &what, "Range: bytes=0-9\r\n", &message);
    assert_eq!(response.head.field("content-range"), Some("bytes 0-9/*"));
    what.check(0, &response.body);
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
}

#[test]
fn whole_response_to_a_range_request_is_forwarded_whole_and_stored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (_, response) = fetch(&setup, &what, "Range: bytes=0-9\r\n", &what.whole());
    what.check_whole(&response);
    setup.hit_whole(&what);
    setup.hit_part(&what, "-10", LENGTH - 10, LENGTH);
}

#[test]
fn part_answering_if_range_of_the_client_is_not_stored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let tag = what.tag.as_deref().expect("tagged");
    let fields = format!("Range: bytes=0-9\r\nIf-Range: {tag}\r\n");
    let (asked, response) = fetch(&setup, &what, &fields, &what.part(0, 10));
    assert_eq!(asked.field("if-range"), Some(tag));
    what.check_part(&response, 0, 10);
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    // the whole is
    let (_, response) = fetch(&setup, &what, &fields, &what.whole());
    what.check_whole(&response);
    setup.hit_whole(&what);
}

#[test]
fn if_range_of_the_client_is_compared_with_the_stored_part() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 100_000);
    let tag = what.tag.as_deref().expect("tagged");
    let same = what.get(&format!("Range: bytes=10-19\r\nIf-Range: {tag}\r\n"));
    let response = setup.proxy.client().ask(&same);
    assert_eq!(response.verdict(), "hit");
    what.check_part(&response, 10, 20);
    // one who has another version gets the whole of this one
    let other = what.get("Range: bytes=10-19\r\nIf-Range: \"other\"\r\n");
    let response = setup.complete(&what, &other, &[(100_000, LENGTH)]);
    what.check_whole(&response);
    // and one who has this one the rest
    let setup = PartSetup::new();
    setup.keep(&what, 0, 100_000);
    let rest = what.get(&format!("Range: bytes=100000-\r\nIf-Range: {tag}\r\n"));
    let response = setup.complete(&what, &rest, &[(100_000, LENGTH)]);
    what.check_part(&response, 100_000, LENGTH);
    setup.hit_whole(&what);
}

#[test]
fn request_for_multiple_ranges_is_forwarded_unchanged() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let several = "Range: bytes=0-9, 20-29\r\n";
    let body = "--x\r\nContent-Range: bytes 0-9/500000\r\n\r\n0123456789\r\n--x\r\n\
                Content-Range: bytes 20-29/500000\r\n\r\n0123456789\r\n--x--\r\n";
    let fields = format!(
        "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: {}\r\n",
        body.len()
    );
    let message = what.head_with("206 Partial Content", &fields) + body;
    for verdict in ["fwd=uri-miss", "fwd=partial"] {
        let (asked, response) = fetch(&setup, &what, several, message.as_bytes());
        assert_eq!(asked.field("range"), Some("bytes=0-9, 20-29"));
        assert!(!asked.has("if-range"));
        assert_eq!(response.status(), 206);
        assert_eq!(response.text(), body);
        let why = "fwd-status=206;detail=partial-content";
        assert_eq!(response.verdict(), format!("{verdict};{why}"));
        if verdict == "fwd=uri-miss" {
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
            setup.keep(&what, 0, 100_000);
        }
    }
    // a part it had is still there
    setup.hit_part(&what, "0-99999", 0, 100_000);
    let response = setup.complete(&what, &what.get(""), &[(100_000, LENGTH)]);
    what.check_whole(&response);
    // and of the whole they need no next hop
    let response = setup.proxy.client().ask(what.get(several));
    assert_eq!(response.verdict(), "hit");
    what.check_whole(&response);
}

#[test]
fn invalid_range_is_ignored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 100_000);
    for range in ["bytes=9-0", "lines=0-9", "bytes=a-b", "bytes"] {
        let fields = format!("Range: {range}\r\n");
        let mut client = setup.proxy.client();
        client.send(what.get(&fields));
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        assert_eq!(asked.field("range"), Some("bytes=100000-499999"), "{range}");
        client.into_peer().reset();
        hop.expect_end();
    }
}

#[test]
fn response_with_status_416_is_not_stored() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let none = what.unsatisfied_head();
    let beyond = "Range: bytes=500000-\r\n";
    let (_, response) = fetch(&setup, &what, beyond, none.as_bytes());
    assert_eq!(response.status(), 416);
    assert_eq!(
        response.verdict(),
        "fwd=uri-miss;fwd-status=416;detail=conditional"
    );
    let (_, response) = fetch(&setup, &what, "", &what.whole());
    what.check_whole(&response);
    setup.hit_whole(&what);
}

#[test]
fn rest_of_a_part_that_is_shorter_than_requested_is_requested_again() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 0, 1);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let response = std::thread::scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        for (from, to) in [(1, 200_001), (200_001, 400_001), (400_001, LENGTH)] {
            let mut hop = setup.origin.accept();
            let asked = hop.read_head();
            let range = format!("bytes={from}-{}", LENGTH - 1);
            assert_eq!(asked.field("range"), Some(range.as_str()));
            hop.send(what.part(from, to));
        }
        reading.join().expect("no panic")
    });
    what.check_whole(&response);
    setup.rest();
    setup.hit_whole(&what);
}

#[test]
fn download_is_whole_though_the_range_of_another_client_ahead_of_it_is_cut() {
    let length = 1_000_000;
    let setup = PartSetup::new();
    let what = Representation::new("/", length);
    let mut whole = setup.proxy.client();
    whole.send(what.get(""));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let message = what.whole();
    let begun = what.head().len() + 100_000;
    let mut received = hop.send_while(&message[..begun], || {
        whole.read_head();
        whole.read_exactly(100_000)
    });
    let mut part = setup.proxy.client();
    part.send(what.get_range("600000-999999"));
    let mut other = setup.origin.accept();
    let asked = other.read_head();
    assert_eq!(asked.field("range"), Some("bytes=600000-999999"));
    let cut = what.part(600_000, length);
    let mut of_part = other.send_while(&cut[..cut.len() - 350_000], || {
        part.read_head();
        part.read_exactly(50_000)
    });
    drop(other);
    setup.proxy.wait_for(Metric::FetchesUnderWay, 1);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| part.read_exactly(350_000));
        received.extend(hop.send_while(&message[begun..], || whole.read_exactly(900_000)));
        of_part.extend(reading.join().expect("no panic"));
    });
    what.check(0, &received);
    what.check(600_000, &of_part);
    setup.rest();
}
