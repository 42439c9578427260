//! What is arriving: never evicted, and limited for that.

use crate::support::{CONTENT_MAX, NOW, check_response, content, digest, true_part};
use std::sync::Arc;
use weir_policy::catalog::Refusal;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpan;
use weir_policy::{Missing, Secret};
use weir_store::{
    ChargedMemory, IN_FLIGHT_PERCENT_MAX, InFlightContent, LookupResult, MemoryStore, Reservation,
    StoredContent, StoredResponse, WritePositionId,
};

const BUDGET: u64 = 1 << 20;

/// What those arriving may come to, and of that what large ones may.
const SHARE: u64 = BUDGET / 100 * IN_FLIGHT_PERCENT_MAX;
const LARGE: u64 = SHARE - SHARE / 8;
/// The most a small one may come to.
const SMALL: u64 = SHARE / 64;

const LENGTH: u64 = 200_000;

fn store() -> Arc<MemoryStore> {
    let kind = EvictionKind::Lru;
    Arc::new(MemoryStore::new(BUDGET, kind, 1, BUDGET, Secret([7; 16])))
}

/// One of `LENGTH` bytes of which some have come.
struct Transfer {
    key: u64,
    reservation: Reservation,
    in_flight: InFlightContent,
    place: WritePositionId,
    at: u64,
}

impl Transfer {
    fn begin(store: &Arc<MemoryStore>, key: u64) -> Self {
        let reservation = store
            .expect(digest(key))
            .begin(10, Some(LENGTH))
            .expect("room enough");
        let mut in_flight = InFlightContent::new(Some(LENGTH), None);
        let place = in_flight.open(ByteSpan {
            from: 0,
            to: LENGTH,
        });
        let mut transfer = Self {
            key,
            reservation,
            in_flight,
            place,
            at: 0,
        };
        transfer.push().expect("room enough");
        transfer
    }

    fn push(&mut self) -> Result<(), Refusal> {
        let end = (self.at + CONTENT_MAX).min(LENGTH);
        let bytes = content(self.key, self.at..end);
        self.reservation
            .reserve_push(&mut self.in_flight, self.place, bytes.len())?;
        self.in_flight.push(self.place, bytes);
        self.at = end;
        Ok(())
    }

    fn response(&mut self) -> StoredResponse {
        true_part(self.key, self.key, LENGTH, self.in_flight.finish())
    }

    fn commit(mut self) -> Result<(), Refusal> {
        let response = self.response();
        self.reservation.commit(NOW, None, response)
    }

    fn check_bytes(&self) {
        let slice = self.in_flight.read(1000).expect("it has come");
        assert!(slice.bytes() == content(self.key, 1000..1000 + slice.bytes().len() as u64));
    }
}

/// One that holds exactly `bytes`.
fn holding(store: &Arc<MemoryStore>, key: u64, bytes: u64) -> Result<Reservation, Refusal> {
    let before = store.memory_use().in_flight_bytes;
    let mut reservation = store.expect(digest(key)).begin(10, None)?;
    let beside = store.memory_use().in_flight_bytes - before;
    reservation.reserve_held(usize::try_from(bytes - beside).expect("a length"))?;
    assert_eq!(store.memory_use().in_flight_bytes, before + bytes);
    Ok(reservation)
}

fn put(store: &Arc<MemoryStore>, key: u64, length: u64) {
    let reservation = store
        .expect(digest(key))
        .begin(10, Some(length))
        .expect("room enough");
    let response = true_part(
        key,
        key,
        length,
        StoredContent::from(content(key, 0..length)),
    );
    reservation
        .commit(NOW, None, response)
        .expect("room enough");
    store.debug_check();
}

fn find(store: &MemoryStore, key: u64) -> Result<Arc<StoredResponse>, Missing> {
    match store.find(digest(key), &|_| digest(0)) {
        LookupResult::Found(found) => {
            assert_eq!(check_response(&found), key);
            Ok(found)
        }
        LookupResult::Missing(missing) => Err(missing),
    }
}

#[test]
fn in_flight_response_is_not_evicted_for_later_responses() {
    let store = store();
    let mut early = Transfer::begin(&store, 1);
    for key in 100..200 {
        put(&store, key, 30_000);
    }
    assert!(store.memory_use().evictions > 50);
    while early.at < LENGTH {
        early.push().expect("it was promised");
        early.check_bytes();
    }
    assert_eq!(early.commit(), Ok(()));
    assert!(!find(&store, 1).expect("it was committed").is_part());
    store.debug_check();
}

