//! A response that is read while it goes to disk: by the one who asked, by those who come later, by
//! slow ones.

use super::depot::Depot;
use crate::support::Representation;
use weir_measure::Metric;

#[test]
fn late_reader_gets_the_part_of_an_in_flight_response_already_on_disk() {
    Depot::each(|depot| {
        let what = Representation::new("/a", 6_000_000);
        let mut first = depot.proxy().client();
        first.send(what.get(""));
        let (mut hop, _) = depot.origin.answer(what.head());
        assert_eq!(first.read_head().status(), 200);
        let front = hop.send_while(&what.bytes(0, 4_000_000), || first.read_exactly(4_000_000));
        what.check(0, &front);
        // most of it is on disk by now
        depot
            .proxy()
            .wait_for_at_least(Metric::DiskWrittenBytes, 2_000_000);
        let mut late = depot.proxy().client();
        late.send(what.get(""));
        let head = late.read_head();
        assert_eq!(head.status(), 200);
        assert!(head.cache_status().contains("hit"), "{head:?}");
        what.check(0, &late.read_exactly(3_500_000));
        let mut part = depot.proxy().client();
        part.send(what.get_range("1000000-1999999"));
        what.check_part(&part.read_response(), 1_000_000, 2_000_000);
        let rest = hop.send_while(&what.bytes(4_000_000, 6_000_000), || {
            let rest = first.read_exactly(2_000_000);
            what.check(3_500_000, &late.read_exactly(2_500_000));
            rest
        });
        what.check(4_000_000, &rest);
        drop(hop);
        depot.rest();
        depot.written(1);
        depot.given_back();
        depot.hit_on_disk(&what);
    });
}

#[test]
fn slow_reader_gets_the_whole_response_and_its_memory_is_freed() {
    let depot = Depot::real(|_| {});
    let what = Representation::new("/a", 8_000_000);
    let mut slow = depot.proxy().client();
    slow.send(what.get(""));
    let (mut hop, _) = depot.origin.answer(what.head());
    assert_eq!(slow.read_head().status(), 200);
    let mut fast = depot.proxy().client();
    fast.send(what.get(""));
    assert_eq!(fast.read_head().status(), 200);
    let read = hop.send_while(&what.bytes(0, 8_000_000), || fast.read_exactly(8_000_000));
    what.check(0, &read);
    depot.written(1);
    what.check(0, &slow.read_exactly(8_000_000));
    depot.rest();
    depot.given_back();
    depot.hit_on_disk(&what);
}

#[test]
fn purge_of_a_response_being_written_to_disk_survives_its_end() {
    let mut depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    let mut client = depot.proxy().client();
    client.send(what.get(""));
    let (mut hop, _) = depot.origin.answer(what.head());
    client.read_head();
    hop.send_while(&what.bytes(0, 2_000_000), || client.read_exactly(2_000_000));
    depot.proxy().purge("http://a.example/a");
    hop.send_while(&what.bytes(2_000_000, 3_000_000), || {
        client.read_exactly(1_000_000)
    });
    depot.rest();
    // the next one is asked for
    depot.store_whole(&what.next(1000));
    depot.kill();
    let response = depot.hit(&what.next(1000), "");
    what.next(1000).check_whole(&response);
}
