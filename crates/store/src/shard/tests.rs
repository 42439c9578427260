use super::*;
use crate::content::StoredContent;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpan;
use weir_policy::rule::StoringIgnored;
use weir_policy::{StoredFacts, Tick};
use weir_semantics::{DeltaSeconds, Timestamp};

/// A response of 10,000 B that was read from disk.
fn response() -> Arc<StoredResponse> {
    Arc::new(StoredResponse {
        head: b"HTTP/1.1 200 OK\r\n"[..].into(),
        facts: StoredFacts {
            status: 200,
            has_validator: false,
            strong_tag: false,
            is_transformed: false,
            keeps_lifetime: false,
            ignored: StoringIgnored::NONE,
            is_permitted: false,
            no_cache: false,
            must_revalidate: false,
            freshness_lifetime: DeltaSeconds(60),
            corrected_initial_age: DeltaSeconds(0),
            response_tick: Tick(0),
            stale_while_revalidate: None,
            stale_if_error: None,
        },
        entity_tag: None,
        last_modified: None,
        date: Timestamp(0),
        body: StoredContent::from(&[7; 10_000][..]),
    })
}

fn key(number: u64) -> Digest {
    Digest(number, number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// One that was found on disk; whether it is in memory then.
fn insert_from_disk(
    shard: &mut Shard,
    number: u64,
    vary: Option<(VaryRule, Digest, Line)>,
) -> bool {
    let id = shard.expect(key(number)).unwrap();
    let selecting = vary.as_ref().map(|(_, selecting, _)| *selecting);
    assert!(shard.insert_from_disk(id, vary, response(), true).is_some());
    shard.abandon(id);
    let selecting = move |_: &VaryRule| selecting.unwrap_or_default();
    let found = shard.find(key(number), &selecting);
    shard.debug_check();
    matches!(found, LookupResult::Found(_))
}

#[test]
fn response_on_disk_is_admitted_to_full_memory_at_its_second_lookup() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let room = (0..200).take_while(|number| insert_from_disk(&mut shard, *number, None));
    let room = room.count() as u64;
    assert!((50..110).contains(&room), "{room}");
    assert_eq!(shard.evictions(), 0);
    for number in 1000..1000 + room / 2 {
        assert!(
            !insert_from_disk(&mut shard, number, None),
            "{number}, once"
        );
    }
    assert_eq!((shard.evictions(), shard.entries()), (0, room));
    for number in 1000..1000 + room / 2 {
        assert!(
            insert_from_disk(&mut shard, number, None),
            "{number}, again"
        );
    }
    assert!(shard.evictions() > 0);
}

#[test]
fn variant_on_disk_is_admitted_to_full_memory_at_its_first_lookup() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let mut number = 0;
    while insert_from_disk(&mut shard, number, None) {
        number += 1;
    }
    let rule = VaryRule(vec!["accept".into()].into());
    let vary = (rule, Digest(1, 1), Line(1));
    assert!(insert_from_disk(&mut shard, 5000, Some(vary)));
}

/// A response that was received at `tick`, whole or a part of it.
fn received_at(tick: u64, tag: &[u8], is_whole: bool) -> Arc<StoredResponse> {
    let mut in_flight = crate::in_flight::content::InFlightContent::new(Some(10_000), None);
    let to = if is_whole { 10_000 } else { 4_000 };
    let place = in_flight.open(ByteSpan { from: 0, to });
    in_flight.push(place, &vec![7; usize::try_from(to).unwrap()]);
    in_flight.close(place);
    let mut received = response().with_body(in_flight.finish());
    received.facts.response_tick = Tick(tick);
    received.facts.strong_tag = true;
    received.entity_tag = Some(tag.into());
    assert_eq!(received.is_part(), !is_whole);
    Arc::new(received)
}

/// Stores `first` and then `second`, which was asked for before; which of them is found.
fn which_is_found(
    first: Arc<StoredResponse>,
    second: Arc<StoredResponse>,
    vary: Option<&(VaryRule, Digest)>,
) -> u8 {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let older = shard.expect(key(1)).unwrap();
    let newer = shard.expect(key(1)).unwrap();
    let stored = shard.commit(newer, vary.cloned(), Arc::clone(&first), false);
    assert!(stored.is_ok());
    let stored = shard.commit(older, vary.cloned(), Arc::clone(&second), false);
    shard.debug_check();
    let selecting = vary.map_or_else(Digest::default, |(_, selecting)| *selecting);
    let LookupResult::Found(found) = shard.find(key(1), &|_| selecting) else {
        panic!("neither is found");
    };
    let is_second = Arc::ptr_eq(&found, &second);
    assert!(is_second || Arc::ptr_eq(&found, &first));
    assert_eq!(stored.is_ok(), is_second);
    if is_second { 2 } else { 1 }
}

