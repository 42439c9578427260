//! The purge journal is there twice: what one copy loses costs nothing.

use super::journal::{store, stored_keys};
use super::stepped_store::{KEYS, Nature, SteppedStore};
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
fn purged_store(seed: u64, nature: Nature) -> SteppedStore {
    let mut store = store(seed, nature);
    for key in 0..PURGED {
        store.purge(key);
    }
    store.close();
    store
}

fn kept() -> Vec<u64> {
    (PURGED..KEYS).collect()
}

fn copies(store: &SteppedStore) -> [Vec<u8>; 2] {
    SteppedStore::journal_paths().map(|path| store.files.content(&path).unwrap())
}

fn journal_notices(store: &SteppedStore) -> Vec<String> {
    let mut notices = store.notices.lock().unwrap();
    let told = notices.drain(..).map(|notice| notice.to_string());
    told.filter(|notice| notice.contains("journal")).collect()
}

/// Opens a store one of whose copies was damaged, and ends it; how many entries the other copy had
/// to give.
fn recovered(store: &mut SteppedStore, context: &str) -> u64 {
    store.notices.lock().unwrap().clear();
    store.open();
    while store.load_one() {}
    store.step();
    assert_eq!(stored_keys(store), kept(), "{context}");
    let notices = journal_notices(store);
    assert_eq!(notices.len(), 1, "{context}: {notices:?}");
    assert!(notices[0].contains("nothing is lost"), "{notices:?}");
    let [one, other] = copies(store);
    assert_eq!(one, other, "{context}");
    let recovered = store.disk().usage().purges_recovered;
    store.end(false);
    recovered
}

#[test]
fn flipped_bit_in_one_journal_copy_is_repaired_without_loss() {
    let mut store = purged_store(1, Nature::default());
    for path in SteppedStore::journal_paths() {
        let len = store.files.content(&path).unwrap().len();
        assert!(len > JOURNAL_ENTRY_BYTES * 4);
        for bit in 0..len * 8 {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            store.files.damage(&path, flip).unwrap();
            let context = format!("bit {bit} of {}", path.display());
            assert_eq!(recovered(&mut store, &context), 1, "{context}");
        }
    }
}

#[test]
fn truncation_of_one_journal_copy_is_repaired_without_loss() {
    let mut store = purged_store(2, Nature::default());
    for path in SteppedStore::journal_paths() {
        let whole = store.files.content(&path).unwrap().len();
        for len in 0..whole {
            let cut = |bytes: &mut Vec<u8>| bytes.truncate(len);
            store.files.damage(&path, cut).unwrap();
            let context = format!("{} cut to {len}", path.display());
            let left = (whole / JOURNAL_ENTRY_BYTES - len / JOURNAL_ENTRY_BYTES) as u64;
            assert_eq!(recovered(&mut store, &context), left, "{context}");
        }
    }
}

#[test]
fn missing_journal_copy_is_repaired_without_loss() {
    let mut store = purged_store(3, Nature::default());
    for path in SteppedStore::journal_paths() {
        store.files.unlink(&path).unwrap();
        assert!(recovered(&mut store, "one is gone") > 0);
    }
    store.open();
    while store.load_one() {}
    assert_eq!(journal_notices(&store), Vec::<String>::new());
    store.settle();
}

#[test]
fn purge_journaled_in_one_copy_before_a_kill_is_in_force() {
    for seed in 0..20 {
        let mut store = store(seed, Nature::default());
        store.plan(Plan {
            nth: Some((1, Fault::Stop)),
            ..Plan::default()
        });
        drop(store.disk().purge(super::content::digest(3)));
        store.step();
        store.end(false);
        store.files.plan(Plan::default());
        let [one, other] = copies(&store);
        assert_eq!(one.len(), other.len() + JOURNAL_ENTRY_BYTES);
        store.open();
        while store.load_one() {}
        let stored = stored_keys(&store);
        assert!(!stored.contains(&3) && !stored.is_empty(), "{stored:?}");
        store.settle();
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
        let mut store = purged_store(seed, nature);
        if seed % 2 == 0 {
            let [path, _] = SteppedStore::journal_paths();
            store.files.damage(&path, |bytes| bytes[9] ^= 1).unwrap();
        }
        store.open();
        while store.load_one() {}
        if seed % 2 == 1 {
            store.plan(Plan {
                nth: Some((0, Fault::Device)),
                ..Plan::default()
            });
            store.purge(PURGED);
        }
        store.end(true);
        store.notices.lock().unwrap().clear();
        store.open();
        while store.load_one() {}
        assert_eq!(journal_notices(&store), Vec::<String>::new(), "seed {seed}");
        let stored = stored_keys(&store);
        assert!(
            stored.iter().all(|key| *key >= PURGED + seed % 2),
            "{stored:?}"
        );
        assert!(!stored.is_empty(), "seed {seed}");
        store.settle();
    }
}

