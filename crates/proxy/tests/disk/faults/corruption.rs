//! Damage on disk under a running proxy: no wrong byte leaves (R01-R04).

use super::setup::DiskSetup;
use crate::support::{Head, OriginConnection, RawClient, Representation};
use weir_measure::{Lost, Metric};

/// What the next hop says, given what it had, what it has now, and the first byte asked for.
type Answer = fn(&Representation, &Representation, u64) -> Vec<u8>;

#[test]
fn corrupt_small_response_is_a_miss_and_is_stored_again() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    setup.store_whole(&what);
    setup.restart();
    let (path, at) = setup.find(&what.bytes(500, 600));
    setup.flip(&path, at);
    setup.store_whole(&what);
    assert!(setup.proxy().count(Metric::DiskDamaged) > 0);
    setup.restart();
    setup.hit_on_disk(&what);
}

#[test]
fn response_with_corrupt_header_section_is_a_miss_and_is_stored_again() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    setup.store_whole(&what);
    setup.restart();
    let (path, at) = setup.find(b"Cache-Control: max-age=3600");
    setup.flip(&path, at + 26);
    setup.store_whole(&what);
    setup.restart();
    setup.hit_on_disk(&what);
}

#[test]
fn corruption_found_before_anything_was_sent_is_a_miss() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    setup.store_whole(&what);
    setup.restart();
    let (path, at) = setup.find(&what.bytes(0, 100));
    setup.flip(&path, at);
    setup.store_whole(&what);
    setup.hit_on_disk(&what);
    assert_eq!(setup.proxy().count(Metric::StoreCuts), 0);
}

/// A client that has read the head of a stored response with a bit flipped at 2 000 000, after a
/// restart.
fn reading_damage(
    setup: &mut DiskSetup,
    what: &Representation,
    request: &str,
) -> (RawClient, Head) {
    setup.store_whole(what);
    setup.restart();
    let (path, at) = setup.find(&what.bytes(2_000_000, 2_000_300));
    setup.flip(&path, at);
    let mut client = setup.proxy().client();
    client.send(request);
    let head = client.read_head();
    (client, head)
}

/// The next hop is asked for the rest of `what` up to `to`, if it is still the same; where the rest
/// begins.
fn asked_for_the_rest(
    setup: &DiskSetup,
    what: &Representation,
    to: u64,
) -> (OriginConnection, u64) {
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("if-range"), what.tag.as_deref());
    let range = asked.field("range").expect("a range");
    let (from, last) = range
        .trim_start_matches("bytes=")
        .split_once('-')
        .expect("first and last byte");
    assert_eq!(last, (to - 1).to_string());
    let from = from.parse().expect("a number");
    assert!(from <= 2_000_000, "{from}");
    (hop, from)
}

#[test]
fn rest_of_a_corrupt_response_comes_from_the_next_hop() {
    for range in [None, Some((500_000, 2_500_000))] {
        let mut setup = DiskSetup::simulated(|_| {});
        let what = Representation::new("/a", 3_000_000);
        let (from, to) = range.unwrap_or((0, what.length));
        let request = match range {
            None => what.get(""),
            Some((from, to)) => what.get_range(&format!("{from}-{}", to - 1)),
        };
        let (mut client, head) = reading_damage(&mut setup, &what, &request);
        assert_eq!(head.status(), if range.is_some() { 206 } else { 200 });
        let length = usize::try_from(to - from).expect("small");
        let came = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_exactly(length));
            let (mut hop, at) = asked_for_the_rest(&setup, &what, to);
            assert!(at > from);
            hop.send(what.part(at, to));
            reading.join().expect("no panic")
        });
        what.check(from, &came);
        setup.rest();
        let continued = Metric::Continued(Lost::Unreadable);
        assert_eq!(setup.proxy().count(continued), 1);
        assert_eq!(setup.proxy().count(Metric::StoreCuts), 0);
        // its copy is not used again
        setup.store_whole(&what);
        setup.hit_on_disk(&what);
    }
}

/// Nothing of the rest is stored: what forbids to store it does not matter to the client that has
/// the front.
#[test]
fn rest_of_a_corrupt_response_is_fetched_even_if_it_is_unstorable() {
    let fresh = "Cache-Control: max-age=3600\r\nConnection: close\r\n";
    let with = |fields: &str| format!("{fields}Connection: close\r\n");
    let cases = [
        ("Authorization: Basic YTpi\r\n", fresh.to_owned()),
        ("Cache-Control: no-store\r\n", fresh.to_owned()),
        ("Range: bytes=0-1,5-6\r\n", fresh.to_owned()),
        (
            "",
            with("Cache-Control: max-age=3600\r\nSet-Cookie: user=a\r\n"),
        ),
        ("", with("Cache-Control: private, max-age=3600\r\n")),
        ("", with("Cache-Control: no-store\r\n")),
        ("", with("Vary: *\r\n")),
    ];
    for (asked_with, answered_with) in cases {
        let mut setup = DiskSetup::simulated(|_| {});
        let what = Representation::new("/a", 3_000_000);
        let (mut client, head) = reading_damage(
            &mut setup,
            &what,
            &what.get(&format!("Connection: close\r\n{asked_with}")),
        );
        assert_eq!(head.status(), 200, "{asked_with}");
        let came = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_to_end().0);
            let (mut hop, at) = asked_for_the_rest(&setup, &what, what.length);
            hop.try_send(
                what.clone()
                    .with_fields(&answered_with)
                    .part(at, what.length),
            );
            drop(hop);
            reading.join().expect("no panic")
        });
        assert_eq!(came.len(), 3_000_000, "{asked_with}{answered_with}");
        what.check(0, &came);
        setup.rest();
        assert_eq!(setup.proxy().count(Metric::StoreCuts), 0);
        // nor did it become a stored response
        setup.store_whole(&what);
        setup.hit_on_disk(&what);
    }
}

