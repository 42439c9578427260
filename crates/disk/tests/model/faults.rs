//! One operation fails, for every operation and every way to fail; the machine stops, at every
//! operation.

use super::content::digest;
use super::stepped_store::{KEYS, Nature, SteppedStore};
use weir_disk::files::simulated::{Fault, Plan};

const SEED: u64 = 7;

/// The same course of things each time: large and small responses, purges, evictions, a clean end
/// and a new begin.
fn course(store: &mut SteppedStore) {
    for round in 0..6 {
        for key in 0..KEYS {
            store.append(key);
        }
        for _ in 0..4 {
            store.act();
        }
        store.step();
        store.get(round);
        store.purge(round);
    }
    store.close();
    store.open();
    while store.load_one() {}
    store.get_all();
    store.append(3);
    store.step();
    store.purge(3);
}

fn operations(nature: Nature) -> u64 {
    let mut store = SteppedStore::new(SEED, nature);
    store.plan(Plan::default());
    course(&mut store);
    store.files.operations()
}

fn fail_each(fault: Fault, lasting: bool) {
    let nature = Nature::default();
    let all = operations(nature);
    assert!(all > 50, "{all}");
    let (mut hits, mut misses) = (0, 0);
    for nth in 0..all {
        let mut store = SteppedStore::new(SEED, nature);
        store.plan(Plan {
            nth: Some((nth, fault)),
            lasting,
            ..Plan::default()
        });
        course(&mut store);
        store.settle();
        // and it goes on as if nothing had been
        let before = store.disk().usage().stored;
        store.append(1);
        store.step();
        assert_eq!(
            store.disk().usage().stored,
            before + 1,
            "{fault:?} at {nth}"
        );
        assert!(store.disk().find(digest(1)).is_some(), "{fault:?} at {nth}");
        hits += store.hits;
        misses += store.misses;
    }
    // the same responses are asked for in each course; a store that forgets everything would pass
    // all else
    assert!(hits > misses, "{fault:?}: {hits} hits, {misses} misses");
}

#[test]
fn single_device_error_leaves_the_store_correct_and_usable() {
    fail_each(Fault::Device, false);
}

#[test]
fn single_no_space_error_leaves_the_store_correct_and_usable() {
    fail_each(Fault::NoSpace, false);
}

#[test]
fn lasting_no_space_error_leaves_the_store_correct_and_usable_afterwards() {
    fail_each(Fault::NoSpace, true);
}

#[test]
fn lasting_device_error_leaves_the_store_correct_and_usable_afterwards() {
    fail_each(Fault::Device, true);
}

#[test]
fn short_transfer_leaves_the_store_correct_and_usable() {
    fail_each(Fault::Short, false);
}

#[test]
fn torn_write_leaves_the_store_correct_and_usable() {
    fail_each(Fault::Torn, false);
}

#[test]
fn interrupted_call_leaves_the_store_correct_and_usable() {
    fail_each(Fault::Interrupted, false);
}

#[test]
fn store_returns_only_valid_responses_after_a_crash_at_any_operation() {
    let nature = Nature {
        crashes: true,
        ..Nature::default()
    };
    let (mut hits, mut misses) = (0, 0);
    for nth in 0..operations(nature) {
        let mut store = SteppedStore::new(SEED, nature);
        store.plan(Plan {
            nth: Some((nth, Fault::Stop)),
            ..Plan::default()
        });
        course(&mut store);
        store.end(true);
        store.open();
        while store.load_one() {}
        store.get_all();
        store.settle();
        hits += store.hits;
        misses += store.misses;
    }
    assert!(hits > misses, "{hits} hits, {misses} misses");
}
