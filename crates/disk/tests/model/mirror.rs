//! The purge journal is there twice: what one copy loses costs nothing.

use super::journal::{store, stored_keys};
use super::world::{KEYS, Nature, World};
use std::path::Path;
use std::sync::Arc;
use weir_disk::files::Files;
use weir_disk::files::simulated::{Fault, Plan};
use weir_disk::format::{
    JOURNAL_ENTRY_BYTES, PAGE_BYTES, PurgeEntry, SUPERBLOCK_FILE, Seal, Superblock, Volume,
    segment_number,
};
use weir_disk::stepped;

/// Keys below are purged.
const PURGED: u64 = 4;

/// A store that is closed, some of whose responses were purged.
fn purged_store(seed: u64, nature: Nature) -> World {
    let mut world = store(seed, nature);
    for key in 0..PURGED {
        world.purge(key);
    }
    world.close();
    world
}

fn kept() -> Vec<u64> {
    (PURGED..KEYS).collect()
}

fn copies(world: &World) -> [Vec<u8>; 2] {
    World::journal_paths().map(|path| world.files.content(&path).unwrap())
}

fn journal_notices(world: &World) -> Vec<String> {
    let mut notices = world.notices.lock().unwrap();
    let told = notices.drain(..).map(|notice| notice.to_string());
    told.filter(|notice| notice.contains("journal")).collect()
}

/// Opens a store one of whose copies was damaged, and ends it; how many entries the other copy had
/// to give.
fn recovered(world: &mut World, context: &str) -> u64 {
    world.notices.lock().unwrap().clear();
    world.open();
    while world.load_one() {}
    world.step();
    assert_eq!(stored_keys(world), kept(), "{context}");
    let notices = journal_notices(world);
    assert_eq!(notices.len(), 1, "{context}: {notices:?}");
    assert!(notices[0].contains("nothing is lost"), "{notices:?}");
    let [one, other] = copies(world);
    assert_eq!(one, other, "{context}");
    let recovered = world.disk().usage().purges_recovered;
    world.end(false);
    recovered
}

#[test]
fn flipped_bit_in_one_journal_copy_is_repaired_without_loss() {
    let mut world = purged_store(1, Nature::default());
    for path in World::journal_paths() {
        let len = world.files.content(&path).unwrap().len();
        assert!(len > JOURNAL_ENTRY_BYTES * 4);
        for bit in 0..len * 8 {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            world.files.damage(&path, flip).unwrap();
            let context = format!("bit {bit} of {}", path.display());
            assert_eq!(recovered(&mut world, &context), 1, "{context}");
        }
    }
}

#[test]
fn truncation_of_one_journal_copy_is_repaired_without_loss() {
    let mut world = purged_store(2, Nature::default());
    for path in World::journal_paths() {
        let whole = world.files.content(&path).unwrap().len();
        for len in 0..whole {
            let cut = |bytes: &mut Vec<u8>| bytes.truncate(len);
            world.files.damage(&path, cut).unwrap();
            let context = format!("{} cut to {len}", path.display());
            let left = (whole / JOURNAL_ENTRY_BYTES - len / JOURNAL_ENTRY_BYTES) as u64;
            assert_eq!(recovered(&mut world, &context), left, "{context}");
        }
    }
}

#[test]
fn missing_journal_copy_is_repaired_without_loss() {
    let mut world = purged_store(3, Nature::default());
    for path in World::journal_paths() {
        world.files.unlink(&path).unwrap();
        assert!(recovered(&mut world, "one is gone") > 0);
    }
    world.open();
    while world.load_one() {}
    assert_eq!(journal_notices(&world), Vec::<String>::new());
    world.settle();
}

#[test]
fn purge_journaled_in_one_copy_before_a_kill_is_in_force() {
    for seed in 0..20 {
        let mut world = store(seed, Nature::default());
        world.plan(Plan {
            nth: Some((1, Fault::Stop)),
            ..Plan::default()
        });
        drop(world.disk().purge(super::truth::digest(3)));
        world.step();
        world.end(false);
        world.files.plan(Plan::default());
        let [one, other] = copies(&world);
        assert_eq!(one.len(), other.len() + JOURNAL_ENTRY_BYTES);
        world.open();
        while world.load_one() {}
        let stored = stored_keys(&world);
        assert!(!stored.contains(&3) && !stored.is_empty(), "{stored:?}");
        world.settle();
    }
}

/// The journal is written anew after an entry could not be added, and when one copy was damaged.
#[test]
fn rewritten_journal_survives_a_power_failure() {
    let nature = Nature {
        crashes: true,
        ..Nature::default()
    };
    for seed in 0..60 {
        let mut world = purged_store(seed, nature);
        if seed % 2 == 0 {
            let [path, _] = World::journal_paths();
            world.files.damage(&path, |bytes| bytes[9] ^= 1).unwrap();
        }
        world.open();
        while world.load_one() {}
        if seed % 2 == 1 {
            world.plan(Plan {
                nth: Some((0, Fault::Device)),
                ..Plan::default()
            });
            world.purge(PURGED);
        }
        world.end(true);
        world.notices.lock().unwrap().clear();
        world.open();
        while world.load_one() {}
        assert_eq!(journal_notices(&world), Vec::<String>::new(), "seed {seed}");
        let stored = stored_keys(&world);
        assert!(
            stored.iter().all(|key| *key >= PURGED + seed % 2),
            "{stored:?}"
        );
        assert!(!stored.is_empty(), "seed {seed}");
        world.settle();
    }
}

