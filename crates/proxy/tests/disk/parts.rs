//! Parts on disk: kept, served, completed and joined (RFC 9111 §3.3, §3.4).

use super::depot::Depot;
use crate::support::{Representation, Response};

/// Asks with `fields`, and expects that exactly `gaps` are asked for.
fn complete(depot: &Depot, what: &Representation, fields: &str, gaps: &[(u64, u64)]) -> Response {
    let mut client = depot.proxy().client();
    client.send(what.get(fields));
    let response = std::thread::scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        for (from, to) in gaps {
            let mut hop = depot.origin.accept();
            let asked = hop.read_head();
            let range = format!("bytes={from}-{}", to - 1);
            assert_eq!(asked.field("range"), Some(range.as_str()));
            hop.send(what.part(*from, *to));
        }
        reading.join().expect("no panic")
    });
    depot.rest();
    response
}

fn range(from: u64, to: u64) -> String {
    format!("Range: bytes={from}-{}\r\n", to - 1)
}

#[test]
fn part_on_disk_survives_a_restart_and_only_missing_ranges_are_fetched() {
    for scale in [1, 1000] {
        Depot::each(|mut depot| {
            let at = |place: u64| place * scale;
            let what = Representation::new("/a", at(4000));
            let part = complete(
                &depot,
                &what,
                &range(at(1000), at(2000)),
                &[(at(1000), at(2000))],
            );
            what.check_part(&part, at(1000), at(2000));
            depot.written(1);
            depot.restart();
            let inside = depot.hit(&what, &range(at(1200), at(1900)));
            what.check_part(&inside, at(1200), at(1900));
            // another part joins it, and then the whole
            let more = complete(
                &depot,
                &what,
                &range(at(1500), at(3000)),
                &[(at(2000), at(3000))],
            );
            what.check_part(&more, at(1500), at(3000));
            depot.written(1);
            depot.restart();
            let inside = depot.hit(&what, &range(at(1000), at(3000)));
            what.check_part(&inside, at(1000), at(3000));
            let whole = complete(&depot, &what, "", &[(0, at(1000)), (at(3000), at(4000))]);
            what.check_whole(&whole);
            depot.written(1);
            depot.restart();
            depot.hit_on_disk(&what);
        });
    }
}

#[test]
fn aborted_download_is_stored_on_disk_as_a_part() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 6_000_000);
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let (mut hop, _) = depot.origin.answer(what.head());
    client.read_head();
    hop.send_while(&what.bytes(0, 3_000_000), || client.read_exactly(3_000_000));
    client.into_peer().reset();
    hop.expect_end();
    depot.rest();
    depot.written(1);
    depot.kill();
    let front = depot.hit(&what, &range(0, 3_000_000));
    what.check_part(&front, 0, 3_000_000);
    let whole = complete(&depot, &what, "", &[(3_000_000, 6_000_000)]);
    what.check_whole(&whole);
    depot.written(1);
    depot.kill();
    depot.hit_on_disk(&what);
}

#[test]
fn part_on_disk_is_replaced_by_a_response_of_another_version() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    complete(&depot, &what, &range(0, 1_500_000), &[(0, 1_500_000)]);
    depot.written(1);
    depot.restart();
    let next = what.next(2_000_000);
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let response = std::thread::scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        let mut hop = depot.origin.accept();
        let asked = hop.read_head();
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        hop.send(next.whole());
        reading.join().expect("no panic")
    });
    next.check_whole(&response);
    depot.rest();
    depot.written(1);
    depot.kill();
    depot.hit_on_disk(&next);
}

#[test]
fn part_on_disk_is_invalidated_when_its_rest_is_of_another_version() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 4_000_000);
    let middle = (1_000_000, 2_000_000);
    complete(&depot, &what, &range(middle.0, middle.1), &[middle]);
    depot.written(1);
    depot.restart();
    let next = what.next(4_000_000);
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            client.read_head();
            client.read_to_end().0
        });
        let mut hop = depot.origin.accept();
        hop.read_head();
        hop.send(what.part(0, middle.0));
        let (_hop, asked) = depot.origin.answer(next.head());
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        let content = reading.join().expect("no panic");
        what.check(0, &content);
        assert!(content.len() < 4_000_000);
    });
    depot.rest();
    depot.restart();
    let (from, to) = (1_200_000, 1_900_000);
    let part = complete(&depot, &next, &range(from, to), &[(from, to)]);
    next.check_part(&part, from, to);
}
