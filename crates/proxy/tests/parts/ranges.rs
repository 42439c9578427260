//! Ranges on a cold target, and several ranges at once (RFC 9110 §14).

use super::shelf::Shelf;
use crate::support::{Head, Representation, Response};
use weir_measure::{Metric, NotStored};

const LENGTH: u64 = 500_000;

/// Asks for `fields` of `what`, answers with `message`: what was asked, and the response.
fn fetch(shelf: &Shelf, what: &Representation, fields: &str, message: &[u8]) -> (Head, Response) {
    let mut client = shelf.proxy.client();
    client.send(what.get(fields));
    let mut hop = shelf.origin.accept();
    let asked = hop.read_head();
    let response = hop.send_while(message, || client.read_response());
    shelf.rest();
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
        let shelf = Shelf::new();
        let what = Representation::new("/", LENGTH);
        let fields = format!("Range: bytes={range}\r\n");
        let (asked, response) = fetch(&shelf, &what, &fields, &what.part(from, to));
        assert_eq!(
            asked.field("range"),
            Some(format!("bytes={range}").as_str())
        );
        assert!(!asked.has("if-range"));
        what.check_part(&response, from, to);
        assert_eq!(response.verdict(), "fwd=uri-miss;fwd-status=206;stored");
        let inside = format!("{from}-{}", to - 1);
        shelf.hit_part(&what, &inside, from, to);
        if to - from == LENGTH {
            shelf.hit_whole(&what);
        } else {
            assert_eq!(shelf.proxy.count(Metric::PartsStored), 1);
        }
    }
}

#[test]
fn chunked_part_is_stored_with_its_declared_range() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 1000-199999/500000\r\nTransfer-Encoding: chunked\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.chunk(1000, 100_000));
    message.extend(what.chunk(100_000, 200_000));
    message.extend(b"0\r\n\r\n");
    let (_, response) = fetch(&shelf, &what, "Range: bytes=1000-199999\r\n", &message);
    what.check_part(&response, 1000, 200_000);
    shelf.hit_part(&what, "1000-199999", 1000, 200_000);
    let response = shelf.complete(&what, &what.get(""), &[(0, 1000), (200_000, LENGTH)]);
    what.check_whole(&response);
}

#[test]
fn part_shorter_than_its_content_range_is_truncated_and_stored_as_such() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 0-199999/500000\r\nTransfer-Encoding: chunked\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.chunk(0, 100_000));
    message.extend(b"0\r\n\r\n");
    let mut client = shelf.proxy.client();
    client.send(what.get_range("0-199999"));
    let mut hop = shelf.origin.accept();
    hop.read_head();
    hop.send_while(&message, || {
        assert!(client.read_head().is_chunked());
        let (content, _) = client.read_to_end();
        assert!(!content.ends_with(b"\r\n0\r\n\r\n"), "it looks whole");
    });
    shelf.rest();
    shelf.hit_part(&what, "0-99999", 0, 100_000);
    let rest = shelf.complete(&what, &what.get_range("0-199999"), &[(100_000, 200_000)]);
    what.check_part(&rest, 0, 200_000);
}

#[test]
fn part_without_a_strong_entity_tag_is_not_stored() {
    for tag in [None, Some("W/\"a\""), Some("unquoted")] {
        let shelf = Shelf::new();
        let what = Representation::new("/", LENGTH).tagged(tag);
        for times in 1..3 {
            let (_, response) = fetch(&shelf, &what, "Range: bytes=0-9\r\n", &what.part(0, 10));
            what.check_part(&response, 0, 10);
            assert_eq!(
                response.verdict(),
                "fwd=uri-miss;fwd-status=206;detail=partial-content"
            );
            let reason = Metric::ResponsesNotStored(NotStored::PartialContent);
            assert_eq!(shelf.proxy.count(reason), times);
        }
        assert_eq!(shelf.proxy.count(Metric::StoreEntries), 0);
    }
}

#[test]
fn part_of_unknown_complete_length_is_not_stored() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let fields = "Content-Range: bytes 0-9/*\r\nContent-Length: 10\r\n";
    let mut message = what.head_with("206 Partial Content", fields).into_bytes();
    message.extend(what.bytes(0, 10));
    let (_, response) = fetch(&shelf, &what, "Range: bytes=0-9\r\n", &message);
    assert_eq!(response.head.field("content-range"), Some("bytes 0-9/*"));
    what.check(0, &response.body);
    assert_eq!(shelf.proxy.count(Metric::StoreEntries), 0);
}

