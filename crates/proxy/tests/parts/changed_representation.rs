//! The representation changes while a part of it is stored: not a byte of the two is mixed.

use super::setup::PartSetup;
use crate::support::{End, OriginConnection, RawClient, Representation, Response};
use std::thread::JoinHandle;
use weir_measure::{Lost, Metric};

const LENGTH: u64 = 600_000;

/// A part is stored, a client asks `request`, and the next hop is asked for the rest.
fn begin(setup: &PartSetup, what: &Representation, request: &str) -> (RawClient, OriginConnection) {
    setup.keep(what, 0, 200_000);
    let mut client = setup.proxy.client();
    client.send(request);
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert!(asked.has("range"), "{asked:?}");
    assert_eq!(asked.field("if-range"), what.tag.as_deref());
    (client, hop)
}

/// The request comes again, as the client sent it, and is answered by `message`.
fn forwarded_again(
    setup: &PartSetup,
    client: &mut RawClient,
    range: Option<&str>,
    message: &[u8],
) -> Response {
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("range"), range);
    assert!(!asked.has("if-range"), "{asked:?}");
    let response = hop.send_while(message, || client.read_response());
    setup.rest();
    response
}

#[test]
fn new_whole_response_replaces_the_old_part() {
    let setup = PartSetup::new();
    for length in [LENGTH, 100_000, 1_000_000, 10] {
        let what = Representation::new(&format!("/{length}"), LENGTH);
        let next = what.next(length);
        let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
        let response = hop.send_while(&next.whole(), || client.read_response());
        assert_eq!(response.verdict(), "fwd=partial;fwd-status=200;stored");
        next.check_whole(&response);
        setup.rest();
        setup.hit_whole(&next);
    }
}

#[test]
fn unstorable_new_response_invalidates_the_old_part() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let next = what
        .next(LENGTH)
        .with_fields("Cache-Control: no-store\r\nConnection: close\r\n");
    let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
    let response = hop.send_while(&next.whole(), || client.read_response());
    next.check_whole(&response);
    setup.proxy.wait_for(Metric::StoreEntries, 0);
}

#[test]
fn truncated_new_response_invalidates_the_old_part() {
    let setup = PartSetup::new();
    for (path, tag) in [("/kept", Some("\"new\"")), ("/lost", None)] {
        let what = Representation::new(path, LENGTH);
        let next = what.next(LENGTH).tagged(tag);
        let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
        hop.send(next.head());
        hop.send(next.bytes(0, 100_000));
        client.read_head();
        next.check(0, &client.read_exactly(100_000));
        drop(hop);
        client.expect_end();
        setup.rest();
        let mut client = setup.proxy.client();
        client.send(next.get_range("0-9"));
        if tag.is_some() {
            next.check_part(&client.read_response(), 0, 10);
        } else {
            // nothing is known of it
            let (_hop, asked) = setup.origin.answer(next.part(0, 10));
            assert!(!asked.has("if-range"), "{asked:?}");
            assert_eq!(client.read_response().status(), 206);
        }
    }
}

