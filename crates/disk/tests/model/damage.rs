//! Bytes change behind the store's back.

use super::world::{KEYS, Nature, World};
use std::path::PathBuf;
use weir_disk::files::simulated::SECTOR_BYTES;
use weir_disk::files::{Access, Files};
use weir_disk::format::SUPERBLOCK_FILE;

/// A store of a few segments, closed or killed.
fn store(seed: u64, is_sealed: bool) -> World {
    let mut world = World::new(seed, Nature::default());
    for round in 0..3 {
        for key in 0..KEYS {
            world.append(key);
            world.act();
        }
        world.step();
        world.purge(round);
    }
    world.step();
    if is_sealed {
        world.close();
    } else {
        world.end(false);
    }
    world.is_unlucky = true;
    world
}

fn segments(world: &World) -> Vec<PathBuf> {
    let paths = world.files.paths().into_iter();
    let segments = paths.filter(|path| path.extension().is_some_and(|it| it == "seg"));
    segments.collect()
}

/// Opens the store, reads everything twice, stores more, and ends it again.
fn use_it(world: &mut World) {
    world.open();
    while world.load_one() {}
    world.get_all();
    world.append(5);
    world.step();
    world.get_all();
    world.end(false);
}

fn with_damage(seed: u64, is_sealed: bool, damage: impl Fn(&mut World)) -> World {
    let mut world = store(seed, is_sealed);
    damage(&mut world);
    use_it(&mut world);
    world
}

#[test]
fn segment_with_a_flipped_bit_returns_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(1, is_sealed);
        for path in segments(&example) {
            let len = example.files.content(&path).unwrap().len();
            // an odd step meets headers, lists, metas, contents, paddings, table and trailer alike
            for at in (0..len).step_by(97) {
                with_damage(1, is_sealed, |world| {
                    let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1 << (at % 8);
                    world.files.damage(&path, flip).unwrap();
                });
            }
        }
    }
}

#[test]
fn damaged_responses_are_counted_and_readable_once_stored_again() {
    let mut world = store(2, true);
    for path in segments(&world) {
        let flip = |bytes: &mut Vec<u8>| {
            let content = bytes.len() - 3000;
            for byte in &mut bytes[4096..content] {
                *byte ^= 0x10;
            }
        };
        world.files.damage(&path, flip).unwrap();
    }
    world.open();
    while world.load_one() {}
    world.get_all();
    let damaged = world.disk().usage().damaged;
    assert!(damaged > 0);
    assert!(!world.notices.lock().unwrap().is_empty());
    for key in 0..KEYS {
        world.append(key);
    }
    world.step();
    let hits = world.hits;
    world.get_all();
    assert_eq!(world.hits, hits + KEYS);
    world.get_all();
}

