//! A response that is read while it goes to disk: by the one who asked, by those who come later, by
//! slow ones.

use super::setup::DiskSetup;
use crate::support::Representation;
use weir_measure::{DiskRefusal, Metric};

/// One with so much memory, whose disk takes nothing.
fn held(memory: &'static str) -> DiskSetup {
    let setup = DiskSetup::faulty(|config| {
        config.cache.memory = memory.parse().expect("a size");
    });
    setup.hold_writes(true);
    setup
}

#[test]
fn late_reader_gets_the_part_of_an_in_flight_response_already_on_disk() {
    DiskSetup::each(|setup| {
        let what = Representation::new("/a", 6_000_000);
        let mut first = setup.proxy().client();
        first.send(what.get(""));
        let (mut hop, _) = setup.origin.answer(what.head());
        assert_eq!(first.read_head().status(), 200);
        let front = hop.send_while(&what.bytes(0, 4_000_000), || first.read_exactly(4_000_000));
        what.check(0, &front);
        // most of it is on disk by now
        setup
            .proxy()
            .wait_for_at_least(Metric::DiskWrittenBytes, 2_000_000);
        let mut late = setup.proxy().client();
        late.send(what.get(""));
        let head = late.read_head();
        assert_eq!(head.status(), 200);
        assert!(head.cache_status().contains("hit"), "{head:?}");
        what.check(0, &late.read_exactly(3_500_000));
        let mut part = setup.proxy().client();
        part.send(what.get_range("1000000-1999999"));
        what.check_part(&part.read_response(), 1_000_000, 2_000_000);
        let rest = hop.send_while(&what.bytes(4_000_000, 6_000_000), || {
            let rest = first.read_exactly(2_000_000);
            what.check(3_500_000, &late.read_exactly(2_500_000));
            rest
        });
        what.check(4_000_000, &rest);
        drop(hop);
        setup.rest();
        setup.written(1);
        setup.given_back();
        setup.hit_on_disk(&what);
    });
}

#[test]
fn slow_reader_gets_the_whole_response_and_its_memory_is_freed() {
    let setup = DiskSetup::real(|_| {});
    let what = Representation::new("/a", 8_000_000);
    let mut slow = setup.proxy().client();
    slow.send(what.get(""));
    let (mut hop, _) = setup.origin.answer(what.head());
    assert_eq!(slow.read_head().status(), 200);
    let mut fast = setup.proxy().client();
    fast.send(what.get(""));
    assert_eq!(fast.read_head().status(), 200);
    let read = hop.send_while(&what.bytes(0, 8_000_000), || fast.read_exactly(8_000_000));
    what.check(0, &read);
    setup.written(1);
    what.check(0, &slow.read_exactly(8_000_000));
    setup.rest();
    setup.given_back();
    setup.hit_on_disk(&what);
}

/// More of it than the queue of the disk has room for: it is in memory, and not stored, until then.
#[test]
fn response_that_is_whole_before_the_disk_has_taken_it_is_stored_once_it_has() {
    let setup = held("256MiB");
    let what = Representation::new("/a", 48_000_000);
    setup.fetch_whole(&what);
    assert_eq!(setup.proxy().count(Metric::Stored), 0);
    // those who come meanwhile get it
    let mut second = setup.proxy().client();
    second.send(what.get(""));
    what.check_whole(&second.read_response());
    setup.hold_writes(false);
    setup.written(1);
    setup.given_back();
    setup.hit_on_disk(&what);
    let refused = Metric::DiskRefused(DiskRefusal::Busy);
    assert_eq!(setup.proxy().count(refused), 0);
}

/// It would hold the room of other responses for as long as the device hangs.
#[test]
fn response_that_is_whole_waits_no_longer_for_the_disk_than_the_limit_says() {
    let setup = held("256MiB");
    let what = Representation::new("/a", 48_000_000);
    setup.fetch_whole(&what);
    let refused = Metric::DiskRefused(DiskRefusal::Busy);
    setup.proxy().clock.advance_ms(9_000);
    assert_eq!(setup.proxy().count(refused), 0);
    setup.proxy().clock.advance_ms(1_000);
    setup.proxy().wait_for_at_least(refused, 1);
    // whole in any case
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    what.check_whole(&client.read_response());
    setup.hold_writes(false);
}

/// They would leave no room for what comes meanwhile, of any size.
#[test]
fn responses_wait_for_the_disk_as_far_as_they_hold_little_of_the_memory() {
    let setup = held("64MiB");
    // more than its queue has room for, and a quarter of the memory
    for number in 0..7 {
        let what = Representation::new(&format!("/{number}"), 12_000_000);
        setup.fetch_whole(&what);
    }
    let refused = Metric::DiskRefused(DiskRefusal::Busy);
    setup.proxy().wait_for_at_least(refused, 1);
    let small = Representation::new("/small", 1000);
    setup.fetch_whole(&small);
    small.check_whole(&setup.hit(&small, ""));
    setup.hold_writes(false);
}

#[test]
fn purge_of_a_response_being_written_to_disk_survives_its_end() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 3_000_000);
    let mut client = setup.proxy().client();
    client.send(what.get(""));
    let (mut hop, _) = setup.origin.answer(what.head());
    client.read_head();
    hop.send_while(&what.bytes(0, 2_000_000), || client.read_exactly(2_000_000));
    setup.proxy().purge("http://a.example/a");
    hop.send_while(&what.bytes(2_000_000, 3_000_000), || {
        client.read_exactly(1_000_000)
    });
    setup.rest();
    // the next one is asked for
    setup.store_whole(&what.next(1000));
    setup.kill();
    let response = setup.hit(&what.next(1000), "");
    what.next(1000).check_whole(&response);
}
