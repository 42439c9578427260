//! Copies of what another node of a cluster keeps are on disk only if memory is too small for them.

use crate::freshening::freshened;
use crate::support::{NOW, content, digest};
use crate::{LARGEST_IN_MEMORY, PIECE_BYTES, Tiers, check, response};
use std::sync::Arc;
use weir_policy::fetch::ByteSpan;
use weir_store::{InFlightContent, StoredResponse};

impl Tiers {
    /// A response of `length` bytes comes from another node, and is stored.
    fn put_copy(&mut self, key: u64, number: u64, length: u64) -> Arc<StoredResponse> {
        let expected = self.store.expect(digest(key)).copied(true);
        let mut reservation = expected.begin(100, Some(length)).expect("room");
        let mut in_flight = InFlightContent::new(Some(length), None);
        let place = in_flight.open(ByteSpan {
            from: 0,
            to: length,
        });
        let mut at = 0;
        while at < length {
            let end = length.min(at + PIECE_BYTES as u64);
            let bytes = content(number, at..end);
            let room = reservation.reserve_push(&mut in_flight, place, bytes.len());
            room.expect("room, here or there");
            in_flight.push(place, bytes);
            at = end;
        }
        in_flight.close(place);
        let body = reservation.finish(&mut in_flight);
        let response = response(number, body);
        let stored = reservation.commit(NOW, None, Arc::clone(&response));
        stored.expect("it is stored");
        response
    }
}

#[test]
fn copy_that_memory_takes_is_not_written_to_disk() {
    for length in [1000, 700_000] {
        let mut tiers = Tiers::new();
        let copy = tiers.put_copy(1, 10, length);
        check(&copy, 10, &[(0, length)]);
        assert!(copy.body.is_in_memory());
        check(&tiers.in_memory(1).expect("stored"), 10, &[(0, length)]);
        assert!(tiers.disk().find(digest(1)).is_none());
        tiers.store.debug_check();
        tiers.reopen();
        assert!(tiers.on_disk(1).is_none());
    }
}

#[test]
fn copy_that_is_too_large_for_memory_is_on_disk() {
    const LENGTH: u64 = 3 * LARGEST_IN_MEMORY;
    let mut tiers = Tiers::new();
    tiers.put_copy(1, 10, LENGTH);
    tiers.written += 1;
    tiers.reopen();
    check(&tiers.on_disk(1).expect("on disk"), 10, &[(0, LENGTH)]);
}

#[test]
fn copy_leaves_no_older_response_on_disk() {
    let mut tiers = Tiers::new();
    tiers.put(1, 10, 1000);
    tiers.settle();
    tiers.put_copy(1, 11, 1000);
    check(&tiers.in_memory(1).expect("the newer"), 11, &[(0, 1000)]);
    assert!(tiers.disk().find(digest(1)).is_none(), "the older one");
}

#[test]
fn copy_is_own_and_on_disk_once_the_origin_has_validated_it() {
    for (from_node, is_on_disk) in [(true, false), (false, true)] {
        let mut tiers = Tiers::new();
        let old = tiers.put_copy(1, 10, 1000);
        let expected = tiers.store.expect_for(digest(1), &old).copied(from_node);
        let new = freshened(&old);
        assert!(expected.freshen(NOW, &old, &new, None));
        tiers.written += u64::from(is_on_disk);
        tiers.settle();
        assert_eq!(tiers.disk().find(digest(1)).is_some(), is_on_disk);
        check(&tiers.in_memory(1).expect("stored"), 10, &[(0, 1000)]);
        // so it is from then on, also if another node validates it
        let expected = tiers.store.expect_for(digest(1), &new).copied(true);
        let newer = freshened(&new);
        assert!(expected.freshen(NOW, &new, &newer, None));
        assert_eq!(tiers.disk().find(digest(1)).is_some(), is_on_disk);
    }
}
