//! One operation fails, for every operation and every way to fail; the machine stops, at every
//! operation.

use super::truth::digest;
use super::world::{KEYS, Nature, World};
use weir_disk::files::simulated::{Fault, Plan};

const SEED: u64 = 7;

/// The same course of things each time: large and small responses, purges, evictions, a clean end
/// and a new begin.
fn course(world: &mut World) {
    for round in 0..6 {
        for key in 0..KEYS {
            world.append(key);
        }
        for _ in 0..4 {
            world.act();
        }
        world.step();
        world.get(round);
        world.purge(round);
    }
    world.close();
    world.open();
    while world.load_one() {}
    world.get_all();
    world.append(3);
    world.step();
    world.purge(3);
}

fn operations(nature: Nature) -> u64 {
    let mut world = World::new(SEED, nature);
    world.plan(Plan::default());
    course(&mut world);
    world.files.operations()
}

fn fail_each(fault: Fault, lasting: bool) {
    let nature = Nature::default();
    let all = operations(nature);
    assert!(all > 50, "{all}");
    let (mut hits, mut misses) = (0, 0);
    for nth in 0..all {
        let mut world = World::new(SEED, nature);
        world.plan(Plan {
            nth: Some((nth, fault)),
            lasting,
            ..Plan::default()
        });
        course(&mut world);
        world.settle();
        // and it goes on as if nothing had been
        let before = world.disk().usage().stored;
        world.append(1);
        world.step();
        assert_eq!(
            world.disk().usage().stored,
            before + 1,
            "{fault:?} at {nth}"
        );
        assert!(world.disk().find(digest(1)).is_some(), "{fault:?} at {nth}");
        hits += world.hits;
        misses += world.misses;
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
        let mut world = World::new(SEED, nature);
        world.plan(Plan {
            nth: Some((nth, Fault::Stop)),
            ..Plan::default()
        });
        course(&mut world);
        world.end(true);
        world.open();
        while world.load_one() {}
        world.get_all();
        world.settle();
        hits += world.hits;
        misses += world.misses;
    }
    assert!(hits > misses, "{hits} hits, {misses} misses");
}
