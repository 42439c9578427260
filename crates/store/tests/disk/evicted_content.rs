//! Content that is on disk alone, with blocks that a reader still has in memory: they count until
//! the last reader lets go.

use super::{NOW, Tiers, check, response, until};
use std::sync::Arc;
use std::task::Waker;
use weir_disk::files::SystemFiles;
use weir_disk::files::simulated::SimulatedFiles;
use weir_store::{BLOCK_BYTES, InFlightPiece};

/// More than memory stores of one response.
const LENGTH: u64 = 6_000_000;

#[test]
fn blocks_that_are_read_count_until_the_last_reader_lets_go() {
    let files = SimulatedFiles::new(1);
    let mut tiers = Tiers::on(Arc::new(files.clone()));
    // nothing reaches the disk before the response is stored: all of it waits in memory
    files.stop();
    let stored = tiers.put(1, 10, LENGTH);
    files.resume();
    tiers.settle();
    assert_eq!(stored.body.bytes_in_memory(), LENGTH);
    let used = tiers.store.memory_use();
    assert!(used.lingering_bytes >= LENGTH, "{used:?}");
    assert!(used.used_bytes >= used.lingering_bytes, "{used:?}");
    let other = Arc::clone(&stored);
    drop(stored);
    assert!(tiers.used_bytes() >= LENGTH, "{}", tiers.used_bytes());
    check(&other, 10, &[(0, LENGTH)]);
    drop(other);
    assert!(tiers.used_bytes() < 100_000, "{}", tiers.used_bytes());
    assert_eq!(tiers.store.memory_use().lingering_bytes, 0);
    check(&tiers.in_memory(1).expect("its head"), 10, &[(0, LENGTH)]);
    tiers.store.debug_check();
}

#[test]
fn content_in_flight_gives_its_blocks_back_for_a_record_that_has_all_of_it() {
    for has_all in [true, false] {
        let files = SimulatedFiles::new(1);
        let mut tiers = Tiers::on(Arc::new(files.clone()));
        // nothing reaches the disk before the response is stored: all of it waits in memory
        files.stop();
        let mut transfer = tiers.begin(1, 10, LENGTH, (0, LENGTH), None);
        transfer.push_to(LENGTH);
        let mut in_flight = transfer.in_flight;
        in_flight.close(transfer.place);
        let body = transfer.reservation.finish(&mut in_flight);
        let record = transfer.reservation.record().expect("it goes to disk");
        assert!(record.extents().is_none(), "it waits");
        let stored = transfer.reservation.commit(NOW, None, response(10, body));
        stored.expect("it is stored");
        tiers.written += 1;
        files.resume();
        tiers.settle();
        let written = record.extents().expect("it is written");
        let mut extents = written.expect("without a fault");
        if !has_all {
            extents.pop();
        }
        // what it holds is in the account, for a reader that is behind
        assert!(tiers.store.memory_use().lingering_bytes >= LENGTH);
        in_flight.put_all_on_disk(extents);
        let lingering = tiers.store.memory_use().lingering_bytes;
        assert_eq!(lingering == 0, has_all, "{lingering}");
        for at in [0, LENGTH - 1] {
            let is_on_disk = matches!(in_flight.read(at), Some(InFlightPiece::Disk { .. }));
            assert_eq!(is_on_disk, has_all, "{at}");
        }
        check(&response(10, in_flight.finish()), 10, &[(0, LENGTH)]);
    }
}

/// A part in memory, and the rest of the response that completes it: no stretch that is written has
/// some of both, which could not take the place of either.
#[test]
fn content_that_completes_a_part_in_memory_leaves_it_as_it_is_written() {
    const PART: u64 = 6 * BLOCK_BYTES as u64;
    let mut tiers = Tiers::of(4 << 30, Arc::new(SystemFiles));
    let mut part = tiers.begin(1, 10, LENGTH, (0, PART), None);
    part.push_to(PART);
    let part = tiers.commit(part).expect("it is stored");
    assert!(part.body.is_in_memory());
    let mut rest = tiers.begin(1, 10, LENGTH, (PART, LENGTH), Some(&part.body));
    rest.push_to(LENGTH);
    until("what is written", || {
        let taken = rest
            .reservation
            .take_back(&mut rest.in_flight, Waker::noop());
        taken.expect("room");
        matches!(rest.in_flight.read(0), Some(InFlightPiece::Disk { .. }))
    });
    let stored = tiers.commit(rest).expect("it is stored");
    check(&stored, 10, &[(0, LENGTH)]);
}
