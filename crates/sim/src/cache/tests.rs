use super::*;
use crate::facts::Assumptions;
use weir_policy::{Now, Tick};
use weir_semantics::{Heuristic, Timestamp};

const NOW: Now = Now {
    wall: Timestamp(1000),
    tick: Tick(0),
};

fn ask(target: u64, vary: u64, variant: u64) -> Ask {
    let row = Row {
        target,
        vary: Some(vary),
        variant: Some(variant),
        ..Row::default()
    };
    Ask::of(&row, 0, &mut Assumptions::default())
}

fn stored(ask: &Ask, bytes: u64) -> StoredResponse {
    StoredResponse {
        target: ask.target,
        vary: ask.vary,
        variant: ask.variant,
        facts: StoredFacts::new(&ask.response, Timestamp(1000), NOW, &Heuristic::default()),
        response: ask.response,
        validators: ask.validators,
        head_bytes: 0,
        complete_length: Some(bytes),
        part: None,
    }
}

const fn is_stored(came: Stores) -> bool {
    matches!(came, Stores::Done(_))
}

fn cache(budget: u64) -> Cache {
    Cache::new(budget, EvictionKind::Lru, Rule::Always)
}

#[test]
fn request_finds_only_the_variant_that_it_selects() {
    let mut cache = cache(1 << 20);
    let (one, two, third) = (ask(1, 5, 10), ask(1, 5, 20), ask(1, 5, 30));
    assert_eq!(cache.find(&one), Err(Missing::Target));
    assert!(is_stored(cache.store(stored(&one, 100))));
    assert_eq!(cache.find(&two), Err(Missing::Variant));
    assert!(is_stored(cache.store(stored(&two, 200))));
    let found = |cache: &mut Cache, ask: &Ask| {
        let which = cache.find(ask).unwrap();
        cache.get(which).unwrap().complete_length
    };
    assert_eq!(found(&mut cache, &one), Some(100));
    assert_eq!(found(&mut cache, &two), Some(200));
    assert_eq!(cache.find(&third), Err(Missing::Variant));
    // a response without Vary replaces all of them, one with Vary replaces that
    assert!(is_stored(cache.store(stored(&ask(1, 0, 0), 300))));
    assert_eq!(found(&mut cache, &third), Some(300));
    assert_eq!(cache.len(), 1);
    assert!(is_stored(cache.store(stored(&third, 400))));
    assert_eq!(cache.find(&one), Err(Missing::Variant));
    assert_eq!(cache.len(), 1);
}

#[test]
fn replaced_or_evicted_response_cannot_be_read() {
    let mut cache = cache(3000);
    let first = ask(1, 0, 0);
    cache.store(stored(&first, 1000));
    let which = cache.find(&first).unwrap();
    cache.store(stored(&first, 900));
    assert!(cache.get(which).is_none(), "replaced");
    let which = cache.find(&first).unwrap();
    assert!(is_stored(cache.store(stored(&ask(2, 0, 0), 1900))));
    assert!(cache.get(which).is_none(), "evicted");
    assert_eq!((cache.evictions, cache.used_bytes()), (1, 1900));
    let refused = cache.store(stored(&ask(3, 0, 0), 5000));
    assert!(matches!(refused, Stores::Refused(Refusal::TooLarge { .. })));
    assert_eq!(cache.len(), 1);
}

#[test]
fn invalidation_removes_all_variants_of_a_target() {
    let mut cache = cache(1 << 20);
    for variant in 0..VARIANTS_MAX as u64 + 2 {
        cache.store(stored(&ask(1, 5, variant), 10));
    }
    assert_eq!(cache.len(), VARIANTS_MAX, "the oldest have left");
    cache.store(stored(&ask(2, 0, 0), 10));
    cache.invalidate(1);
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.find(&ask(1, 5, 9)), Err(Missing::Target));
    cache.invalidate(1);
}

