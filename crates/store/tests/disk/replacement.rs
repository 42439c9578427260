//! Of two responses in one place only the most recent one is found (RFC 9111 §4), whichever of the
//! tiers took it.

use crate::support::{NOW, content, digest};
use crate::{BUDGET, LARGEST_IN_MEMORY, Tiers, block_on, check, response};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::{Digest, Now, Secret, Tick};
use weir_semantics::DeltaSeconds;
use weir_store::{
    DiskLookup, DiskLookupResult, LookupResult, MemoryStore, StoredContent, StoredResponse,
    VaryRule,
};

impl Tiers {
    /// Everything leaves memory, as if others needed the room.
    fn evict(&self) {
        self.store.set_budget(0);
        self.store.set_budget(BUDGET);
    }

    /// What a look-up on disk finds so many milliseconds later.
    fn on_disk_after(&self, key: u64, ms: u64) -> Option<Arc<StoredResponse>> {
        let lookup = DiskLookup::of(self.store.expect(digest(key))).expect("there is a disk");
        let now = Now {
            wall: NOW.wall,
            tick: NOW.tick.plus_ms(ms),
        };
        match block_on(lookup.run(now, &|_| Digest::default())) {
            DiskLookupResult::Found(response, _) => Some(response),
            DiskLookupResult::Missing(..) | DiskLookupResult::Unusable(_) => None,
        }
    }

    /// A response of 1000 bytes is received at the millisecond of its number, and stored.
    fn put_at(&self, number: u64, vary: Option<(VaryRule, Digest)>) {
        let reservation = self.store.expect(digest(1)).begin(100, Some(1000));
        let body = StoredContent::whole(&content(number, 0..1000).into());
        let mut received = response(number, StoredContent::default()).with_body(body);
        received.facts.response_tick = Tick(number);
        let now = Now {
            wall: NOW.wall,
            tick: Tick(number),
        };
        let stored = reservation
            .expect("room")
            .commit(now, vary, Arc::new(received));
        stored.expect("it is stored");
    }
}

/// Ends the other threads, also after a failure.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The time of receipt is rounded to a second on disk: the copy that is read again has other facts.
#[test]
fn outdated_response_read_again_from_disk_leaves_both_tiers() {
    let mut tiers = Tiers::new();
    let old = tiers.put(1, 10, 1000);
    tiers.settle();
    tiers.evict();
    let copy = tiers.on_disk_after(1, 300).expect("on disk");
    assert_ne!(copy.facts, old.facts);
    assert!(tiers.in_memory(1).is_some());
    let purge = tiers.store.purge_one(digest(1), &old, None);
    assert_eq!(purge.removed, 1);
    block_on(purge.durable()).expect("a disk");
    assert!(tiers.in_memory(1).is_none());
    tiers.reopen();
    assert!(tiers.on_disk(1).is_none());
}

#[test]
fn response_refused_by_the_disk_leaves_no_older_one_there() {
    let mut tiers = Tiers::new();
    let disk = Arc::clone(tiers.disk());
    let store = MemoryStore::new(
        BUDGET,
        EvictionKind::S3Fifo,
        1,
        LARGEST_IN_MEMORY,
        Secret([1; 16]),
    );
    // the disk takes up to 2000 bytes, memory more
    tiers.store = Arc::new(store.with_disk(disk, Rule::Always, 2000));
    tiers.put(1, 10, 1000);
    tiers.settle();
    tiers.put(1, 11, 3000);
    check(&tiers.in_memory(1).expect("the newer"), 11, &[(0, 3000)]);
    tiers.evict();
    assert!(tiers.on_disk(1).is_none(), "the older one came back");
}

/// It is the same representation; only what makes it less usable must not be lost.
#[test]
fn freshened_response_refused_by_the_disk_leaves_the_older_one_unless_that_is_more_usable() {
    for (lifetime, is_held) in [(7200, true), (1800, false)] {
        let mut tiers = Tiers::new();
        let old = tiers.put(1, 10, 1000);
        tiers.settle();
        let disk = Arc::clone(tiers.disk());
        disk.close();
        let expected = tiers.store.expect_for(digest(1), &old);
        let mut new = old.with_body(old.body.clone());
        new.facts.freshness_lifetime = DeltaSeconds(lifetime);
        assert!(expected.freshen(NOW, &old, &Arc::new(new), None));
        assert_eq!(disk.find(digest(1)).is_some(), is_held, "{lifetime}");
    }
}

/// Their heads are equal: the variant is found by what its request nominates.
#[test]
fn outdated_variant_leaves_another_one_with_the_same_head() {
    let rule = VaryRule(vec!["accept".into()].into());
    let tiers = Tiers::new();
    let vary = |number| Some((rule.clone(), Digest(number, number)));
    tiers.put_at(7, vary(1));
    let LookupResult::Found(first) = tiers.store.find(digest(1), &|_| Digest(1, 1)) else {
        panic!("the first variant is not there");
    };
    tiers.evict();
    tiers.put_at(7, vary(2));
    drop(tiers.store.purge_one(digest(1), &first, Some(Digest(1, 1))));
    assert!(tiers.in_variant(1, Digest(2, 2)).is_some());
}

/// Look-ups find the older response on disk while the newer one comes, and memory evicts that at
/// once.
#[test]
fn replaced_response_is_not_put_back_by_a_concurrent_disk_lookup() {
    const ROUNDS: u64 = 100;
    let rule = VaryRule(vec!["accept".into()].into());
    for varies in [false, true] {
        let tiers = Tiers::new();
        let selecting = Digest(3, 3);
        let vary = varies.then(|| (rule.clone(), selecting));
        let (store, ends) = (Arc::clone(&tiers.store), AtomicBool::new(false));
        let (store, ends) = (&store, &ends);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    while !ends.load(Ordering::SeqCst) {
                        let lookup = DiskLookup::of(store.expect(digest(1))).expect("a disk");
                        drop(block_on(lookup.run(NOW, &|_| selecting)));
                    }
                });
            }
            let _end = End(ends);
            for number in 0..ROUNDS {
                tiers.put_at(number, vary.clone());
                tiers.evict();
                for _ in 0..20 {
                    if let Some(found) = tiers.in_variant(1, selecting) {
                        check(&found, number, &[(0, 1000)]);
                    }
                    std::thread::yield_now();
                }
            }
        });
    }
}
