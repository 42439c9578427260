//! Limits for one target and for one response.

use crate::support::{NOW, check_response, digest, true_response};
use std::sync::Arc;
use weir_policy::catalog::Refusal;
use weir_policy::eviction::EvictionKind;
use weir_policy::{Digest, Missing, Secret};
use weir_store::{
    ContentBuilder, ExpectedResponse, LookupResult, MODULES, MemoryStore, RULES_MAX, VARIANTS_MAX,
    VaryRule,
};

const TARGET: u64 = 1;

fn store(budget: u64) -> Arc<MemoryStore> {
    let kind = EvictionKind::Lru;
    Arc::new(MemoryStore::new(budget, kind, 1, 1 << 20, Secret([7; 16])))
}

fn rule(name: &str) -> VaryRule {
    VaryRule([name.into()].into())
}

/// Under each rule this request digests to the rule's name and `value`.
fn selecting(rule: &VaryRule, value: u64) -> Digest {
    let name = rule.0[0]
        .bytes()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(257) + u64::from(byte));
    digest(name.wrapping_mul(1000) + value)
}

fn put(store: &Arc<MemoryStore>, id: u64, vary: Option<(&str, u64)>) {
    let reservation = store
        .expect(digest(TARGET))
        .begin(10, Some(0))
        .expect("room enough");
    let vary = vary.map(|(name, value)| (rule(name), selecting(&rule(name), value)));
    let response = true_response(id, 0, ContentBuilder::new(Some(0)));
    reservation
        .commit(NOW, vary, response)
        .expect("room enough");
    store.debug_check();
}

fn find(store: &MemoryStore, value: u64) -> Result<u64, Missing> {
    match store.find(digest(TARGET), &|rule| selecting(rule, value)) {
        LookupResult::Found(found) => Ok(check_response(&found)),
        LookupResult::Missing(missing) => Err(missing),
    }
}

#[test]
fn vary_rules_are_kept_up_to_the_limit_and_the_oldest_is_dropped() {
    let store = store(1 << 20);
    let names = ["a", "b", "c", "d", "e"];
    assert_eq!(names.len(), RULES_MAX + 1);
    for (value, name) in (0..).zip(&names[..RULES_MAX]) {
        put(&store, value, Some((name, value)));
    }
    assert_eq!(
        find(&store, 0),
        Ok(0),
        "the oldest of as many as there may be"
    );
    put(&store, 9, Some((names[RULES_MAX], 9)));
    assert_eq!(find(&store, 0), Err(Missing::Variant), "one too many");
    assert_eq!(find(&store, 1), Ok(1));
    // it left, rather than occupy room where no request finds it
    assert_eq!(store.memory_use().entries, RULES_MAX as u64);
}

#[test]
fn vary_rule_stored_again_is_kept_and_the_oldest_is_dropped() {
    let store = store(1 << 20);
    for (value, name) in (0..).zip(["a", "b", "c", "d", "a", "e"]) {
        put(&store, value, Some((name, value)));
    }
    assert_eq!(find(&store, 0), Ok(0));
    assert_eq!(find(&store, 4), Ok(4));
    assert_eq!(
        find(&store, 1),
        Err(Missing::Variant),
        "b was the oldest rule"
    );
}

#[test]
fn variants_are_kept_up_to_the_limit_and_the_oldest_is_dropped() {
    let store = store(1 << 20);
    let limit = VARIANTS_MAX as u64;
    for value in 0..limit {
        put(&store, value, Some(("a", value)));
    }
    assert_eq!(find(&store, 0), Ok(0));
    // the same request again takes the place of its own
    put(&store, 1000, Some(("a", 5)));
    assert_eq!((find(&store, 0), find(&store, 5)), (Ok(0), Ok(1000)));
    assert_eq!(store.memory_use().entries, limit);
    put(&store, 2000, Some(("a", 2000)));
    assert_eq!(find(&store, 0), Err(Missing::Variant));
    assert_eq!((find(&store, 1), find(&store, 2000)), (Ok(1), Ok(2000)));
    assert_eq!(store.memory_use().entries, limit);
}

