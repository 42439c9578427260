use super::*;
use crate::facts::Assumptions;
use weir_policy::Tick;
use weir_semantics::{Heuristic, Timestamp};

fn now(ms: u64) -> Now {
    Now {
        wall: Timestamp(1000),
        tick: Tick(ms),
    }
}

fn ask(target: u64, vary: u64, variant: u64) -> Ask {
    let row = Row {
        target,
        vary: Some(vary),
        variant: Some(variant),
        ..Row::default()
    };
    Ask::of(&row, 0, &mut Assumptions::default())
}

fn stored(ask: &Ask, bytes: u64) -> Stored {
    Stored {
        target: ask.target,
        vary: ask.vary,
        variant: ask.variant,
        facts: StoredFacts::new(
            &ask.response,
            Timestamp(1000),
            now(0),
            &Heuristic::default(),
        ),
        response: ask.response,
        validators: ask.validators,
        head_bytes: 0,
        complete_length: Some(bytes),
        part: None,
    }
}

fn cache(budget: u64) -> Cache {
    Cache::new(budget, EvictionKind::Lru, Rule::Always)
}

#[test]
fn variant_of_another_request_is_found_or_its_own_is_not() {
    let mut cache = cache(1 << 20);
    let (one, two, third) = (ask(1, 5, 10), ask(1, 5, 20), ask(1, 5, 30));
    assert_eq!(cache.find(now(0), &one), Err(Missing::Target));
    assert_eq!(cache.store(now(0), stored(&one, 100)), Stores::Done);
    assert_eq!(cache.find(now(0), &two), Err(Missing::Variant));
    assert_eq!(cache.store(now(0), stored(&two, 200)), Stores::Done);
    let found = |cache: &mut Cache, ask: &Ask| {
        let which = cache.find(now(0), ask).unwrap();
        cache.get(which).unwrap().complete_length
    };
    assert_eq!(found(&mut cache, &one), Some(100));
    assert_eq!(found(&mut cache, &two), Some(200));
    assert_eq!(cache.find(now(0), &third), Err(Missing::Variant));
    // a response without Vary replaces all of them, one with Vary replaces that
    assert_eq!(
        cache.store(now(0), stored(&ask(1, 0, 0), 300)),
        Stores::Done
    );
    assert_eq!(found(&mut cache, &third), Some(300));
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.store(now(0), stored(&third, 400)), Stores::Done);
    assert_eq!(cache.find(now(0), &one), Err(Missing::Variant));
    assert_eq!(cache.len(), 1);
}

#[test]
fn replaced_or_evicted_response_is_still_read() {
    let mut cache = cache(3000);
    let first = ask(1, 0, 0);
    cache.store(now(0), stored(&first, 1000));
    let which = cache.find(now(0), &first).unwrap();
    cache.store(now(0), stored(&first, 900));
    assert!(cache.get(which).is_none(), "replaced");
    let which = cache.find(now(0), &first).unwrap();
    assert_eq!(
        cache.store(now(0), stored(&ask(2, 0, 0), 1900)),
        Stores::Done
    );
    assert!(cache.get(which).is_none(), "evicted");
    assert_eq!((cache.evictions, cache.used_bytes()), (1, 1900));
    let refused = cache.store(now(0), stored(&ask(3, 0, 0), 5000));
    assert!(matches!(refused, Stores::Refused(Refusal::TooLarge { .. })));
    assert_eq!(cache.len(), 1);
}

#[test]
fn invalidation_leaves_a_variant_behind() {
    let mut cache = cache(1 << 20);
    for variant in 0..VARIANTS_MAX as u64 + 2 {
        cache.store(now(0), stored(&ask(1, 5, variant), 10));
    }
    assert_eq!(cache.len(), VARIANTS_MAX, "the oldest have left");
    cache.store(now(0), stored(&ask(2, 0, 0), 10));
    cache.invalidate(1);
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.find(now(0), &ask(1, 5, 9)), Err(Missing::Target));
    cache.invalidate(1);
}

#[test]
fn rule_of_admission_is_not_asked() {
    let mut cache = Cache::new(1 << 20, EvictionKind::Sieve, Rule::SecondRequest);
    let ask = ask(1, 0, 0);
    let first = cache.store(now(0), stored(&ask, 10));
    assert_eq!(first, Stores::NotAdmitted(Admission::FirstRequest));
    assert_eq!(cache.store(now(0), stored(&ask, 10)), Stores::Done);
}

#[test]
fn part_covers_what_it_lacks() {
    let ask = ask(1, 0, 0);
    let spans = [ByteSpan { from: 0, to: 50 }].into_iter().collect();
    let part = Stored {
        part: Some(Box::new(spans)),
        ..stored(&ask, 100)
    };
    assert!(part.covers(ByteSpan { from: 0, to: 50 }));
    assert!(!part.covers(ByteSpan { from: 0, to: 51 }));
    assert!(part.covers(ByteSpan { from: 0, to: 0 }));
    assert_eq!(part.content_bytes(), 50);
}