#[test]
fn mismatched_206_is_discarded_and_the_request_repeated_without_range() {
    let setup = PartSetup::new();
    // what is wrong with the 206
    type Wrong = fn(&Representation) -> Vec<u8>;
    let cases: [(&str, Wrong); 9] = [
        ("another tag", |what| {
            what.next(LENGTH).part(200_000, LENGTH)
        }),
        ("no tag", |what| {
            what.clone().tagged(None).part(200_000, LENGTH)
        }),
        ("weak tag", |what| {
            let tag = what.tag.clone().expect("tagged");
            what.clone()
                .tagged(Some(&format!("W/{tag}")))
                .part(200_000, LENGTH)
        }),
        ("another length", |what| {
            let mut longer = what.clone();
            longer.length += 1;
            longer.part(200_000, LENGTH)
        }),
        ("another place", |what| what.part(200_001, LENGTH)),
        ("place before", |what| what.part(199_999, LENGTH)),
        ("content shorter than its range", |what| {
            let fields = "Content-Range: bytes 200000-599999/600000\r\nContent-Length: 10\r\n";
            (what.head_with("206 Partial Content", fields) + "0123456789").into_bytes()
        }),
        ("no range", |what| {
            let fields = "Content-Length: 10\r\n";
            (what.head_with("206 Partial Content", fields) + "0123456789").into_bytes()
        }),
        ("several parts", |what| {
            let body =
                "--x\r\nContent-Range: bytes 200000-200009/600000\r\n\r\n0123456789\r\n--x--\r\n";
            let fields = format!(
                "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: {}\r\n",
                body.len()
            );
            (what.head_with("206 Partial Content", &fields) + body).into_bytes()
        }),
    ];
    for (name, wrong) in cases {
        let what = Representation::new(&format!("/{}", name.replace(' ', "-")), LENGTH);
        let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
        // it may be closed before it is all sent
        hop.try_send(wrong(&what));
        let next = what.next(LENGTH + 5);
        let response = forwarded_again(&setup, &mut client, None, &next.whole());
        next.check_whole(&response);
        assert_eq!(
            response.verdict(),
            "fwd=partial;fwd-status=200;stored",
            "{name}"
        );
        setup.hit_whole(&next);
    }
}

#[test]
fn original_range_is_requested_again_after_a_version_change() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let request = what.get_range("100000-299999");
    let (mut client, mut hop) = begin(&setup, &what, &request);
    let next = what.next(LENGTH);
    hop.try_send(next.part(200_000, 300_000));
    let range = Some("bytes=100000-299999");
    let part = next.part(100_000, 300_000);
    let response = forwarded_again(&setup, &mut client, range, &part);
    next.check_part(&response, 100_000, 300_000);
    // it is the new one's part that is stored now
    setup.hit_part(&next, "100000-299999", 100_000, 300_000);
    let mut client = setup.proxy.client();
    client.send(what.get_range("0-9"));
    let (_hop, asked) = setup.origin.answer(next.part(0, 10));
    assert_eq!(asked.field("if-range"), next.tag.as_deref());
    next.check_part(&client.read_response(), 0, 10);
}

#[test]
fn client_request_is_repeated_when_a_missing_range_is_answered_416() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
    let next = what.next(150_000);
    hop.send(next.unsatisfied_head());
    let response = forwarded_again(&setup, &mut client, None, &next.whole());
    next.check_whole(&response);
    setup.hit_whole(&next);
    // of a range it is
    let what = Representation::new("/range", LENGTH);
    let request = what.get_range("400000-499999");
    let (mut client, mut hop) = begin(&setup, &what, &request);
    let next = what.next(150_000);
    hop.send(next.unsatisfied_head());
    let range = Some("bytes=400000-499999");
    let none = next.unsatisfied_head();
    let response = forwarded_again(&setup, &mut client, range, none.as_bytes());
    assert_eq!(response.status(), 416);
    assert_eq!(response.head.field("content-range"), Some("bytes */150000"));
    let mut client = setup.proxy.client();
    client.send(what.get_range("0-9"));
    let (_hop, asked) = setup.origin.answer(next.part(0, 10));
    assert!(!asked.has("if-range"), "{asked:?}");
    next.check_part(&client.read_response(), 0, 10);
}

#[test]
fn error_response_is_forwarded_and_only_a_404_invalidates_the_part() {
    let setup = PartSetup::new();
    for status in ["500 Oops", "404 Not Found", "403 Forbidden"] {
        let what = Representation::new(&format!("/{}", &status[..3]), LENGTH);
        let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
        let error =
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n");
        hop.send(&error);
        let response = client.read_response();
        assert_eq!(response.status().to_string(), status[..3]);
        drop(hop);
        if status.starts_with("404") {
            let mut client = setup.proxy.client();
            client.send(what.get_range("0-9"));
            let (_hop, asked) = setup.origin.answer(what.part(0, 10));
            assert!(!asked.has("if-range"), "{asked:?}");
        } else {
            setup.hit_part(&what, "0-199999", 0, 200_000);
        }
    }
}

