//! Loading content from disk into memory, while it is purged, replaced and evicted.

use super::{BUDGET, Tiers, block_on, check};
use crate::support::digest;
use std::sync::Arc;
use weir_store::{ContentLoad, NotLoaded, StoredResponse};

const KEY: u64 = 1;
const LENGTH: u64 = 300_000;

impl Tiers {
    /// A response that only the disk has, and that a look-up has just found there.
    fn found_on_disk(&mut self, number: u64, length: u64) -> Arc<StoredResponse> {
        self.put(KEY, number, length);
        self.reopen();
        let found = self.on_disk(KEY).expect("it is on disk");
        assert!(!found.body.is_in_memory());
        found
    }

    fn load(&self, response: &Arc<StoredResponse>) -> Result<ContentLoad, NotLoaded> {
        self.store.load(digest(KEY), response)
    }

    /// Stores responses until memory is full.
    fn fill(&mut self) {
        for key in 1000..1000 + 2 * BUDGET / 50_000 {
            self.put(key, key, 50_000);
        }
        self.settle();
    }

    /// Nothing that was loaded is in memory, nor in its account.
    fn check_nothing_is_left(&self) {
        let used = self.store.memory_use();
        assert_eq!((used.in_flight, used.lingering_bytes), (0, 0));
        assert!(used.used_bytes < 100_000, "{}", used.used_bytes);
        self.store.debug_check();
    }
}

fn refusal(load: Result<ContentLoad, NotLoaded>) -> Option<NotLoaded> {
    load.err()
}

#[test]
fn content_that_is_requested_while_there_is_room_is_in_memory_from_then_on() {
    let mut tiers = Tiers::new();
    let found = tiers.found_on_disk(10, LENGTH);
    let load = tiers.load(&found).expect("there is room");
    assert!(tiers.used_bytes() > LENGTH, "its room is taken");
    let loaded = block_on(load.run()).expect("it can be read");
    assert!(loaded.is_stored && loaded.response.body.is_in_memory());
    let stored = tiers.in_memory(KEY).expect("it is stored");
    assert!(Arc::ptr_eq(&stored, &loaded.response));
    check(&stored, 10, &[(0, LENGTH)]);
    assert_eq!(refusal(tiers.load(&stored)), Some(NotLoaded::NotWanted));
    drop((found, loaded, stored));
    tiers.store.debug_check();
    // on disk it is as before
    tiers.store.clear();
    tiers.check_nothing_is_left();
    check(&tiers.on_disk(KEY).expect("on disk"), 10, &[(0, LENGTH)]);
}

#[test]
fn full_memory_loads_content_at_its_second_request() {
    let mut tiers = Tiers::new();
    tiers.put(KEY, 10, LENGTH);
    tiers.reopen();
    tiers.fill();
    let found = tiers.on_disk(KEY).expect("it is on disk");
    assert_eq!(refusal(tiers.load(&found)), Some(NotLoaded::NotWanted));
    let again = tiers.in_memory(KEY).expect("its head");
    let load = tiers.load(&again).expect("it was requested again");
    assert!(block_on(load.run()).expect("it can be read").is_stored);
    assert!(tiers.used_bytes() <= BUDGET);
    check(&tiers.in_memory(KEY).expect("stored"), 10, &[(0, LENGTH)]);
    tiers.store.debug_check();
}

#[test]
fn content_in_the_page_cache_is_not_loaded() {
    let mut tiers = Tiers::new();
    let found = tiers.found_on_disk(10, LENGTH);
    // by its extents, which brings it there
    check(&found, 10, &[(0, LENGTH)]);
    assert!(!found.body.needs_read());
    assert_eq!(refusal(tiers.load(&found)), Some(NotLoaded::NotWanted));
}

#[test]
fn content_that_is_larger_than_memory_keeps_is_not_loaded() {
    for (largest, expected) in [(LENGTH, None), (LENGTH - 1, Some(NotLoaded::NotWanted))] {
        let mut tiers = Tiers::new();
        tiers.put(KEY, 10, LENGTH);
        tiers.reopen_with(largest);
        let found = tiers.on_disk(KEY).expect("it is on disk");
        assert!(found.body.needs_read());
        assert_eq!(refusal(tiers.load(&found)), expected, "{largest}");
    }
}