#[test]
fn in_flight_share_is_granted_to_its_last_byte_and_not_exceeded() {
    let store = store();
    let refused = holding(&store, 1, LARGE + 1);
    let size_max_bytes = LARGE;
    let size_bytes = LARGE + 1;
    let too_large = Refusal::TooLarge {
        size_bytes,
        size_max_bytes,
    };
    assert_eq!(refused.expect_err("too large"), too_large);
    drop(holding(&store, 1, LARGE).expect("as much as may be"));

    let other = holding(&store, 2, 100_000).expect("room enough");
    let refused = holding(&store, 1, LARGE - 100_000 + 1);
    let no_room = Refusal::NoRoomInFlight {
        size_bytes: LARGE - 100_000 + 1,
        room_bytes: LARGE - 100_000,
    };
    assert_eq!(refused.expect_err("the other has it"), no_room);
    let _last = holding(&store, 1, LARGE - 100_000).expect("as much as is left");
    store.debug_check();
    // a stored one is a matter of the rest of the budget, but has to arrive first
    drop(other);
    put(&store, 3, 50_000);
    assert!(find(&store, 3).is_ok());
}

#[test]
fn small_in_flight_responses_have_a_reserve_beside_large_ones() {
    let store = store();
    let _large = holding(&store, 1, LARGE).expect("as much as may be");
    assert!(holding(&store, 2, SMALL + 1).is_err(), "not a small one");
    let small: Vec<Reservation> = (100..200)
        .map_while(|key| holding(&store, key, SMALL).ok())
        .collect();
    assert_eq!(small.len() as u64, (SHARE - LARGE) / SMALL);
    let left = SHARE - store.memory_use().in_flight_bytes;
    assert!(store.memory_use().in_flight == small.len() as u64 + 1 && left < SMALL);
    store.debug_check();
    drop(small);
    assert!(holding(&store, 2, SMALL).is_ok());
}

#[test]
fn refused_reservation_keeps_the_bytes_granted_before() {
    let store = store();
    let mut in_flight = InFlightContent::new(None, None);
    let place = in_flight.open(ByteSpan {
        from: 0,
        to: u64::MAX,
    });
    let mut reservation = store
        .expect(digest(1))
        .begin(10, None)
        .expect("room enough");
    let mut at = 0;
    let refusal = loop {
        let bytes = content(1, at..at + 10_000);
        match reservation.reserve_push(&mut in_flight, place, bytes.len()) {
            Ok(()) => at += in_flight.push(place, bytes),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refusal, Refusal::TooLarge { .. }), "{refusal}");
    assert!(at > LARGE - 2 * CONTENT_MAX, "refused after {at}");
    let arriving = store.memory_use().in_flight_bytes;
    assert!(arriving <= LARGE && in_flight.held_bytes() as u64 <= arriving);
    // the part that has come is as good as any
    in_flight.set_complete_length(2 << 20);
    let response = true_part(1, 1, 2 << 20, in_flight.finish());
    assert_eq!(reservation.commit(NOW, None, response), Ok(()));
    let found = find(&store, 1).expect("it was committed");
    assert_eq!(found.body.present_bytes(), at);
    assert_eq!(found.complete_length(), Some(2 << 20));
    assert_eq!(store.memory_use().in_flight_bytes, 0);
    store.debug_check();
}

#[test]
fn response_in_flight_at_a_purge_is_not_stored_but_stays_readable() {
    let store = store();
    let mut early = Transfer::begin(&store, 1);
    let other = Transfer::begin(&store, 2);
    assert!(!early.reservation.is_outdated());
    store.remove(digest(1));
    assert!(early.reservation.is_outdated() && !other.reservation.is_outdated());
    // the fetch goes on for those who read it
    while early.at < LENGTH {
        early.push().expect("it was promised");
        early.check_bytes();
    }
    drop(other);
    let late = Transfer::begin(&store, 1);
    let response = Arc::new(early.response());
    let Transfer {
        reservation,
        in_flight,
        ..
    } = early;
    let committed = reservation.commit(NOW, None, Arc::clone(&response));
    assert_eq!(committed, Err(Refusal::NotResident));
    assert_eq!(check_response(&response), 1);
    assert_eq!(in_flight.present_bytes(), LENGTH);
    assert_eq!(find(&store, 1).err(), Some(Missing::Target));
    assert_eq!(late.commit(), Ok(()), "asked for after the purge");
    assert_eq!(store.memory_use().in_flight_bytes, 0);
    store.debug_check();
}