#[test]
fn response_is_stored_only_if_the_admission_rule_admits_it() {
    let mut cache = Cache::new(1 << 20, EvictionKind::Sieve, Rule::SecondRequest);
    let ask = ask(1, 0, 0);
    let first = cache.store(stored(&ask, 10));
    assert_eq!(first, Stores::NotAdmitted(Admission::FirstRequest));
    assert!(is_stored(cache.store(stored(&ask, 10))));
}

#[test]
fn partial_response_covers_only_the_ranges_that_it_holds() {
    let ask = ask(1, 0, 0);
    let spans = [ByteSpan { from: 0, to: 50 }].into_iter().collect();
    let part = StoredResponse {
        part: Some(Box::new(spans)),
        ..stored(&ask, 100)
    };
    assert!(part.covers(ByteSpan { from: 0, to: 50 }));
    assert!(!part.covers(ByteSpan { from: 0, to: 51 }));
    assert!(part.covers(ByteSpan { from: 0, to: 0 }));
    assert_eq!(part.content_bytes(), 50);
}

/// Of these, three are all of a cache of 1 MB.
const LARGE_BYTES: u64 = 300_000;

fn store_large(cache: &mut Cache, target: u64) -> Stores {
    cache.store(stored(&ask(target, 0, 0), LARGE_BYTES))
}

/// Stores one and begins to read it.
fn store_and_read(cache: &mut Cache, target: u64) -> ContentId {
    let Stores::Done(which) = store_large(cache, target) else {
        panic!("there is room");
    };
    cache.begin_use(which).expect("it is large")
}

#[test]
fn response_in_use_is_not_evicted_until_its_use_ends() {
    let mut cache = cache(1_000_000);
    let read = store_and_read(&mut cache, 1);
    for target in 2..10 {
        assert!(is_stored(store_large(&mut cache, target)));
    }
    assert!(cache.find(&ask(1, 0, 0)).is_ok());
    assert_eq!((cache.evictions, cache.len()), (6, 3));
    cache.end_use(read);
    for target in 10..14 {
        assert!(is_stored(store_large(&mut cache, target)));
    }
    assert!(cache.find(&ask(1, 0, 0)).is_err());
}

#[test]
fn response_is_refused_while_all_stored_responses_are_in_use() {
    let mut cache = cache(1_000_000);
    let read: Vec<ContentId> = (0..3)
        .map(|target| store_and_read(&mut cache, target))
        .collect();
    let room = cache.take_room(9, LARGE_BYTES, 100);
    assert!(matches!(room, Err(Refusal::AllInUse { .. })), "{room:?}");
    let stored = store_large(&mut cache, 9);
    let is_refused = matches!(stored, Stores::Refused(Refusal::AllInUse { .. }));
    assert!(is_refused, "{stored:?}");
    cache.end_use(read[1]);
    assert!(is_stored(store_large(&mut cache, 9)));
    assert!(cache.find(&ask(1, 0, 0)).is_err());
    assert!(cache.find(&ask(2, 0, 0)).is_ok());
}

#[test]
fn invalidated_or_replaced_content_counts_until_its_last_reader_ends() {
    let forget: [fn(&mut Cache); 2] = [
        |cache| cache.invalidate(1),
        |cache| assert!(is_stored(store_large(cache, 1))),
    ];
    for forget in forget {
        let mut cache = cache(1_000_000);
        let one = store_and_read(&mut cache, 1);
        let which = cache.find(&ask(1, 0, 0)).unwrap();
        let other = cache.begin_use(which).expect("it is large");
        assert_eq!(one, other);
        forget(&mut cache);
        for reader in [one, other] {
            assert_eq!(cache.lingering_bytes(), LARGE_BYTES);
            cache.end_use(reader);
        }
        assert_eq!(cache.lingering_bytes(), 0);
        for target in 10..13 {
            assert!(is_stored(store_large(&mut cache, target)));
        }
    }
}

#[test]
fn small_content_is_not_counted_as_in_use_by_the_cache() {
    let mut cache = cache(1_000_000);
    let Stores::Done(which) = cache.store(stored(&ask(1, 0, 0), 200_000)) else {
        panic!("there is room");
    };
    assert_eq!(cache.begin_use(which), None);
    assert_eq!(cache.begin_use_unstored(200_000), None);
}