#[test]
fn newer_response_in_memory_is_not_replaced_by_an_older_one() {
    let rule = VaryRule(vec!["accept".into()].into());
    let vary = (rule, Digest(1, 1));
    for vary in [None, Some(&vary)] {
        let found = |first, second| {
            let first = received_at(first, b"\"a\"", true);
            which_is_found(first, received_at(second, b"\"b\"", true), vary)
        };
        assert_eq!(found(5, 4), 1, "older");
        assert_eq!(found(5, 5), 2, "at the same time: the one that came last");
        assert_eq!(found(5, 6), 2, "newer");
    }
}

#[test]
fn older_complete_response_replaces_only_a_newer_part_with_its_entity_tag() {
    let found = |part: &[u8], is_whole| {
        which_is_found(
            received_at(5, part, false),
            received_at(4, b"\"a\"", is_whole),
            None,
        )
    };
    assert_eq!(found(b"\"a\"", true), 2, "all of the same representation");
    assert_eq!(found(b"\"b\"", true), 1, "another representation");
    assert_eq!(found(b"\"a\"", false), 1, "a part too");
}

#[test]
fn older_variant_is_stored_beside_a_newer_other_variant() {
    let rule = VaryRule(vec!["accept".into()].into());
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    for (tick, selecting) in [(5, Digest(1, 1)), (4, Digest(2, 2))] {
        let id = shard.expect(key(1)).unwrap();
        let received = received_at(tick, b"\"a\"", true);
        let stored = shard.commit(id, Some((rule.clone(), selecting)), received, false);
        assert!(stored.is_ok(), "{tick}");
    }
    assert_eq!(shard.entries(), 2);
}

#[test]
fn response_purged_during_its_disk_lookup_is_not_found() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let purge_one: fn(&mut Shard) = |shard| {
        shard.remove(key(1));
    };
    for purge in [purge_one, Shard::clear] {
        let id = shard.expect(key(1)).unwrap();
        let other = shard.expect(key(2)).unwrap();
        purge(&mut shard);
        assert!(shard.insert_from_disk(id, None, response(), true).is_none());
        shard.abandon(id);
        shard.abandon(other);
        assert_eq!((shard.entries(), shard.in_flight()), (0, 0));
        shard.debug_check();
    }
    // one that was looked for from then on is
    assert!(insert_from_disk(&mut shard, 1, None));
}

/// The bytes of one that is several blocks.
const LARGE_BYTES: usize = 250_000;

/// Asks for and stores a large response under `number`.
fn store_large(shard: &mut Shard, number: u64) -> Result<(), Refusal> {
    let id = shard.expect(key(number))?;
    let taken = shard.extend(id, LARGE_BYTES as u64);
    if taken.is_err() {
        shard.abandon(id);
        return taken;
    }
    let large = response().with_body(StoredContent::from(&[7; LARGE_BYTES][..]));
    let stored = shard.commit(id, None, Arc::new(large), false);
    shard.debug_check();
    stored.map(|_| ())
}

fn find(shard: &mut Shard, number: u64) -> Option<Arc<StoredResponse>> {
    match shard.find(key(number), &|_| Digest::default()) {
        LookupResult::Found(found) => Some(found),
        LookupResult::Missing(_) => None,
    }
}

#[test]
fn response_in_use_is_not_evicted_for_new_ones() {
    for kind in EvictionKind::ALL {
        let mut shard = Shard::new(Catalog::new(1 << 20, kind));
        store_large(&mut shard, 0).unwrap();
        let read = find(&mut shard, 0);
        for number in 1..20 {
            store_large(&mut shard, number).unwrap();
            assert!(shard.used_bytes() <= 1 << 20, "{kind:?}");
        }
        assert!(find(&mut shard, 0).is_some(), "{kind:?}");
        assert!(shard.evictions() > 10);
        // once it has no reader, it is evicted as others are
        drop(read);
        for number in 20..60 {
            store_large(&mut shard, number).unwrap();
        }
        // (the others keep what was in use, as it was asked for again)
        if matches!(kind, EvictionKind::Lru | EvictionKind::Fifo) {
            assert!(find(&mut shard, 0).is_none(), "{kind:?}");
        }
        assert_eq!((shard.lingering_bytes(), shard.in_flight_bytes()), (0, 0));
    }
}

