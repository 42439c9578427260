use super::*;
use crate::body::Body;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::ByteSpan;
use weir_policy::{StoredFacts, Tick};
use weir_semantics::{DeltaSeconds, Timestamp};

const NOW: Now = Now {
    wall: Timestamp(0),
    tick: Tick(0),
};

/// A response of 10,000 B that was read from disk.
fn response() -> Arc<StoredResponse> {
    Arc::new(StoredResponse {
        head: b"HTTP/1.1 200 OK\r\n"[..].into(),
        facts: StoredFacts {
            status: 200,
            has_validator: false,
            strong_tag: false,
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
        body: Body::from(&[7; 10_000][..]),
    })
}

fn key(number: u64) -> Digest {
    Digest(number, number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// One that was found on disk; whether it is in memory then.
fn recall(shard: &mut Shard, number: u64, vary: Option<(VaryRule, Digest, Line)>) -> bool {
    let id = shard.expect(key(number)).unwrap();
    let selecting = vary.as_ref().map(|(_, selecting, _)| *selecting);
    assert!(shard.recall(NOW, id, vary, response()).is_some());
    let selecting = move |_: &VaryRule| selecting.unwrap_or_default();
    let found = shard.find(NOW, key(number), &selecting);
    shard.debug_check();
    matches!(found, Lookup::Found(_))
}

#[test]
fn response_on_disk_drives_out_others_the_first_time_or_never_comes_in() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let room = (0..200).take_while(|number| recall(&mut shard, *number, None));
    let room = room.count() as u64;
    assert!((50..110).contains(&room), "{room}");
    assert_eq!(shard.evictions(), 0);
    for number in 1000..1000 + room / 2 {
        assert!(!recall(&mut shard, number, None), "{number}, once");
    }
    assert_eq!((shard.evictions(), shard.entries()), (0, room));
    for number in 1000..1000 + room / 2 {
        assert!(recall(&mut shard, number, None), "{number}, again");
    }
    assert!(shard.evictions() > 0);
}

#[test]
fn variant_on_disk_is_not_known_in_memory() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let mut number = 0;
    while recall(&mut shard, number, None) {
        number += 1;
    }
    let rule = VaryRule(vec!["accept".into()].into());
    let vary = (rule, Digest(1, 1), Line(1));
    assert!(recall(&mut shard, 5000, Some(vary)));
}

/// A response that was received at `tick`, whole or a part of it.
fn received_at(tick: u64, tag: &[u8], is_whole: bool) -> Arc<StoredResponse> {
    let mut growing = crate::growing::Growing::new(Some(10_000), None);
    let to = if is_whole { 10_000 } else { 4_000 };
    let place = growing.open(ByteSpan { from: 0, to });
    growing.push(place, &vec![7; usize::try_from(to).unwrap()]);
    growing.close(place);
    let mut received = response().with_body(growing.finish());
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
    let stored = shard.commit(NOW, newer, vary.cloned(), Arc::clone(&first));
    assert!(stored.is_ok());
    let stored = shard.commit(NOW, older, vary.cloned(), Arc::clone(&second));
    shard.debug_check();
    let selecting = vary.map_or_else(Digest::default, |(_, selecting)| *selecting);
    let Lookup::Found(found) = shard.find(NOW, key(1), &|_| selecting) else {
        panic!("neither is found");
    };
    let is_second = Arc::ptr_eq(&found.response, &second);
    assert!(is_second || Arc::ptr_eq(&found.response, &first));
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
fn older_response_replaces_a_newer_part_of_itself_only() {
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
fn other_variant_that_is_newer_keeps_no_older_response_out() {
    let rule = VaryRule(vec!["accept".into()].into());
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    for (tick, selecting) in [(5, Digest(1, 1)), (4, Digest(2, 2))] {
        let id = shard.expect(key(1)).unwrap();
        let received = received_at(tick, b"\"a\"", true);
        let stored = shard.commit(NOW, id, Some((rule.clone(), selecting)), received);
        assert!(stored.is_ok(), "{tick}");
    }
    assert_eq!(shard.entries(), 2);
}

#[test]
fn response_that_was_purged_while_it_was_looked_for_on_disk_is_not_found() {
    let mut shard = Shard::new(Catalog::new(1 << 20, EvictionKind::S3Fifo));
    let purge_one: fn(&mut Shard) = |shard| {
        shard.remove(key(1));
    };
    for purge in [purge_one, Shard::clear] {
        let id = shard.expect(key(1)).unwrap();
        let other = shard.expect(key(2)).unwrap();
        purge(&mut shard);
        assert!(shard.recall(NOW, id, None, response()).is_none());
        shard.abandon(other);
        assert_eq!((shard.entries(), shard.arriving()), (0, 0));
        shard.debug_check();
    }
    // one that was looked for from then on is
    assert!(recall(&mut shard, 1, None));
}