#[test]
fn failing_next_hop_leaves_the_stored_part_usable() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (mut client, hop) = begin(&setup, &what, &what.get(""));
    drop(hop);
    assert_eq!(client.read_response().status(), 502);
    setup.hit_part(&what, "0-199999", 0, 200_000);
    // in the middle of the rest
    let (mut client, mut hop) = begin_again(&setup, &what);
    let message = what.part(200_000, LENGTH);
    let head = what.part_head(200_000, LENGTH).len();
    hop.send_while(&message[..head + 100_000], || {
        client.read_head();
        what.check(0, &client.read_exactly(300_000));
    });
    drop(hop);
    assert_eq!(client.expect_end(), End::Closed);
    setup.rest();
    setup.hit_part(&what, "0-299999", 0, 300_000);
    let response = setup.complete(&what, &what.get(""), &[(300_000, LENGTH)]);
    what.check_whole(&response);
}

fn begin_again(setup: &PartSetup, what: &Representation) -> (RawClient, OriginConnection) {
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=200000-599999"));
    (client, hop)
}

/// What the second gap is answered, and what there may be of it afterwards.
fn check_second_gap(answer: fn(&Representation) -> Vec<u8>) {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 200_000, 300_000);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=0-199999"));
    let mut bytes = hop.send_while(&what.part(0, 200_000), || {
        assert_eq!(client.read_head().length(), Some(600_000));
        client.read_exactly(300_000)
    });
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("range"), Some("bytes=300000-599999"));
    assert_eq!(asked.field("if-range"), what.tag.as_deref());
    let next = what.next(LENGTH);
    hop.try_send(answer(&next));
    // the client was promised more, and can tell that it has not come
    bytes.extend(client.read_to_end().0);
    assert_eq!(bytes.len(), 300_000);
    what.check(0, &bytes);
    setup.rest();
    setup.proxy.wait_for(Metric::StoreEntries, 0);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    assert!(!hop.read_head().has("range"));
    let response = hop.send_while(&next.whole(), || client.read_response());
    next.check_whole(&response);
}

#[test]
fn new_whole_for_the_second_missing_range_truncates_the_response() {
    check_second_gap(Representation::whole);
}

#[test]
fn new_part_for_the_second_missing_range_truncates_the_response() {
    check_second_gap(|next| next.part(300_000, LENGTH));
}

#[test]
fn status_416_for_the_second_missing_range_truncates_the_response() {
    check_second_gap(|next| next.unsatisfied_head().into_bytes());
}

#[test]
fn error_for_the_second_missing_range_keeps_the_stored_part() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    setup.keep(&what, 200_000, 300_000);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.send_while(&what.part(0, 200_000), || {
        client.read_head();
        what.check(0, &client.read_exactly(300_000));
    });
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.send("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    client.expect_end();
    setup.rest();
    setup.hit_part(&what, "0-299999", 0, 300_000);
}

/// Sends until the proxy takes no more; whether it took all.
fn pour(mut hop: OriginConnection, bytes: Vec<u8>) -> JoinHandle<bool> {
    std::thread::spawn(move || hop.try_send(bytes))
}

fn asked_range(hop: &mut OriginConnection) -> String {
    let asked = hop.read_head();
    asked.field("range").expect("a range").to_owned()
}

