//! Bytes change behind the store's back.

use super::stepped_store::{KEYS, Nature, SteppedStore};
use std::path::PathBuf;
use weir_disk::files::simulated::SECTOR_BYTES;
use weir_disk::files::{Access, Files};
use weir_disk::format::SUPERBLOCK_FILE;

/// A store of a few segments, closed or killed.
fn store(seed: u64, is_sealed: bool) -> SteppedStore {
    let mut store = SteppedStore::new(seed, Nature::default());
    for round in 0..3 {
        for key in 0..KEYS {
            store.append(key);
            store.act();
        }
        store.step();
        store.purge(round);
    }
    store.step();
    if is_sealed {
        store.close();
    } else {
        store.end(false);
    }
    store.is_unlucky = true;
    store
}

fn segments(store: &SteppedStore) -> Vec<PathBuf> {
    let paths = store.files.paths().into_iter();
    let segments = paths.filter(|path| path.extension().is_some_and(|it| it == "seg"));
    segments.collect()
}

/// Opens the store, reads everything twice, stores more, and ends it again.
fn use_it(store: &mut SteppedStore) {
    store.open();
    while store.load_one() {}
    store.get_all();
    store.append(5);
    store.step();
    store.get_all();
    store.end(false);
}

fn with_damage(seed: u64, is_sealed: bool, damage: impl Fn(&mut SteppedStore)) -> SteppedStore {
    let mut store = store(seed, is_sealed);
    damage(&mut store);
    use_it(&mut store);
    store
}

#[test]
fn segment_with_a_flipped_bit_returns_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(1, is_sealed);
        for path in segments(&example) {
            let len = example.files.content(&path).unwrap().len();
            // an odd step meets headers, lists, metas, contents, paddings, table and trailer alike
            for at in (0..len).step_by(97) {
                with_damage(1, is_sealed, |store| {
                    let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1 << (at % 8);
                    store.files.damage(&path, flip).unwrap();
                });
            }
        }
    }
}

#[test]
fn damaged_responses_are_counted_and_readable_once_stored_again() {
    let mut store = store(2, true);
    for path in segments(&store) {
        let flip = |bytes: &mut Vec<u8>| {
            let content = bytes.len() - 3000;
            for byte in &mut bytes[4096..content] {
                *byte ^= 0x10;
            }
        };
        store.files.damage(&path, flip).unwrap();
    }
    store.open();
    while store.load_one() {}
    store.get_all();
    let damaged = store.disk().usage().damaged;
    assert!(damaged > 0);
    assert!(!store.notices.lock().unwrap().is_empty());
    for key in 0..KEYS {
        store.append(key);
    }
    store.step();
    let hits = store.hits;
    store.get_all();
    assert_eq!(store.hits, hits + KEYS);
    store.get_all();
}

#[test]
fn segment_cut_at_a_sector_returns_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(3, is_sealed);
        for path in segments(&example) {
            let len = example.files.content(&path).unwrap().len();
            for len in (0..len).step_by(SECTOR_BYTES) {
                with_damage(3, is_sealed, |store| {
                    store
                        .files
                        .damage(&path, |bytes| bytes.truncate(len))
                        .unwrap();
                });
            }
        }
    }
}

#[test]
fn segment_with_zeroed_pages_returns_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(4, is_sealed);
        for path in segments(&example) {
            let len = example.files.content(&path).unwrap().len();
            for at in (0..len).step_by(4096) {
                for until in [at + 4096, len] {
                    with_damage(4, is_sealed, |store| {
                        let zero = |bytes: &mut Vec<u8>| {
                            let until = until.min(bytes.len());
                            bytes[at..until].fill(0);
                        };
                        store.files.damage(&path, zero).unwrap();
                    });
                }
            }
        }
    }
}

#[test]
fn segments_with_swapped_pages_or_files_return_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(5, is_sealed);
        let paths = segments(&example);
        let first = example.files.content(&paths[0]).unwrap();
        let pages = first.len() / 4096;
        for (one, other) in (0..pages).flat_map(|one| (0..one).map(move |other| (one, other))) {
            with_damage(5, is_sealed, |store| {
                let swap = |bytes: &mut Vec<u8>| {
                    for at in 0..4096 {
                        bytes.swap(one * 4096 + at, other * 4096 + at);
                    }
                };
                store.files.damage(&paths[0], swap).unwrap();
            });
        }
        with_damage(5, is_sealed, |store| {
            for (path, other) in paths.iter().zip(paths.iter().rev()) {
                let content = example.files.content(other).unwrap();
                store.files.damage(path, |bytes| *bytes = content).unwrap();
            }
        });
    }
}