fn reseal(bytes: &mut [u8], version: u32, seal: Seal) {
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = seal.sum(0, &bytes[..PAGE_BYTES - 8]);
    bytes[PAGE_BYTES - 8..PAGE_BYTES].copy_from_slice(&sum.to_le_bytes());
}

fn superblock(world: &World) -> (Superblock, u32) {
    let path = World::directory_path(0).join(SUPERBLOCK_FILE);
    let bytes = world.files.content(&path).unwrap();
    Superblock::decode_versioned(&bytes[..PAGE_BYTES]).unwrap()
}

/// What version 1 of the format would have written.
fn make_version_1(world: &World) {
    let volume: Volume = superblock(world).0.volume;
    for path in world.files.paths() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let change = |bytes: &mut Vec<u8>| {
            if let Some(number) = segment_number(&name) {
                reseal(bytes, 1, volume.segment(number));
            } else if name == SUPERBLOCK_FILE {
                for page in bytes.chunks_mut(PAGE_BYTES) {
                    reseal(page, 1, Seal::UNKEYED);
                }
            }
        };
        world.files.damage(&path, change).unwrap();
    }
    let [journal, mirror] = World::journal_paths();
    world.files.unlink(&mirror).unwrap();
    let rewrite = |bytes: &mut Vec<u8>| {
        for (entry, at) in bytes
            .chunks_mut(JOURNAL_ENTRY_BYTES)
            .zip((0..).step_by(JOURNAL_ENTRY_BYTES))
        {
            let (found, _) = PurgeEntry::decode(entry, volume.journal(), at).unwrap();
            entry.copy_from_slice(&found.encode(volume.journal(), at, 0));
        }
    };
    world.files.damage(&journal, rewrite).unwrap();
}

#[test]
fn version_1_store_is_upgraded_to_version_2_without_loss() {
    let mut world = purged_store(4, Nature::default());
    make_version_1(&world);
    assert_eq!(superblock(&world).1, 1);
    world.notices.lock().unwrap().clear();
    world.open();
    while world.load_one() {}
    assert_eq!(stored_keys(&world), kept());
    assert_eq!(journal_notices(&world), Vec::<String>::new());
    assert_eq!(world.disk().usage().purges_recovered, 0);
    assert_eq!(superblock(&world).1, 2);
    let [one, other] = copies(&world);
    assert_eq!(one, other);
    world.settle();
}

#[test]
fn version_1_store_survives_a_crash_at_any_operation_of_its_upgrade() {
    let nature = Nature {
        crashes: true,
        ..Nature::default()
    };
    for nth in 0..60 {
        let mut world = purged_store(nth, nature);
        make_version_1(&world);
        world.plan(Plan {
            nth: Some((nth, Fault::Stop)),
            ..Plan::default()
        });
        world.open();
        world.step();
        world.end(true);
        world.notices.lock().unwrap().clear();
        world.open();
        while world.load_one() {}
        assert_eq!(stored_keys(&world), kept(), "{nth}");
        assert_eq!(journal_notices(&world), Vec::<String>::new(), "{nth}");
        world.settle();
    }
}

#[test]
fn damaged_version_1_journal_empties_the_store() {
    let [journal, _] = World::journal_paths();
    for at in (0..JOURNAL_ENTRY_BYTES * 5).step_by(7) {
        let mut world = purged_store(5, Nature::default());
        make_version_1(&world);
        world
            .files
            .damage(&journal, |bytes| bytes[at] ^= 1)
            .unwrap();
        world.is_unlucky = true;
        world.open();
        while world.load_one() {}
        world.step();
        assert_eq!(stored_keys(&world), [] as [u64; 0], "byte {at}");
        assert_eq!(journal_notices(&world).len(), 1);
    }
}

#[test]
fn store_of_a_newer_version_is_refused_and_left_unchanged() {
    let world = purged_store(6, Nature::default());
    let path = World::directory_path(0).join(SUPERBLOCK_FILE);
    let newer = |bytes: &mut Vec<u8>| {
        for page in bytes.chunks_mut(PAGE_BYTES) {
            reseal(page, weir_disk::format::FORMAT_VERSION + 1, Seal::UNKEYED);
        }
    };
    world.files.damage(&path, newer).unwrap();
    let before: Vec<Vec<u8>> = contents(&world);
    let files: Arc<dyn Files> = Arc::new(world.files.clone());
    let opened = stepped::open(&world.config(), &files, &(Arc::new(|_| {}) as _));
    let refused = opened.map(drop).unwrap_err().to_string();
    assert!(refused.contains("newer"), "{refused}");
    assert_eq!(contents(&world), before);
}

fn contents(world: &World) -> Vec<Vec<u8>> {
    let is_lock = |path: &Path| path.file_name().is_some_and(|name| name == "lock");
    let mut paths = world.files.paths();
    paths.retain(|path| !is_lock(path));
    let content = |path| world.files.content(path).unwrap();
    paths.iter().map(|path| content(path)).collect()
}