/// One with credentials reads what was begun for all. Its own request would bring what others may
/// not have: what that brings goes to it alone, and spoils nothing that is stored.
#[test]
fn reader_with_credentials_fetches_the_rest_of_shared_content_separately() {
    let setup = PartSetup::with(|config| config.fetch.fetches_per_response_max = 2);
    let what = Representation::new("/", 8_000_000);
    let mut first = setup.proxy.client();
    first.send(what.get(""));
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.send(what.head());
    first.read_head();
    let mut own = RawClient::connect_small(setup.proxy.address());
    own.send(what.get("Authorization: Basic YTpi\r\n"));
    assert_eq!(own.read_head().verdict(), "hit;detail=delayed");
    first.into_peer().reset();
    let for_own = pour(hop, what.bytes(0, what.length));
    // of three who want to read at different places, the fetch for the first one gives way: it does
    // not read
    let mut middle = RawClient::connect_small(setup.proxy.address());
    middle.send(what.get_range("3000000-7999999"));
    let mut hop = setup.origin.accept();
    assert_eq!(asked_range(&mut hop), "bytes=3000000-7999999");
    let for_middle = pour(hop, what.part(3_000_000, what.length));
    middle.read_head();
    let mut far = setup.proxy.client();
    far.send(what.get_range("6000000-7999999"));
    let mut hop = setup.origin.accept();
    assert_eq!(asked_range(&mut hop), "bytes=6000000-7999999");
    let part = what.part(6_000_000, what.length);
    let response = hop.send_while(&part, || far.read_response());
    what.check_part(&response, 6_000_000, what.length);
    let came = std::thread::scope(|scope| {
        let reading = scope.spawn(|| own.read_exactly(8_000_000));
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        assert!(asked.has("authorization"), "{asked:?}");
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        let range = asked.field("range").expect("a range");
        let from = range.trim_start_matches("bytes=").split('-').next();
        let from = from.and_then(|from| from.parse().ok()).expect("a number");
        hop.send(what.part(from, what.length));
        reading.join().expect("no panic")
    });
    what.check(0, &came);
    what.check(3_000_000, &middle.read_exactly(5_000_000));
    setup.rest();
    assert_eq!(setup.proxy.count(Metric::Continued(Lost::NotShared)), 1);
    assert!(!for_own.join().expect("no panic"));
    for_middle.join().expect("no panic");
    setup.hit_part(&what, "6000000-7999999", 6_000_000, what.length);
}

/// Of the bytes that were promised none is lost: the client that was sent the front fetches the
/// rest for itself.
#[test]
fn unshareable_second_missing_range_is_fetched_for_its_client_only() {
    let what = Representation::new("/", LENGTH);
    let private = "Cache-Control: private, max-age=60\r\nConnection: close\r\n";
    for own in [setting_cookie(&what, ""), what.clone().with_fields(private)] {
        let setup = PartSetup::new();
        setup.keep(&what, 200_000, 300_000);
        let mut client = setup.proxy.client();
        client.send(what.get(""));
        let mut hop = setup.origin.accept();
        assert_eq!(hop.read_head().field("range"), Some("bytes=0-199999"));
        hop.send_while(&what.part(0, 200_000), || {
            assert_eq!(client.read_head().length(), Some(600_000));
            what.check(0, &client.read_exactly(300_000));
        });
        let mut hop = setup.origin.accept();
        assert_eq!(hop.read_head().field("range"), Some("bytes=300000-599999"));
        hop.try_send(own.part(300_000, LENGTH));
        let mut alone = setup.origin.accept();
        let asked = alone.read_head();
        assert_eq!(asked.field("range"), Some("bytes=300000-599999"));
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        let rest = alone.send_while(&own.part(300_000, LENGTH), || client.read_exactly(300_000));
        what.check(300_000, &rest);
        setup.rest();
        let continued = Metric::Continued(Lost::NotShared);
        assert_eq!(setup.proxy.count(continued), 1);
        // neither the part that was stored nor what came
        setup.proxy.wait_for(Metric::StoreEntries, 0);
    }
}

