//! The store against a reference map: it may forget, it never returns wrong content.
//!
//! A [`stepped_store::SteppedStore`] does what chance says to a small store on simulated files,
//! stepping writer and loader by hand, and remembers what was stored and purged. Whatever the store
//! then gives must be a response that was stored under that key, to the byte; not purged, not
//! forgotten, not older than one that was seen since the store was opened.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod content;
mod damage;
mod eviction;
mod faults;
mod journal;
mod journal_copies;
mod stepped_store;

use stepped_store::{Nature, SteppedStore};

/// Seeds a test, all tests together at least 10 000; `WEIR_DISK_SEEDS` multiplies, `WEIR_DISK_SEED`
/// runs a single one.
const SEEDS: u64 = 2_600;

/// Operations a seed.
const OPERATIONS: u32 = 70;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs all seeds of a nature; hits and misses.
fn run(nature: Nature) -> (u64, u64) {
    let seeds = match number("WEIR_DISK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS * number("WEIR_DISK_SEEDS").unwrap_or(1),
    };
    let (mut hits, mut misses) = (0, 0);
    for seed in seeds {
        let mut store = SteppedStore::new(seed, nature);
        for _ in 0..OPERATIONS {
            store.act();
        }
        store.settle();
        hits += store.hits;
        misses += store.misses;
    }
    (hits, misses)
}

#[test]
fn store_returns_only_valid_responses_after_a_close_or_kill() {
    let (hits, misses) = run(Nature::default());
    // a store that forgets everything would pass all else
    assert!(hits > misses / 4, "{hits} hits, {misses} misses");
}

#[test]
fn store_returns_only_valid_responses_after_a_power_failure() {
    let (hits, misses) = run(Nature {
        crashes: true,
        ..Nature::default()
    });
    assert!(hits > misses / 2, "{hits} hits, {misses} misses");
}

#[test]
fn store_returns_only_valid_responses_on_a_failing_device() {
    let (hits, misses) = run(Nature {
        faults: true,
        ..Nature::default()
    });
    assert!(hits > misses / 2, "{hits} hits, {misses} misses");
}

#[test]
fn two_failing_devices_return_only_valid_responses_after_a_power_failure() {
    let (hits, misses) = run(Nature {
        crashes: true,
        faults: true,
        directories: 2,
    });
    assert!(hits > misses / 2, "{hits} hits, {misses} misses");
}