#[test]
fn response_is_refused_while_all_stored_responses_are_in_use() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::Lru));
    let mut read = Vec::new();
    let refused = loop {
        let number = read.len() as u64;
        match store_large(&mut shard, number) {
            Ok(()) => read.push(find(&mut shard, number).expect("it was stored")),
            Err(refused) => break refused,
        }
        assert!(read.len() < 10);
    };
    assert_eq!(refused.as_str(), "all-in-use");
    assert!(read.len() >= 4 && shard.used_bytes() <= 1 << 20);
    assert_eq!(shard.evictions(), 0);
    read.pop();
    assert_eq!(store_large(&mut shard, 99), Ok(()));
}

#[test]
fn purged_or_replaced_response_counts_until_its_last_reader_releases_it() {
    let purge_one: fn(&mut Shard) = |shard| {
        shard.remove(key(1));
    };
    let store_another: fn(&mut Shard) = |shard| store_large(shard, 1).unwrap();
    for forget in [purge_one, Shard::clear, store_another] {
        let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
        store_large(&mut shard, 1).unwrap();
        let body = find(&mut shard, 1).unwrap().body.clone();
        let other = body.clone();
        forget(&mut shard);
        shard.debug_check();
        for reader in [body, other] {
            assert!(shard.lingering_bytes() > LARGE_BYTES as u64);
            assert!(shard.used_bytes() >= shard.lingering_bytes());
            drop(reader);
        }
        assert_eq!(shard.lingering_bytes(), 0);
        shard.debug_check();
        // and the room can be taken again
        for number in 10..20 {
            store_large(&mut shard, number).unwrap();
        }
        assert_eq!(shard.in_flight_bytes(), 0);
    }
}

#[test]
fn response_not_stored_at_commit_counts_while_it_is_in_use() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let id = shard.expect(key(1)).unwrap();
    shard.remove(key(1));
    let large = Arc::new(response().with_body(StoredContent::from(&[7; LARGE_BYTES][..])));
    let stored = shard.commit(id, None, Arc::clone(&large), false);
    assert_eq!(stored, Err(Refusal::NotResident));
    assert!(shard.lingering_bytes() > LARGE_BYTES as u64);
    drop(large);
    assert_eq!((shard.lingering_bytes(), shard.used_bytes()), (0, 0));
}

/// The one that is stored was received before: it must not be found in the place of a later one.
#[test]
fn response_refused_by_memory_leaves_no_older_one_there() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let rule = VaryRule(vec!["accept".into()].into());
    let selecting = key(3);
    for vary in [None, Some((rule, selecting))] {
        let id = shard.expect(key(1)).unwrap();
        shard.commit(id, vary.clone(), response(), false).unwrap();
        let id = shard.expect(key(1)).unwrap();
        let mut larger = response().with_body(StoredContent::from(&[7; 2 << 20][..]));
        larger.facts.response_tick = Tick(1);
        let stored = shard.commit(id, vary, Arc::new(larger), false);
        assert!(stored.is_err(), "{stored:?}");
        let found = shard.find(key(1), &|_| selecting);
        assert!(matches!(found, LookupResult::Missing(_)), "{found:?}");
    }
}

#[test]
fn outdated_record_found_on_disk_is_not_put_in() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let id = shard.expect(key(1)).unwrap();
    assert!(
        shard
            .insert_from_disk(id, None, response(), false)
            .is_none()
    );
    shard.abandon(id);
    assert_eq!((shard.entries(), shard.in_flight()), (0, 0));
}

/// Its key on disk is made with the line: another variant that comes meanwhile must not change it.
#[test]
fn line_of_an_arriving_variant_stays_and_replaces_that_of_the_others() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let rule = VaryRule(vec!["accept".into()].into());
    let id = shard.expect(key(1)).unwrap();
    let line = shard.line(id, None);
    let other = Line::begin();
    assert!(insert_from_disk(
        &mut shard,
        1,
        Some((rule.clone(), key(3), other))
    ));
    assert_eq!(shard.line(id, None), line);
    let changed = shard.commit(id, Some((rule, key(4))), response(), false);
    assert_eq!(changed, Ok(true), "the rules on disk name the other line");
    let dropped = shard.outdate(key(1), &response(), Some(key(4)));
    assert!(matches!(dropped, DiskPlace::Forgotten(Some((found, _))) if found == line));
}