#[test]
fn whole_response_to_a_range_request_is_forwarded_whole_and_stored() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let (_, response) = fetch(&shelf, &what, "Range: bytes=0-9\r\n", &what.whole());
    what.check_whole(&response);
    shelf.hit_whole(&what);
    shelf.hit_part(&what, "-10", LENGTH - 10, LENGTH);
}

#[test]
fn part_answering_if_range_of_the_client_is_not_stored() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let tag = what.tag.as_deref().expect("tagged");
    let fields = format!("Range: bytes=0-9\r\nIf-Range: {tag}\r\n");
    let (asked, response) = fetch(&shelf, &what, &fields, &what.part(0, 10));
    assert_eq!(asked.field("if-range"), Some(tag));
    what.check_part(&response, 0, 10);
    assert_eq!(shelf.proxy.count(Metric::StoreEntries), 0);
    // the whole is
    let (_, response) = fetch(&shelf, &what, &fields, &what.whole());
    what.check_whole(&response);
    shelf.hit_whole(&what);
}

#[test]
fn if_range_of_the_client_is_compared_with_the_stored_part() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    shelf.keep(&what, 0, 100_000);
    let tag = what.tag.as_deref().expect("tagged");
    let same = what.get(&format!("Range: bytes=10-19\r\nIf-Range: {tag}\r\n"));
    let response = shelf.proxy.client().ask(&same);
    assert_eq!(response.verdict(), "hit");
    what.check_part(&response, 10, 20);
    // one who has another version gets the whole of this one
    let other = what.get("Range: bytes=10-19\r\nIf-Range: \"other\"\r\n");
    let response = shelf.complete(&what, &other, &[(100_000, LENGTH)]);
    what.check_whole(&response);
    // and one who has this one the rest
    let shelf = Shelf::new();
    shelf.keep(&what, 0, 100_000);
    let rest = what.get(&format!("Range: bytes=100000-\r\nIf-Range: {tag}\r\n"));
    let response = shelf.complete(&what, &rest, &[(100_000, LENGTH)]);
    what.check_part(&response, 100_000, LENGTH);
    shelf.hit_whole(&what);
}

#[test]
fn request_for_multiple_ranges_is_forwarded_unchanged() {
    let shelf = Shelf::new();
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
        let (asked, response) = fetch(&shelf, &what, several, message.as_bytes());
        assert_eq!(asked.field("range"), Some("bytes=0-9, 20-29"));
        assert!(!asked.has("if-range"));
        assert_eq!(response.status(), 206);
        assert_eq!(response.text(), body);
        let why = "fwd-status=206;detail=partial-content";
        assert_eq!(response.verdict(), format!("{verdict};{why}"));
        if verdict == "fwd=uri-miss" {
            assert_eq!(shelf.proxy.count(Metric::StoreEntries), 0);
            shelf.keep(&what, 0, 100_000);
        }
    }
    // a part it had is still there
    shelf.hit_part(&what, "0-99999", 0, 100_000);
    let response = shelf.complete(&what, &what.get(""), &[(100_000, LENGTH)]);
    what.check_whole(&response);
    // and of the whole they need nobody else
    let response = shelf.proxy.client().ask(what.get(several));
    assert_eq!(response.verdict(), "hit");
    what.check_whole(&response);
}

#[test]
fn invalid_range_is_ignored() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    shelf.keep(&what, 0, 100_000);
    for range in ["bytes=9-0", "lines=0-9", "bytes=a-b", "bytes"] {
        let fields = format!("Range: {range}\r\n");
        let mut client = shelf.proxy.client();
        client.send(what.get(&fields));
        let mut hop = shelf.origin.accept();
        let asked = hop.read_head();
        assert_eq!(asked.field("range"), Some("bytes=100000-499999"), "{range}");
        client.into_peer().reset();
        hop.expect_end();
    }
}

#[test]
fn response_with_status_416_is_not_stored() {
    let shelf = Shelf::new();
    let what = Representation::new("/", LENGTH);
    let none = what.unsatisfied_head();
    let beyond = "Range: bytes=500000-\r\n";
    let (_, response) = fetch(&shelf, &what, beyond, none.as_bytes());
    assert_eq!(response.status(), 416);
    assert_eq!(
        response.verdict(),
        "fwd=uri-miss;fwd-status=416;detail=conditional"
    );
    let (_, response) = fetch(&shelf, &what, "", &what.whole());
    what.check_whole(&response);
    shelf.hit_whole(&what);
}
