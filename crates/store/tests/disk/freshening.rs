//! Stored responses that were validated, and parts that were completed, in both tiers.

use super::{BUDGET, NOW, Tiers, check, content, digest, response};
use std::sync::Arc;
use weir_semantics::DeltaSeconds;
use weir_store::{StoredContent, StoredResponse};

#[test]
fn freshened_response_keeps_its_content_and_new_lifetime_after_a_restart() {
    for length in [1000, 2_500_000] {
        let mut tiers = Tiers::new();
        tiers.put(1, 10, length);
        tiers.reopen();
        let old = tiers.on_disk(1).expect("on disk");
        let mut new = old.with_body(old.body.clone());
        new.facts.freshness_lifetime = DeltaSeconds(77);
        let expected = tiers.store.expect(digest(1));
        assert!(expected.freshen(NOW, &old, &Arc::new(new), None));
        tiers.written += 1;
        tiers.reopen();
        let found = tiers.on_disk(1).expect("on disk");
        assert_eq!(found.facts.freshness_lifetime, DeltaSeconds(77));
        check(&found, 10, &[(0, length)]);
    }
}

/// `old`, fresh for 77 s from now on.
pub(super) fn freshened(old: &StoredResponse) -> Arc<StoredResponse> {
    let mut new = old.with_body(old.body.clone());
    new.facts.freshness_lifetime = DeltaSeconds(77);
    Arc::new(new)
}

/// What happened to a response between its choice and the answer that says it is still the right
/// one.
type Meanwhile = fn(&mut Tiers, &Arc<StoredResponse>);

const FORGOTTEN: [Meanwhile; 4] = [
    |tiers, _| drop(tiers.store.purge(digest(1))),
    |tiers, _| drop(tiers.store.purge_all()),
    |tiers, old| drop(tiers.store.purge_one(digest(1), old, None)),
    // it has left memory when it turns out to be outdated
    |tiers, old| {
        tiers.store.remove(digest(1));
        drop(tiers.store.purge_one(digest(1), old, None));
    },
];

#[test]
fn response_purged_since_its_selection_is_not_freshened() {
    for length in [1000, 2_500_000] {
        for forget in FORGOTTEN {
            // the choice was made before; the request goes out after, and asks anew
            for is_chosen_on_disk in [false, true] {
                let mut tiers = Tiers::new();
                tiers.put(1, 10, length);
                tiers.reopen();
                let (old, mut expected) = if is_chosen_on_disk {
                    tiers.choose_on_disk(1)
                } else {
                    let old = tiers.on_disk(1).expect("on disk");
                    let expected = tiers.store.expect_for(digest(1), &old);
                    (old, expected)
                };
                forget(&mut tiers, &old);
                assert!(!expected.renew(), "it is not to be asked about");
                assert!(!expected.freshen(NOW, &old, &freshened(&old), None));
                assert!(tiers.in_memory(1).is_none());
                tiers.reopen();
                assert!(tiers.on_disk(1).is_none());
            }
        }
    }
}

#[test]
fn response_replaced_since_its_selection_is_not_freshened() {
    for length in [1000, 2_500_000] {
        let mut tiers = Tiers::new();
        tiers.put(1, 10, length);
        tiers.reopen();
        let old = tiers.on_disk(1).expect("on disk");
        let mut expected = tiers.store.expect_for(digest(1), &old);
        tiers.put(1, 11, length);
        // it was not forgotten, and is asked about after the other came
        assert!(expected.renew());
        assert!(!expected.freshen(NOW, &old, &freshened(&old), None));
        tiers.settle();
        check(&tiers.in_memory(1).expect("the newer"), 11, &[(0, length)]);
        tiers.reopen();
        check(&tiers.on_disk(1).expect("on disk"), 11, &[(0, length)]);
    }
}

#[test]
fn response_evicted_from_memory_since_its_selection_is_freshened_on_disk() {
    for length in [1000, 2_500_000] {
        let mut tiers = Tiers::new();
        tiers.put(1, 10, length);
        tiers.reopen();
        let (old, mut expected) = tiers.choose_on_disk(1);
        // no room for anything: all leave
        tiers.store.set_budget(0);
        assert!(tiers.in_memory(1).is_none());
        assert!(expected.renew(), "it is still the right one");
        assert!(expected.freshen(NOW, &old, &freshened(&old), None));
        tiers.written += 1;
        tiers.reopen();
        let found = tiers.on_disk(1).expect("on disk");
        assert_eq!(found.facts.freshness_lifetime, DeltaSeconds(77));
        check(&found, 10, &[(0, length)]);
    }
}

/// Between choice and expectation there is a moment, and a purge may come just then.
#[test]
fn response_purged_before_its_revalidation_begins_is_not_freshened() {
    let mut tiers = Tiers::new();
    let old = tiers.put(1, 10, 1000);
    drop(tiers.store.purge(digest(1)));
    let mut expected = tiers.store.expect_for(digest(1), &old);
    assert!(!expected.renew());
    assert!(!expected.freshen(NOW, &old, &freshened(&old), None));
    tiers.reopen();
    assert!(tiers.on_disk(1).is_none());
}

/// A purge leaves no mark on a request for which there was no room among those in flight.
#[test]
fn response_purged_during_its_revalidation_is_outdated_though_the_in_flight_share_is_full() {
    let mut tiers = Tiers::new();
    let old = tiers.put(1, 10, 1000);
    let others: Vec<_> = (0..BUDGET / 100)
        .map(|_| tiers.store.expect(digest(2)))
        .collect();
    let mut expected = tiers.store.expect_for(digest(1), &old);
    let filled = tiers.store.memory_use().in_flight;
    assert!(filled < others.len() as u64, "there was room for {filled}");
    assert!(!expected.is_outdated() && expected.renew());
    drop(tiers.store.purge(digest(1)));
    assert!(expected.is_outdated() && !expected.renew());
    drop(others);
}

#[test]
fn response_completing_a_part_is_stored_only_if_the_part_was_not_purged() {
    for forget in FORGOTTEN {
        for rests in [true, false] {
            let mut tiers = Tiers::new();
            let old = tiers.put(1, 10, 1000);
            tiers.settle();
            let expected = tiers.store.expect_for(digest(1), &old);
            forget(&mut tiers, &old);
            assert!(expected.is_outdated() && tiers.in_memory(1).is_none());
            // one that is of use by itself is forgotten with its target only
            if !rests {
                expected.stand_alone();
            }
            let is_outdated = expected.is_outdated();
            let reservation = expected.begin(100, Some(1000)).expect("room");
            assert_eq!(reservation.is_outdated(), is_outdated);
            let body = StoredContent::whole(&content(11, 0..1000).into());
            let stored = reservation.commit(NOW, None, response(11, body));
            assert_eq!(stored.is_err(), is_outdated);
            assert_eq!(tiers.in_memory(1).is_some(), !is_outdated);
            assert!(is_outdated || !rests);
        }
    }
}
