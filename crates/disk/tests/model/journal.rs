//! The purge journal cannot be written, or not all of it comes through a power failure.

use super::content::digest;
use super::stepped_store::{KEYS, Nature, SteppedStore};
use std::path::{Path, PathBuf};
use weir_disk::files::Files;
use weir_disk::files::simulated::{Fault, Plan};
use weir_disk::format::{
    JOURNAL_ENTRY_BYTES, JOURNAL_FILE, JOURNAL_MIRROR_FILE, PurgeScope, TRAILER_BYTES,
    segment_file_name,
};

impl SteppedStore {
    /// Both copies of the first directory's purge journal.
    pub(super) fn journal_paths() -> [PathBuf; 2] {
        [JOURNAL_FILE, JOURNAL_MIRROR_FILE].map(|name| Self::directory_path(0).join(name))
    }

    /// Changes both copies in the same way.
    pub(super) fn damage_journal(&self, change: impl Fn(&mut Vec<u8>)) {
        for path in Self::journal_paths() {
            self.files.damage(&path, &change).unwrap();
        }
    }
}

/// A store with a response under each key, and nothing that waits.
pub(super) fn store(seed: u64, nature: Nature) -> SteppedStore {
    let mut store = SteppedStore::new(seed, nature);
    for key in 0..KEYS {
        store.append(key);
        store.step();
    }
    store
}

pub(super) fn stored_keys(store: &SteppedStore) -> Vec<u64> {
    let is_stored = |key: &u64| store.disk().find(digest(*key)).is_some();
    (0..KEYS).filter(is_stored).collect()
}

fn others(key: u64) -> Vec<u64> {
    (0..KEYS).filter(|other| *other != key).collect()
}

#[test]
fn purge_survives_a_failed_journal_write_without_losing_other_responses() {
    for fault in [Fault::Device, Fault::Torn, Fault::NoSpace, Fault::Short] {
        // both copies are written, then synced
        for nth in 0..4 {
            let mut store = store(1, Nature::default());
            store.plan(Plan {
                nth: Some((nth, fault)),
                ..Plan::default()
            });
            store.purge(3);
            assert_eq!(store.disk().usage().purged, 1, "{fault:?} at {nth}");
            store.end(false);
            store.open();
            while store.load_one() {}
            assert_eq!(stored_keys(&store), others(3), "{fault:?} at {nth}");
            store.get_all();
        }
    }
}

#[test]
fn purge_on_a_full_device_frees_segments_and_survives_a_restart() {
    let mut store = SteppedStore::new(2, Nature::default());
    // segments enough to give some up
    for round in 0..40 {
        store.append(round % KEYS);
        store.step();
    }
    let before = store.disk().usage();
    let used = store.files.space(Path::new("/")).unwrap();
    store.files.limit_space(used.total - used.free);
    store.is_unlucky = true;
    for key in 0..KEYS {
        store.purge(key);
    }
    let after = store.disk().usage();
    assert_eq!(after.purged, KEYS);
    assert!(after.segments < before.segments, "{after:?}");
    store.end(false);
    store.files.limit_space(u64::MAX);
    store.open();
    while store.load_one() {}
    assert_eq!(stored_keys(&store), [] as [u64; 0]);
}

#[test]
fn full_file_system_is_said_while_older_responses_leave_for_new_ones() {
    let mut store = SteppedStore::new(2, Nature::default());
    let full = |store: &SteppedStore| {
        let notices = store.notices.lock().unwrap();
        let notices = notices.iter().map(ToString::to_string);
        notices.filter(|it| it.contains("is full")).count()
    };
    let fill = |store: &mut SteppedStore| {
        for round in 0..40 {
            store.append(round % KEYS);
            store.step();
        }
    };
    fill(&mut store);
    assert_eq!(full(&store), 0, "there was room");
    let used = store.files.space(Path::new("/")).unwrap();
    store.files.limit_space(used.total - used.free);
    store.is_unlucky = true;
    let before = store.disk().usage();
    fill(&mut store);
    let after = store.disk().usage();
    assert!(after.stored > before.stored, "{after:?}");
    assert!(full(&store) > 0);
}