fn reseal(bytes: &mut [u8], version: u32, seal: Seal) {
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = seal.sum(0, &bytes[..PAGE_BYTES - 8]);
    bytes[PAGE_BYTES - 8..PAGE_BYTES].copy_from_slice(&sum.to_le_bytes());
}

fn superblock(store: &SteppedStore) -> (Superblock, u32) {
    let path = SteppedStore::directory_path(0).join(SUPERBLOCK_FILE);
    let bytes = store.files.content(&path).unwrap();
    Superblock::decode_versioned(&bytes[..PAGE_BYTES]).unwrap()
}

/// What version 1 of the format would have written.
fn make_version_1(store: &SteppedStore) {
    let volume: Volume = superblock(store).0.volume;
    for path in store.files.paths() {
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
        store.files.damage(&path, change).unwrap();
    }
    let [journal, mirror] = SteppedStore::journal_paths();
    store.files.unlink(&mirror).unwrap();
    let rewrite = |bytes: &mut Vec<u8>| {
        for (entry, at) in bytes
            .chunks_mut(JOURNAL_ENTRY_BYTES)
            .zip((0..).step_by(JOURNAL_ENTRY_BYTES))
        {
            let (found, _) = PurgeEntry::decode(entry, volume.journal(), at).unwrap();
            entry.copy_from_slice(&found.encode(volume.journal(), at, 0));
        }
    };
    store.files.damage(&journal, rewrite).unwrap();
}

#[test]
fn version_1_store_is_upgraded_to_version_2_without_loss() {
    let mut store = purged_store(4, Nature::default());
    make_version_1(&store);
    assert_eq!(superblock(&store).1, 1);
    store.notices.lock().unwrap().clear();
    store.open();
    while store.load_one() {}
    assert_eq!(stored_keys(&store), kept());
    assert_eq!(journal_notices(&store), Vec::<String>::new());
    assert_eq!(store.disk().usage().purges_recovered, 0);
    assert_eq!(superblock(&store).1, 2);
    let [one, other] = copies(&store);
    assert_eq!(one, other);
    store.settle();
}

#[test]
fn version_1_store_survives_a_crash_at_any_operation_of_its_upgrade() {
    let nature = Nature {
        crashes: true,
        ..Nature::default()
    };
    for nth in 0..60 {
        let mut store = purged_store(nth, nature);
        make_version_1(&store);
        store.plan(Plan {
            nth: Some((nth, Fault::Stop)),
            ..Plan::default()
        });
        store.open();
        store.step();
        store.end(true);
        store.notices.lock().unwrap().clear();
        store.open();
        while store.load_one() {}
        assert_eq!(stored_keys(&store), kept(), "{nth}");
        assert_eq!(journal_notices(&store), Vec::<String>::new(), "{nth}");
        store.settle();
    }
}

#[test]
fn damaged_version_1_journal_empties_the_store() {
    let [journal, _] = SteppedStore::journal_paths();
    for at in (0..JOURNAL_ENTRY_BYTES * 5).step_by(7) {
        let mut store = purged_store(5, Nature::default());
        make_version_1(&store);
        store
            .files
            .damage(&journal, |bytes| bytes[at] ^= 1)
            .unwrap();
        store.is_unlucky = true;
        store.open();
        while store.load_one() {}
        store.step();
        assert_eq!(stored_keys(&store), [] as [u64; 0], "byte {at}");
        assert_eq!(journal_notices(&store).len(), 1);
    }
}

#[test]
fn store_of_a_newer_version_is_refused_and_left_unchanged() {
    let store = purged_store(6, Nature::default());
    let path = SteppedStore::directory_path(0).join(SUPERBLOCK_FILE);
    let newer = |bytes: &mut Vec<u8>| {
        for page in bytes.chunks_mut(PAGE_BYTES) {
            reseal(page, weir_disk::format::FORMAT_VERSION + 1, Seal::UNKEYED);
        }
    };
    store.files.damage(&path, newer).unwrap();
    let before: Vec<Vec<u8>> = contents(&store);
    let files: Arc<dyn Files> = Arc::new(store.files.clone());
    let opened = stepped::open(&store.config(), &files, &(Arc::new(|_| {}) as _));
    let refused = opened.map(drop).unwrap_err().to_string();
    assert!(refused.contains("newer"), "{refused}");
    assert_eq!(contents(&store), before);
}

fn contents(store: &SteppedStore) -> Vec<Vec<u8>> {
    let is_lock = |path: &Path| path.file_name().is_some_and(|name| name == "lock");
    let mut paths = store.files.paths();
    paths.retain(|path| !is_lock(path));
    let content = |path| store.files.content(path).unwrap();
    paths.iter().map(|path| content(path)).collect()
}
