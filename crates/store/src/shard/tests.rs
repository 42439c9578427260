use super::*;
use crate::body::Body;
use weir_policy::eviction::EvictionKind;
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
