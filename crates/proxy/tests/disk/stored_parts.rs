//! Parts on disk: kept, served, completed and joined (RFC 9111 §3.3, §3.4).

use super::setup::DiskSetup;
use crate::support::{Representation, Response};

/// Asks with `fields`, and expects that exactly `gaps` are asked for.
fn complete(
    setup: &DiskSetup,
    what: &Representation,
    fields: &str,
    gaps: &[(u64, u64)],
) -> Response {
    let mut client = setup.proxy().client();
    client.send(what.get(fields));
    let response = std::thread::scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        for (from, to) in gaps {
            let mut hop = setup.origin.accept();
            let asked = hop.read_head();
            let range = format!("bytes={from}-{}", to - 1);
            assert_eq!(asked.field("range"), Some(range.as_str()));
            hop.send(what.part(*from, *to));
        }
        reading.join().expect("no panic")
    });
    setup.rest();
    response
}

fn range(from: u64, to: u64) -> String {
    format!("Range: bytes={from}-{}\r\n", to - 1)
}

#[test]
fn part_on_disk_survives_a_restart_and_only_missing_ranges_are_fetched() {
    for scale in [1, 1000] {
        DiskSetup::each(|mut setup| {
            let at = |place: u64| place * scale;
            let what = Representation::new("/a", at(4000));
            let part = complete(
                &setup,
                &what,
                &range(at(1000), at(2000)),
                &[(at(1000), at(2000))],
            );
            what.check_part(&part, at(1000), at(2000));
            setup.written(1);
            setup.restart();
            let inside = setup.hit(&what, &range(at(1200), at(1900)));
            what.check_part(&inside, at(1200), at(1900));
            // another part joins it, and then the whole
            let more = complete(
                &setup,
                &what,
                &range(at(1500), at(3000)),
                &[(at(2000), at(3000))],
            );
            what.check_part(&more, at(1500), at(3000));
            setup.written(1);
            setup.restart();
            let inside = setup.hit(&what, &range(at(1000), at(3000)));
            what.check_part(&inside, at(1000), at(3000));
            let whole = complete(&setup, &what, "", &[(0, at(1000)), (at(3000), at(4000))]);
            what.check_whole(&whole);
            setup.written(1);
            setup.restart();
            setup.hit_on_disk(&what);
        });
    }
}

#[test]
fn aborted_download_is_stored_on_disk_as_a_part() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 6_000_000);
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let (mut hop, _) = setup.origin.answer(what.head());
    client.read_head();
    hop.send_while(&what.bytes(0, 3_000_000), || client.read_exactly(3_000_000));
    client.into_peer().reset();
    hop.expect_end();
    setup.rest();
    setup.written(1);
    setup.kill();
    let front = setup.hit(&what, &range(0, 3_000_000));
    what.check_part(&front, 0, 3_000_000);
    let whole = complete(&setup, &what, "", &[(3_000_000, 6_000_000)]);
    what.check_whole(&whole);
    setup.written(1);
    setup.kill();
    setup.hit_on_disk(&what);
}

#[test]
fn part_on_disk_is_replaced_by_a_response_of_another_version() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    complete(&setup, &what, &range(0, 1_500_000), &[(0, 1_500_000)]);
    setup.written(1);
    setup.restart();
    let next = what.next(2_000_000);
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let response = std::thread::scope(|scope| {
        let reading = scope.spawn(|| client.read_response());
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        hop.send(next.whole());
        reading.join().expect("no panic")
    });
    next.check_whole(&response);
    setup.rest();
    setup.written(1);
    setup.kill();
    setup.hit_on_disk(&next);
}

#[test]
fn part_on_disk_is_invalidated_when_its_rest_is_of_another_version() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 4_000_000);
    let middle = (1_000_000, 2_000_000);
    complete(&setup, &what, &range(middle.0, middle.1), &[middle]);
    setup.written(1);
    setup.restart();
    let next = what.next(4_000_000);
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            client.read_head();
            client.read_to_end().0
        });
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send(what.part(0, middle.0));
        let (_hop, asked) = setup.origin.answer(next.head());
        assert_eq!(asked.field("if-range"), what.tag.as_deref());
        let content = reading.join().expect("no panic");
        what.check(0, &content);
        assert!(content.len() < 4_000_000);
    });
    setup.rest();
    setup.restart();
    let (from, to) = (1_200_000, 1_900_000);
    let part = complete(&setup, &next, &range(from, to), &[(from, to)]);
    next.check_part(&part, from, to);
}
