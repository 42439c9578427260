//! Look-ups on disk by several threads while the response they look for is purged.

use crate::support::{NOW, digest};
use crate::{Tiers, block_on};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_policy::Digest;
use weir_store::{DiskLookup, MemoryStore, Purge, StoredResponse};

/// Threads that look up, more than this machine may have processors: one is interrupted anywhere.
const THREADS: usize = 3;
const ROUNDS: u64 = 200;
const KEY: u64 = 1;
const LENGTH: u64 = 1000;

/// Ends the other threads, also after a failure.
struct EndRounds<'a>(&'a AtomicU64);

impl Drop for EndRounds<'_> {
    fn drop(&mut self) {
        self.0.store(ROUNDS, Ordering::SeqCst);
    }
}

/// Purges in each round what was stored in it; then neither tier may have it, whatever the look-ups
/// of other threads had found when it was purged.
fn check(purge: impl Fn(&MemoryStore, &Arc<StoredResponse>) -> Purge) {
    let mut tiers = Tiers::new();
    let round = AtomicU64::new(0);
    let store = Arc::clone(&tiers.store);
    let (round, store) = (&round, &store);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                while round.load(Ordering::SeqCst) < ROUNDS {
                    let lookup = DiskLookup::of(store.expect(digest(KEY))).expect("a disk");
                    drop(block_on(lookup.run(NOW, &|_| Digest::default())));
                }
            });
        }
        let _end = EndRounds(round);
        for number in 0..ROUNDS {
            let stored = tiers.put(KEY, number, LENGTH);
            tiers.settle();
            // the look-ups find it on disk alone
            store.remove(digest(KEY));
            let _ = tiers.on_disk(KEY);
            let purged = purge(store, &stored);
            for _ in 0..20 {
                assert!(tiers.in_memory(KEY).is_none(), "round {number}");
                std::thread::yield_now();
            }
            block_on(purged.durable()).expect("a disk");
            assert!(tiers.in_memory(KEY).is_none(), "round {number}");
        }
    });
}

#[test]
fn purge_leaves_nothing_that_a_concurrent_disk_lookup_found() {
    check(|store, _| store.purge(digest(KEY)));
}

#[test]
fn purge_of_everything_leaves_nothing_that_a_concurrent_disk_lookup_found() {
    check(|store, _| store.purge_all());
}

#[test]
fn purge_of_one_response_leaves_nothing_that_a_concurrent_disk_lookup_found() {
    check(|store, stored| store.purge_one(digest(KEY), stored, None));
}