/// One client reads the first bytes as they arrive; one that joins and wants more of them is sent
/// its head once the next hop has said that it still has the same.
#[test]
fn client_joining_a_range_fetch_gets_the_new_representation_on_change() {
    for (has_changed, range) in [(false, None), (true, None), (true, Some("0-399999"))] {
        let setup = PartSetup::new();
        let what = Representation::new("/", LENGTH);
        let next = what.next(LENGTH);
        let mut first = setup.proxy.client();
        first.send(what.get_range("0-199999"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send(what.part_head(0, 200_000));
        hop.send(what.bytes(0, 50_000));
        assert_eq!(first.read_head().status(), 206);
        what.check(0, &first.read_exactly(50_000));
        let request = range.map_or_else(|| what.get(""), |range| what.get_range(range));
        let to = range.map_or(LENGTH, |_| 400_000);
        let mut joining = setup.proxy.client();
        joining.send(&request);
        let mut own = setup.origin.accept();
        let asked = own.read_head();
        let expected = format!("bytes=200000-{}", to - 1);
        assert_eq!(asked.field("range"), Some(expected.as_str()));
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        // though it could be sent fifty thousand bytes
        setup.proxy.turn();
        joining.expect_no_bytes();
        let response = if has_changed {
            own.try_send(next.whole());
            let mut again = setup.origin.accept();
            let asked = again.read_head();
            assert!(!asked.has("if-range"), "{asked:?}");
            let message = match range {
                None => next.whole(),
                Some(_) => next.part(0, to),
            };
            again.send_while(&message, || joining.read_response())
        } else {
            std::thread::scope(|scope| {
                let reading = scope.spawn(|| joining.read_response());
                own.send(what.part_head(200_000, LENGTH));
                hop.send(what.bytes(50_000, 200_000));
                what.check(50_000, &first.read_exactly(150_000));
                own.send(what.bytes(200_000, LENGTH));
                reading.join().expect("no panic")
            })
        };
        let expected = if has_changed { &next } else { &what };
        match range {
            None => expected.check_whole(&response),
            Some(_) => expected.check_part(&response, 0, to),
        }
        if has_changed {
            // the first is read to its end
            hop.send(what.bytes(50_000, 200_000));
            what.check(50_000, &first.read_exactly(150_000));
        }
        setup.rest();
    }
}

/// `what` with a cookie for the client that asks.
fn setting_cookie(what: &Representation, directives: &str) -> Representation {
    let fields = format!(
        "Cache-Control: {directives}max-age=3600\r\nConnection: close\r\nSet-Cookie: user=a\r\n"
    );
    what.clone().with_fields(&fields)
}

#[test]
fn part_that_sets_a_cookie_is_not_combined_without_public() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
    let own = setting_cookie(&what, "");
    hop.send(own.part(200_000, LENGTH));
    drop(hop);
    let response = forwarded_again(&setup, &mut client, None, &own.whole());
    assert_eq!(response.head.field("set-cookie"), Some("user=a"));
    what.check_whole(&response);
    setup.proxy.wait_for(Metric::StoreEntries, 0);
}

#[test]
fn set_cookie_of_a_combined_part_goes_to_its_own_client_only() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
    let part = setting_cookie(&what, "public, ").part(200_000, LENGTH);
    let response = hop.send_while(&part, || client.read_response());
    assert_eq!(response.head.field("set-cookie"), Some("user=a"));
    what.check_whole(&response);
    setup.rest();
    let response = setup.proxy.client().ask(what.get(""));
    assert_eq!(response.verdict(), "hit");
    assert!(!response.head.has("set-cookie"), "{:?}", response.head);
    what.check_whole(&response);
}

#[test]
fn part_that_became_private_is_not_combined() {
    let setup = PartSetup::new();
    let what = Representation::new("/", LENGTH);
    let (mut client, mut hop) = begin(&setup, &what, &what.get(""));
    let private = what
        .clone()
        .with_fields("Cache-Control: private, max-age=60\r\nConnection: close\r\n");
    hop.send(private.part(200_000, LENGTH));
    drop(hop);
    let response = forwarded_again(&setup, &mut client, None, &private.whole());
    what.check_whole(&response);
    setup.proxy.wait_for(Metric::StoreEntries, 0);
}
