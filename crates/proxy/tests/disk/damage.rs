//! Damage on disk under a running proxy: no wrong byte leaves (R01-R04).

use super::depot::Depot;
use crate::support::Representation;
use weir_measure::Metric;

#[test]
fn damaged_small_response_is_served() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    depot.store_whole(&what);
    depot.restart();
    let (path, at) = depot.find(&what.bytes(500, 600));
    depot.flip(&path, at);
    depot.store_whole(&what);
    assert!(depot.proxy().count(Metric::DiskDamaged) > 0);
    depot.restart();
    depot.hit_on_disk(&what);
}

#[test]
fn damaged_head_is_served() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    depot.store_whole(&what);
    depot.restart();
    let (path, at) = depot.find(b"Cache-Control: max-age=3600");
    depot.flip(&path, at + 26);
    depot.store_whole(&what);
    depot.restart();
    depot.hit_on_disk(&what);
}

#[test]
fn damage_before_anything_was_sent_is_more_than_a_miss() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    depot.store_whole(&what);
    depot.restart();
    let (path, at) = depot.find(&what.bytes(0, 100));
    depot.flip(&path, at);
    depot.store_whole(&what);
    depot.hit_on_disk(&what);
    assert_eq!(depot.proxy().count(Metric::StoreCuts), 0);
}

#[test]
fn damage_behind_what_was_sent_is_hidden_from_the_client() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    depot.store_whole(&what);
    depot.restart();
    let (path, at) = depot.find(&what.bytes(2_000_000, 2_000_300));
    depot.flip(&path, at);
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let head = client.read_head();
    assert_eq!(head.status(), 200);
    let came = client.read_cut(&head);
    what.check(0, &came);
    assert!(came.len() <= 2_000_000);
    depot.proxy().wait_for(Metric::StoreCuts, 1);
    // what came before it is as good as ever; now it is asked for again
    depot.store_whole(&what);
    depot.hit_on_disk(&what);
}

#[test]
fn segment_that_was_cut_or_zeroed_is_served() {
    for change in [
        (|content: &mut Vec<u8>| content.truncate(content.len() / 2)) as fn(&mut Vec<u8>),
        |content| content.fill(0),
        |content| content.clear(),
    ] {
        let mut depot = Depot::simulated(|_| {});
        let (small, large) = (
            Representation::new("/small", 60_000),
            Representation::new("/large", 3_000_000),
        );
        depot.store_whole(&small);
        depot.store_whole(&large);
        depot.restart();
        for path in depot.segments() {
            depot.files().damage(&path, change).expect("a file");
        }
        for what in [&small, &large] {
            let mut client = depot.proxy().client();
            client.send(what.get("Connection: close\r\n"));
            std::thread::scope(|scope| {
                let reading = scope.spawn(|| {
                    assert_eq!(client.read_head().status(), 200);
                    // all of it, or a cut that shows by the length
                    what.check(0, &client.read_to_end().0);
                });
                while !reading.is_finished() {
                    if depot.origin.is_touched() {
                        depot.origin.answer(what.whole());
                    }
                    std::thread::yield_now();
                }
            });
            depot.rest();
        }
        depot.kill();
    }
}

/// The newer one is damaged, and what it has replaced is there still: it is judged like any stored response.
#[test]
fn replaced_response_that_comes_back_is_served_beyond_its_freshness_or_an_invalidation() {
    let short = "Cache-Control: max-age=60\r\nConnection: close\r\n";
    for is_invalidated in [false, true] {
        let mut depot = Depot::simulated(|_| {});
        let old = Representation::new("/a", 1000).with_fields(short);
        depot.store_whole(&old);
        if is_invalidated {
            let mut client = depot.proxy().client();
            client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
            depot
                .origin
                .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            assert_eq!(client.read_response().status(), 204);
        }
        let new = old.next(1000);
        let before = depot.proxy().count(Metric::DiskStored);
        let mut client = depot.proxy().client();
        client.send(new.get("Cache-Control: no-cache\r\n"));
        depot.origin.answer(new.whole());
        new.check_whole(&client.read_response());
        depot.written(before + 1);
        let (path, at) = depot.find(&new.bytes(0, 100));
        // without it nothing tells of what is in the segment but what is there
        depot.kill_then(|files| {
            let flip = |content: &mut Vec<u8>| content[at] ^= 1;
            files.damage(&path, flip).expect("a file");
        });
        if is_invalidated {
            depot.fetch_whole(&new);
            continue;
        }
        let response = depot.hit(&old, "");
        old.check_whole(&response);
        depot.restart_later(60);
        let mut client = depot.proxy().client();
        client.send(new.get(""));
        let (_, asked) = depot.origin.answer(new.whole());
        assert_eq!(asked.field("if-none-match"), old.tag.as_deref());
        new.check_whole(&client.read_response());
    }
}