/// Entries that were written and not synced when the power failed may be there in any choice, with
/// zeros between. They were not reported as durable; but from outside they look like some that
/// were, and are lost: the store is emptied.
#[test]
fn durable_purge_holds_when_a_power_failure_tears_later_journal_entries() {
    let nature = Nature {
        crashes: true,
        ..Nature::default()
    };
    let (mut kept, mut emptied) = (0, 0);
    // the machine stops when one copy is written, or both
    for (seed, nth) in (0..200).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let mut store = store(seed, nature);
        store.purge(0);
        // entries in two sectors, that the power failure meets before they are synced
        for key in 1..KEYS {
            drop(store.disk().purge(digest(key)));
        }
        store.plan(Plan {
            nth: Some((nth, Fault::Stop)),
            ..Plan::default()
        });
        store.step();
        store.end(true);
        store.notices.lock().unwrap().clear();
        store.open();
        while store.load_one() {}
        store.step();
        store.get_all();
        let is_damaged = {
            let notices = store.notices.lock().unwrap();
            notices
                .iter()
                .any(|it| it.to_string().contains("is dropped"))
        };
        let stored = stored_keys(&store);
        assert!(!stored.contains(&0), "seed {seed}: {stored:?}");
        if is_damaged {
            assert_eq!(stored, [] as [u64; 0], "seed {seed}");
            emptied += 1;
        } else {
            kept += u64::from(!stored.is_empty());
        }
        store.settle();
    }
    // both were met
    assert!(kept > 0 && emptied > 0, "{kept} kept, {emptied} emptied");
}

#[test]
fn journal_entry_zeroed_in_both_copies_empties_the_store() {
    for entry in 0..5 {
        let mut store = store(3, Nature::default());
        for key in 0..4 {
            store.purge(key);
        }
        store.end(false);
        let at = entry * JOURNAL_ENTRY_BYTES;
        store.damage_journal(|bytes| bytes[at..at + JOURNAL_ENTRY_BYTES].fill(0));
        store.is_unlucky = true;
        store.open();
        while store.load_one() {}
        store.step();
        assert_eq!(stored_keys(&store), [] as [u64; 0], "entry {entry}");
        store.append(1);
        store.step();
        assert_eq!(stored_keys(&store), [1]);
    }
}

/// A device that says that it has written and has not: noticed once a segment tells of the purge,
/// at the next sync.
#[test]
fn journal_entry_lost_by_the_device_empties_the_store() {
    for seed in 0..20 {
        let mut store = store(seed, Nature::default());
        store.purge(3);
        store.let_pass(2_000);
        store.step();
        store.end(false);
        store.damage_journal(|bytes| bytes.truncate(bytes.len() - JOURNAL_ENTRY_BYTES));
        store.is_unlucky = true;
        store.open();
        while store.load_one() {}
        store.step();
        assert_eq!(stored_keys(&store), [] as [u64; 0], "seed {seed}");
    }
}

/// Stores a response and a newer one of the same key, and damages the newer one and all that tells
/// of it.
fn with_newer_one_damaged(between: impl Fn(&mut SteppedStore)) -> SteppedStore {
    let mut store = SteppedStore::new(5, Nature::default());
    store.append(7);
    store.step();
    between(&mut store);
    store.append(7);
    store.step();
    let newer = store.disk().find(digest(7)).unwrap().record();
    store.close();
    let (segment, offset) = newer.place();
    let path = SteppedStore::directory_path(0).join(segment_file_name(segment));
    let at = usize::try_from(offset).unwrap();
    let damage = |bytes: &mut Vec<u8>| {
        bytes[at + 8] ^= 1;
        // without the trailer there is no table: what is there is found by its own headers
        let end = bytes.len() - TRAILER_BYTES;
        bytes[end..].fill(0);
    };
    store.files.damage(&path, damage).unwrap();
    store.is_unlucky = true;
    store.open();
    while store.load_one() {}
    store
}

#[test]
fn superseded_response_is_restored_after_damage_unless_purged_in_between() {
    let mut store = with_newer_one_damaged(|_| {});
    // it was good once; the caller judges its age
    assert_eq!(stored_keys(&store), [7]);
    store.get(7);
    assert_eq!(store.hits, 1);
    for what in [PurgeScope::Key(digest(7)), PurgeScope::All] {
        let mut store = with_newer_one_damaged(|store| match what {
            PurgeScope::Key(_) => store.purge(7),
            PurgeScope::All | PurgeScope::Floor => store.purge_all(),
        });
        assert_eq!(stored_keys(&store), [] as [u64; 0], "{what:?}");
        store.get(7);
        assert_eq!(store.hits, 0);
    }
}