#[test]
fn segment_cut_at_a_sector_returns_only_valid_responses() {
    for is_sealed in [true, false] {
        let example = store(3, is_sealed);
        for path in segments(&example) {
            let len = example.files.content(&path).unwrap().len();
            for len in (0..len).step_by(SECTOR_BYTES) {
                with_damage(3, is_sealed, |world| {
                    world
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
                    with_damage(4, is_sealed, |world| {
                        let zero = |bytes: &mut Vec<u8>| {
                            let until = until.min(bytes.len());
                            bytes[at..until].fill(0);
                        };
                        world.files.damage(&path, zero).unwrap();
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
            with_damage(5, is_sealed, |world| {
                let swap = |bytes: &mut Vec<u8>| {
                    for at in 0..4096 {
                        bytes.swap(one * 4096 + at, other * 4096 + at);
                    }
                };
                world.files.damage(&paths[0], swap).unwrap();
            });
        }
        with_damage(5, is_sealed, |world| {
            for (path, other) in paths.iter().zip(paths.iter().rev()) {
                let content = example.files.content(other).unwrap();
                world.files.damage(path, |bytes| *bytes = content).unwrap();
            }
        });
    }
}

#[test]
fn purged_response_stays_purged_when_an_older_segment_copy_returns() {
    for seed in 0..40 {
        let mut world = store(seed, false);
        let old: Vec<(PathBuf, Vec<u8>)> = segments(&world)
            .into_iter()
            .map(|path| (path.clone(), world.files.content(&path).unwrap()))
            .collect();
        world.open();
        while world.load_one() {}
        for key in 0..KEYS {
            world.append(key);
            world.step();
            if key % 2 == 0 {
                world.purge(key);
            }
        }
        world.end(false);
        for (path, content) in old {
            // a lost write: as if the device had never got it; segments that left do not come back
            // by themselves
            drop(world.files.damage(&path, |bytes| *bytes = content));
        }
        use_it(&mut world);
    }
}

#[test]
fn purged_response_stays_purged_when_a_detached_directory_returns() {
    for seed in 0..40 {
        let mut world = World::new(
            seed,
            Nature {
                directories: 2,
                ..Nature::default()
            },
        );
        for key in 0..KEYS {
            world.append(key);
            world.act();
        }
        world.step();
        world.close();
        let away = World::directory_path(1);
        let old: Vec<(PathBuf, Vec<u8>)> = world
            .files
            .paths()
            .into_iter()
            .filter(|path| path.starts_with(&away))
            .map(|path| (path.clone(), world.files.content(&path).unwrap()))
            .collect();
        world.open();
        while world.load_one() {}
        for round in 0..30 {
            world.purge(round % KEYS);
            world.act();
        }
        world.end(false);
        world.is_unlucky = true;
        for path in world.files.paths() {
            if path.starts_with(&away) {
                world.files.unlink(&path).unwrap();
            }
        }
        for (path, content) in old {
            world.files.open(&path, Access::Create).unwrap();
            world.files.damage(&path, |bytes| *bytes = content).unwrap();
        }
        use_it(&mut world);
    }
}

#[test]
fn scrub_removes_damaged_responses_and_keeps_intact_ones() {
    let mut world = store(8, true);
    let path = segments(&world).pop().unwrap();
    world.open();
    while world.load_one() {}
    let entries = world.disk().usage().entries;
    let rested_bytes = world.scrub();
    let used = world.disk().usage();
    assert_eq!((used.entries, used.scrubbed_bytes), (entries, rested_bytes));
    assert!(rested_bytes > 0);
    let zero = |bytes: &mut Vec<u8>| bytes[4096..].fill(0);
    world.files.damage(&path, zero).unwrap();
    // what is damaged takes as long as what is good
    let rested_bytes = rested_bytes + world.scrub();
    let used = world.disk().usage();
    assert!(used.entries < entries && used.damaged > 0, "{used:?}");
    assert_eq!(used.scrubbed_bytes, rested_bytes);
    world.disk().check().unwrap();
    world.get_all();
    assert_eq!(world.disk().usage().damaged, used.damaged);
}

#[test]
fn truncation_of_both_journal_copies_is_reported() {
    for seed in 0..20 {
        let len = World::journal_paths().map(|path| {
            let example = store(seed, true);
            example.files.content(&path).unwrap().len()
        });
        assert_eq!(len[0], len[1]);
        for len in (0..len[0]).step_by(32) {
            let world = with_damage(seed, true, |world| {
                world.damage_journal(|bytes| bytes.truncate(len));
            });
            let notices = world.notices.lock().unwrap();
            assert!(
                notices.iter().any(|it| it.to_string().contains("journal")),
                "{len}: {notices:?}"
            );
        }
    }
}

#[test]
fn store_with_a_damaged_superblock_returns_only_valid_responses() {
    let path = World::directory_path(0).join(SUPERBLOCK_FILE);
    let len = store(6, true).files.content(&path).unwrap().len();
    for at in (0..len).step_by(61) {
        with_damage(6, true, |world| {
            world.files.damage(&path, |bytes| bytes[at] ^= 4).unwrap();
        });
    }
}

#[test]
fn same_damage_to_both_journal_copies_restores_no_purged_response() {
    let [path, _] = World::journal_paths();
    let len = store(6, true).files.content(&path).unwrap().len();
    for at in 0..len {
        with_damage(6, true, |world| {
            world.damage_journal(|bytes| bytes[at] ^= 4)
        });
    }
}
