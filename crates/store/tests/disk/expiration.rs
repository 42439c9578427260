//! Another time for which stored responses are fresh, in memory and on disk.

use crate::support::{NOW, digest};
use crate::{BUDGET, Tiers, block_on, check, response};
use std::sync::Arc;
use weir_policy::{Digest, StoredFacts};
use weir_semantics::DeltaSeconds;
use weir_store::{DiskLookup, DiskLookupResult, StoredContent, StoredVariant, VaryRule};

const NEW: DeltaSeconds = DeltaSeconds(12_345);

fn lifetime(facts: &StoredFacts) -> StoredFacts {
    StoredFacts {
        freshness_lifetime: NEW,
        ..*facts
    }
}

impl Tiers {
    /// How many responses got the new time.
    fn restate(&mut self, found: Option<(StoredVariant, weir_store::ExpectedResponse)>) -> usize {
        let purge = self
            .store
            .restate(NOW, digest(1), found, "http://a/", &lifetime);
        let count = purge.removed;
        self.written += count as u64;
        block_on(purge.durable()).expect("a disk");
        count
    }

    fn leave_memory(&self) {
        self.store.set_budget(0);
        self.store.set_budget(BUDGET);
    }

    /// A response to a request whose nominated field has this digest.
    fn put_variant(&mut self, number: u64, selecting: Digest) {
        let rule = VaryRule(Arc::new(["accept".into()]));
        let vary = Some((rule, selecting));
        let expected = self.store.expect(digest(1)).varying(vary.as_ref());
        let reservation = expected.begin(100, Some(0)).expect("room");
        let response = response(number, StoredContent::default());
        reservation.commit(NOW, vary, response).expect("stored");
        // it, and the rules
        self.written += 2;
    }

    fn variant_on_disk(&self, selecting: Digest) -> bool {
        let lookup = DiskLookup::of(self.store.expect(digest(1))).expect("a disk");
        let found = block_on(lookup.run(NOW, &|_| selecting));
        matches!(found, DiskLookupResult::Found(response, _) if response.facts.freshness_lifetime == NEW)
    }
}

#[test]
fn restated_response_has_its_new_time_in_memory_on_disk_and_after_a_restart() {
    for length in [1000, 3 << 20] {
        let mut tiers = Tiers::new();
        tiers.put(1, 10, length);
        tiers.settle();
        assert_eq!(tiers.restate(None), 1);
        let here = tiers.in_memory(1).expect("in memory");
        assert_eq!(here.facts.freshness_lifetime, NEW);
        check(&here, 10, &[(0, length)]);
        drop(here);
        tiers.reopen();
        let found = tiers.on_disk(1).expect("on disk");
        assert_eq!(found.facts.freshness_lifetime, NEW, "{length}");
        check(&found, 10, &[(0, length)]);
    }
}

#[test]
fn response_that_only_the_disk_has_is_restated_there() {
    let mut tiers = Tiers::new();
    tiers.put(1, 10, 1000);
    tiers.settle();
    tiers.leave_memory();
    let (found, expected) = tiers.choose_on_disk(1);
    tiers.leave_memory();
    assert_eq!(tiers.restate(Some(((None, found), expected))), 1);
    tiers.reopen();
    let found = tiers.on_disk(1).expect("on disk");
    assert_eq!(found.facts.freshness_lifetime, NEW);
}

#[test]
fn response_that_was_purged_since_it_was_found_is_not_restated() {
    let mut tiers = Tiers::new();
    tiers.put(1, 10, 1000);
    tiers.settle();
    tiers.leave_memory();
    let (found, expected) = tiers.choose_on_disk(1);
    block_on(tiers.store.purge(digest(1)).durable()).expect("a disk");
    assert_eq!(tiers.restate(Some(((None, found), expected))), 0);
    assert!(tiers.in_memory(1).is_none() && tiers.on_disk(1).is_none());
}

#[test]
fn response_that_was_on_its_way_when_others_were_restated_is_not_stored() {
    let mut tiers = Tiers::new();
    let mut late = tiers.begin(1, 11, 1000, (0, 1000), None);
    tiers.put(1, 10, 1000);
    assert_eq!(tiers.restate(None), 1);
    late.push_to(1000);
    assert!(tiers.commit(late).is_err());
    tiers.settle();
    check(&tiers.in_memory(1).expect("in memory"), 10, &[(0, 1000)]);
}

#[test]
fn variants_in_memory_are_restated_and_those_that_only_the_disk_has_are_purged() {
    let mut tiers = Tiers::new();
    let selecting = [Digest(1, 1), Digest(2, 2), Digest(3, 3)];
    tiers.put_variant(11, selecting[0]);
    tiers.settle();
    tiers.leave_memory();
    tiers.put_variant(12, selecting[1]);
    tiers.put_variant(13, selecting[2]);
    assert_eq!(tiers.restate(None), 2);
    tiers.settle();
    for selecting in &selecting[1..] {
        let here = tiers.in_variant(1, *selecting).expect("in memory");
        assert_eq!(here.facts.freshness_lifetime, NEW);
    }
    tiers.leave_memory();
    let found = selecting.map(|selecting| tiers.variant_on_disk(selecting));
    assert_eq!(found, [false, true, true]);
}