#[test]
fn purged_response_stays_purged_when_an_older_segment_copy_returns() {
    for seed in 0..40 {
        let mut store = store(seed, false);
        let old: Vec<(PathBuf, Vec<u8>)> = segments(&store)
            .into_iter()
            .map(|path| (path.clone(), store.files.content(&path).unwrap()))
            .collect();
        store.open();
        while store.load_one() {}
        for key in 0..KEYS {
            store.append(key);
            store.step();
            if key % 2 == 0 {
                store.purge(key);
            }
        }
        store.end(false);
        for (path, content) in old {
            // a lost write: as if the device had never got it; segments that left do not come back
            // by themselves
            drop(store.files.damage(&path, |bytes| *bytes = content));
        }
        use_it(&mut store);
    }
}

#[test]
fn purged_response_stays_purged_when_a_detached_directory_returns() {
    for seed in 0..40 {
        let mut store = SteppedStore::new(
            seed,
            Nature {
                directories: 2,
                ..Nature::default()
            },
        );
        for key in 0..KEYS {
            store.append(key);
            store.act();
        }
        store.step();
        store.close();
        let away = SteppedStore::directory_path(1);
        let old: Vec<(PathBuf, Vec<u8>)> = store
            .files
            .paths()
            .into_iter()
            .filter(|path| path.starts_with(&away))
            .map(|path| (path.clone(), store.files.content(&path).unwrap()))
            .collect();
        store.open();
        while store.load_one() {}
        for round in 0..30 {
            store.purge(round % KEYS);
            store.act();
        }
        store.end(false);
        store.is_unlucky = true;
        for path in store.files.paths() {
            if path.starts_with(&away) {
                store.files.unlink(&path).unwrap();
            }
        }
        for (path, content) in old {
            store.files.open(&path, Access::Create).unwrap();
            store.files.damage(&path, |bytes| *bytes = content).unwrap();
        }
        use_it(&mut store);
    }
}

#[test]
fn scrub_removes_damaged_responses_and_keeps_intact_ones() {
    let mut store = store(8, true);
    let path = segments(&store).pop().unwrap();
    store.open();
    while store.load_one() {}
    let entries = store.disk().usage().entries;
    let rested_bytes = store.scrub();
    let used = store.disk().usage();
    assert_eq!((used.entries, used.scrubbed_bytes), (entries, rested_bytes));
    assert!(rested_bytes > 0);
    let zero = |bytes: &mut Vec<u8>| bytes[4096..].fill(0);
    store.files.damage(&path, zero).unwrap();
    // what is damaged takes as long as what is good
    let rested_bytes = rested_bytes + store.scrub();
    let used = store.disk().usage();
    assert!(used.entries < entries && used.damaged > 0, "{used:?}");
    assert_eq!(used.scrubbed_bytes, rested_bytes);
    store.disk().check().unwrap();
    store.get_all();
    assert_eq!(store.disk().usage().damaged, used.damaged);
}

#[test]
fn truncation_of_both_journal_copies_is_reported() {
    for seed in 0..20 {
        let len = SteppedStore::journal_paths().map(|path| {
            let example = store(seed, true);
            example.files.content(&path).unwrap().len()
        });
        assert_eq!(len[0], len[1]);
        for len in (0..len[0]).step_by(32) {
            let store = with_damage(seed, true, |store| {
                store.damage_journal(|bytes| bytes.truncate(len));
            });
            let notices = store.notices.lock().unwrap();
            assert!(
                notices.iter().any(|it| it.to_string().contains("journal")),
                "{len}: {notices:?}"
            );
        }
    }
}

#[test]
fn store_with_a_damaged_superblock_returns_only_valid_responses() {
    let path = SteppedStore::directory_path(0).join(SUPERBLOCK_FILE);
    let len = store(6, true).files.content(&path).unwrap().len();
    for at in (0..len).step_by(61) {
        with_damage(6, true, |store| {
            store.files.damage(&path, |bytes| bytes[at] ^= 4).unwrap();
        });
    }
}

#[test]
fn same_damage_to_both_journal_copies_restores_no_purged_response() {
    let [path, _] = SteppedStore::journal_paths();
    let len = store(6, true).files.content(&path).unwrap().len();
    for at in 0..len {
        with_damage(6, true, |store| {
            store.damage_journal(|bytes| bytes[at] ^= 4)
        });
    }
}