#[test]
fn corrupt_response_is_truncated_if_the_next_hop_lacks_the_matching_rest() {
    let what = Representation::new("/a", 3_000_000);
    let next = what.next(3_000_000);
    let answers: [Answer; 4] = [
        |_, next, _| next.whole(),
        |_, next, at| next.part(at, next.length),
        |what, _, at| what.part(at + 1, what.length),
        |_, _, _| b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ];
    for answer in answers {
        let mut setup = DiskSetup::simulated(|_| {});
        let (mut client, head) = reading_damage(&mut setup, &what, &what.get(""));
        let came = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_cut(&head));
            let (mut hop, at) = asked_for_the_rest(&setup, &what, what.length);
            hop.try_send(answer(&what, &next, at));
            reading.join().expect("no panic")
        });
        what.check(0, &came);
        assert!(came.len() <= 2_000_000);
        setup.rest();
    }
}

#[test]
fn corrupt_response_without_strong_entity_tag_is_truncated() {
    for tag in [None, Some("W/\"a\"")] {
        let mut setup = DiskSetup::simulated(|_| {});
        let what = Representation::new("/a", 3_000_000).tagged(tag);
        let (mut client, head) = reading_damage(&mut setup, &what, &what.get(""));
        let came = client.read_cut(&head);
        what.check(0, &came);
        assert!(came.len() <= 2_000_000);
        setup.proxy().wait_for(Metric::StoreCuts, 1);
        setup.origin.expect_untouched();
        // what came before it is as good as ever; now it is asked for again
        setup.store_whole(&what);
        setup.hit_on_disk(&what);
    }
}

/// Also where the request forbids to ask the next hop.
#[test]
fn corrupt_response_is_truncated_for_only_if_cached() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    let request = what.get("Cache-Control: only-if-cached\r\n");
    let (mut client, head) = reading_damage(&mut setup, &what, &request);
    what.check(0, &client.read_cut(&head));
    setup.proxy().wait_for(Metric::StoreCuts, 1);
    setup.origin.expect_untouched();
}

#[test]
fn truncated_or_zeroed_segment_never_yields_wrong_content() {
    for change in [
        (|content: &mut Vec<u8>| content.truncate(content.len() / 2)) as fn(&mut Vec<u8>),
        |content| content.fill(0),
        |content| content.clear(),
    ] {
        let mut setup = DiskSetup::simulated(|_| {});
        let (small, large) = (
            Representation::new("/small", 60_000),
            Representation::new("/large", 3_000_000),
        );
        setup.store_whole(&small);
        setup.store_whole(&large);
        setup.restart();
        for path in setup.segments() {
            setup.files().damage(&path, change).expect("a file");
        }
        for what in [&small, &large] {
            let mut client = setup.proxy().client();
            client.send(what.get("Connection: close\r\n"));
            std::thread::scope(|scope| {
                let reading = scope.spawn(|| {
                    assert_eq!(client.read_head().status(), 200);
                    // all of it, or a cut that shows by the length
                    what.check(0, &client.read_to_end().0);
                });
                while !reading.is_finished() {
                    if setup.origin.is_touched() {
                        setup.origin.answer(what.whole());
                    }
                    std::thread::yield_now();
                }
            });
            setup.rest();
        }
        setup.kill();
    }
}

/// The newer one is damaged, and what it has replaced is there still: it is judged like any stored
/// response.
#[test]
fn replaced_response_that_reappears_obeys_freshness_and_invalidation() {
    let short = "Cache-Control: max-age=60\r\nConnection: close\r\n";
    for is_invalidated in [false, true] {
        let mut setup = DiskSetup::simulated(|_| {});
        let old = Representation::new("/a", 1000).with_fields(short);
        setup.store_whole(&old);
        if is_invalidated {
            let mut client = setup.proxy().client();
            client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
            setup
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(client.read_response().status(), 204);
        }
        let new = old.next(1000);
        let before = setup.proxy().count(Metric::DiskStored);
        let mut client = setup.proxy().client();
        client.send(new.get("Cache-Control: no-cache\r\n"));
        setup.origin.answer(new.whole());
        new.check_whole(&client.read_response());
        setup.written(before + 1);
        let (path, at) = setup.find(&new.bytes(0, 100));
        // without it nothing tells of what is in the segment but what is there
        setup.kill_then(|files| {
            let flip = |content: &mut Vec<u8>| content[at] ^= 1;
            files.damage(&path, flip).expect("a file");
        });
        if is_invalidated {
            setup.fetch_whole(&new);
            continue;
        }
        let response = setup.hit(&old, "");
        old.check_whole(&response);
        setup.restart_later(60);
        let mut client = setup.proxy().client();
        client.send(new.get(""));
        let (_, asked) = setup.origin.answer(new.whole());
        assert_eq!(asked.field("if-none-match"), old.tag.as_deref());
        new.check_whole(&client.read_response());
    }
}