#[test]
fn response_in_flight_at_a_clear_is_not_stored() {
    let store = store();
    let transfer = Transfer::begin(&store, 1);
    store.clear();
    assert_eq!(transfer.commit(), Err(Refusal::NotResident));
    assert!(find(&store, 1).is_err());
}

#[test]
fn budget_cut_keeps_existing_reservations_and_grants_no_new_ones() {
    let store = store();
    put(&store, 9, 50_000);
    let mut transfer = Transfer::begin(&store, 1);
    let held = store.memory_use().in_flight_bytes;
    store.set_budget(held / 2);
    store.debug_check();
    let memory = store.memory_use();
    assert_eq!((memory.used_bytes, memory.entries), (held, 0));
    while transfer.at < LENGTH {
        transfer.push().expect("it was promised");
    }
    let more = usize::try_from(held).expect("a length") + 1;
    assert!(transfer.reservation.reserve_held(more).is_err());
    assert!(store.expect(digest(2)).begin(10, Some(0)).is_err());
    let committed = transfer.commit();
    assert!(matches!(committed, Err(Refusal::TooLarge { .. })));
    assert_eq!(store.memory_use().used_bytes, 0, "bytes are lost");
}

#[test]
fn partial_response_is_found_as_such_and_replaced_by_the_whole() {
    let store = store();
    let transfer = Transfer::begin(&store, 1);
    let came = transfer.at;
    assert_eq!(transfer.commit(), Ok(()));
    let part = find(&store, 1).expect("a part is found");
    assert!(part.is_part() && part.body.len() == LENGTH);
    let holds = |from, to| part.body.holds(ByteSpan { from, to });
    assert!(holds(0, came) && !holds(0, came + 1) && !holds(came, LENGTH));

    // what is missing comes, and takes its place
    let mut in_flight = InFlightContent::new(part.complete_length(), Some(&part.body));
    let place = in_flight.open(ByteSpan {
        from: came,
        to: LENGTH,
    });
    let missing = Some(LENGTH - came);
    let mut reservation = store
        .expect(digest(1))
        .begin(10, missing)
        .expect("room enough");
    let mut at = came;
    while at < LENGTH {
        let bytes = content(1, at..(at + 16_384).min(LENGTH));
        reservation
            .reserve_push(&mut in_flight, place, bytes.len())
            .expect("room enough");
        at += in_flight.push(place, bytes);
    }
    let response = true_part(1, 1, LENGTH, in_flight.finish());
    assert_eq!(reservation.commit(NOW, None, response), Ok(()));
    let whole = find(&store, 1).expect("the whole is found");
    assert!(!whole.is_part() && whole.body.at(0).as_ptr() == part.body.at(0).as_ptr());
    assert_eq!(store.memory_use().entries, 1);
    store.debug_check();
}

#[test]
fn memory_beside_responses_shares_the_limit_of_those_that_arrive() {
    let store = store();
    let in_flight = || store.memory_use().in_flight_bytes;
    let mut memory = ChargedMemory::new(&store);
    assert_eq!(in_flight(), 0);
    assert!(memory.hold(SHARE).is_err(), "some is left to small ones");
    assert_eq!(memory.hold(LARGE), Ok(()));
    assert_eq!((memory.hold(10), in_flight()), (Ok(()), LARGE));
    let mut other = ChargedMemory::new(&store);
    assert!(matches!(
        other.hold(SMALL + 1),
        Err(Refusal::NoRoomInFlight { .. })
    ));
    assert!(holding(&store, 1, SMALL + 1).is_err());
    assert_eq!(other.hold(SMALL), Ok(()));
    assert_eq!(in_flight(), LARGE + SMALL);
    store.debug_check();
    drop(memory);
    assert_eq!(in_flight(), SMALL);
    drop(other);
    assert_eq!(in_flight(), 0);
    put(&store, 2, CONTENT_MAX);
}