#[test]
fn loaded_content_is_not_stored_if_it_was_purged_replaced_or_dropped_meanwhile() {
    let check_end = |what: &str, change: &dyn Fn(&mut Tiers, &Arc<StoredResponse>)| {
        let mut tiers = Tiers::new();
        let found = tiers.found_on_disk(10, LENGTH);
        let load = tiers.load(&found).expect("there is room");
        change(&mut tiers, &found);
        let loaded = block_on(load.run()).expect("it can be read");
        assert!(!loaded.is_stored, "{what}");
        // the request that it was loaded for was there before
        check(&loaded.response, 10, &[(0, LENGTH)]);
        let held = tiers.store.memory_use().lingering_bytes;
        assert!(held >= LENGTH, "{what}: what is sent is in the account");
        drop((loaded, found));
        tiers
    };
    let tiers = check_end("purged", &|tiers, _| {
        let _ = tiers.store.purge(digest(KEY));
    });
    assert!(tiers.in_memory(KEY).is_none() && tiers.on_disk(KEY).is_none());
    tiers.check_nothing_is_left();
    let tiers = check_end("all purged", &|tiers, _| drop(tiers.store.purge_all()));
    assert!(tiers.in_memory(KEY).is_none() && tiers.on_disk(KEY).is_none());
    tiers.check_nothing_is_left();
    let tiers = check_end("dropped", &|tiers, found| {
        assert!(tiers.store.drop_one(digest(KEY), found));
    });
    assert!(tiers.in_memory(KEY).is_none());
    tiers.check_nothing_is_left();
    let tiers = check_end("replaced", &|tiers, _| drop(tiers.put(KEY, 11, 1000)));
    check(
        &tiers.in_memory(KEY).expect("the newer one"),
        11,
        &[(0, 1000)],
    );
    tiers.check_nothing_is_left();
    let tiers = check_end("evicted", &|tiers, _| tiers.store.set_budget(0));
    assert!(tiers.in_memory(KEY).is_none());
}

#[test]
fn content_is_loaded_by_one_request_at_a_time() {
    let mut tiers = Tiers::new();
    let found = tiers.found_on_disk(10, LENGTH);
    let load = tiers.load(&found).expect("there is room");
    assert_eq!(refusal(tiers.load(&found)), Some(NotLoaded::Loading));
    drop(load);
    tiers.check_nothing_is_left();
    assert!(tiers.load(&found).is_ok());
}

#[test]
fn loads_are_bounded_and_longer_content_is_not_loaded() {
    let mut tiers = Tiers::new();
    let length = BUDGET / 12;
    let keys = 1..20;
    for key in keys.clone() {
        tiers.put(key, key, length);
    }
    tiers.put(30, 30, BUDGET / 8);
    tiers.put(31, 31, 3_000_000);
    tiers.reopen();
    for key in [30, 31] {
        let found = tiers.on_disk(key).expect("it is on disk");
        let load = tiers.store.load(digest(key), &found);
        assert_eq!(refusal(load), Some(NotLoaded::NotWanted), "{key}");
    }
    let load = |key| {
        let found = tiers.on_disk(key).expect("it is on disk");
        tiers.store.load(digest(key), &found)
    };
    let loads: Vec<_> = keys.clone().map(load).collect();
    let begun = loads.iter().filter(|load| load.is_ok()).count();
    assert!((2..7).contains(&begun), "{begun}");
    let refused = loads.into_iter().filter_map(refusal);
    assert!(refused.eq(std::iter::repeat_n(NotLoaded::NoRoom, 19 - begun)));
    assert!(tiers.used_bytes() <= BUDGET);
    // they have given back all that they had
    assert_eq!(tiers.store.memory_use().in_flight, 0);
    assert!(load(7).is_ok());
}