#[test]
fn response_without_vary_replaces_all_variants_and_is_replaced_by_one() {
    let store = store(1 << 20);
    put(&store, 1, Some(("a", 1)));
    put(&store, 2, Some(("b", 2)));
    put(&store, 3, None);
    assert_eq!((find(&store, 1), find(&store, 7)), (Ok(3), Ok(3)));
    put(&store, 4, Some(("a", 4)));
    assert_eq!(
        (find(&store, 4), find(&store, 7)),
        (Ok(4), Err(Missing::Variant))
    );
    assert_eq!(store.memory_use().entries, 1);
}

fn find_variant(store: &MemoryStore, value: u64) -> Result<u64, Missing> {
    match store.find_variant(digest(TARGET), &|rule| selecting(rule, value)) {
        LookupResult::Found(found) => Ok(check_response(&found)),
        LookupResult::Missing(missing) => Err(missing),
    }
}

#[test]
fn response_stored_without_modules_is_not_found_as_a_variant_and_a_variant_takes_its_place() {
    let store = store(1 << 20);
    assert_eq!(find_variant(&store, 1), Err(Missing::Target));
    put(&store, 1, None);
    assert_eq!(find(&store, 1), Ok(1));
    assert_eq!(find_variant(&store, 1), Err(Missing::Variant));
    put(&store, 2, Some((MODULES, 1)));
    put(&store, 3, Some((MODULES, 2)));
    assert_eq!(
        [1, 2, 3].map(|value| find_variant(&store, value)),
        [Ok(2), Ok(3), Err(Missing::Variant)]
    );
    assert_eq!(store.remove(digest(TARGET)), 2, "a purge is of all");
    assert_eq!(find_variant(&store, 1), Err(Missing::Target));
}

#[test]
fn response_of_the_largest_size_is_accepted_and_a_larger_one_refused() {
    let store = store(8 << 20);
    let largest = 1 << 20;
    let refused = store.expect(digest(1)).begin(10, Some(largest + 1));
    assert!(matches!(refused, Err(Refusal::TooLarge { .. })));
    let mut reservation = store
        .expect(digest(1))
        .begin(10, Some(largest))
        .expect("room enough");
    let bytes = usize::try_from(largest).expect("small");
    let mut content = ContentBuilder::new(Some(largest));
    assert!(reservation.reserve_next(&mut content, bytes).is_ok());
    let mut unknown = store
        .expect(digest(2))
        .begin(10, None)
        .expect("room enough");
    let mut content = ContentBuilder::new(None);
    assert!(unknown.reserve_next(&mut content, bytes).is_ok());
    assert!(unknown.reserve_next(&mut content, bytes + 1).is_err());
}

#[test]
fn response_requested_before_a_purge_is_not_stored_and_others_are() {
    let store = store(1 << 20);
    let commit = |expected: ExpectedResponse| {
        let reservation = expected.begin(10, Some(0)).expect("room enough");
        let is_outdated = reservation.is_outdated();
        let response = true_response(7, 0, ContentBuilder::new(Some(0)));
        let committed = reservation.commit(NOW, None, response);
        assert_eq!(
            committed,
            if is_outdated {
                Err(Refusal::NotResident)
            } else {
                Ok(())
            }
        );
        store.debug_check();
        is_outdated
    };
    let [before, other] = [TARGET, TARGET + 1].map(|target| store.expect(digest(target)));
    let given_up = store.expect(digest(TARGET));
    assert_eq!(store.memory_use().in_flight, 3);
    assert_eq!(store.remove(digest(TARGET)), 0);
    let after = store.expect(digest(TARGET));
    drop(given_up);
    assert!(commit(before), "it would undo the purge");
    assert_eq!(find(&store, 0), Err(Missing::Target));
    assert!(!commit(after) && !commit(other), "neither was purged");
    assert_eq!(find(&store, 0), Ok(7));
    assert_eq!(store.memory_use().in_flight_bytes, 0);
}

#[test]
fn expected_responses_stay_within_the_budget_and_the_excess_is_refused() {
    let store = store(1 << 20);
    let all: Vec<_> = (0..10_000).map(|at| store.expect(digest(at))).collect();
    store.debug_check();
    let held = store.memory_use();
    assert!(held.in_flight < 10_000 && held.used_bytes <= 1 << 20);
    // there is no room even to know of the last one
    let last = all.into_iter().next_back().expect("many");
    let refused = last.begin(10, Some(0)).expect_err("no room");
    assert!(
        matches!(refused, Refusal::NoRoomInFlight { .. }),
        "{refused:?}"
    );
    assert_eq!(store.memory_use().in_flight, 0);
}
