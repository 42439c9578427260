use super::*;
use crate::directory::fence::ERRORS_MAX;
use crate::disk::assemble_stepped;
use crate::files::simulated::{Fault, Plan, SimulatedFiles};
use crate::files::{Files, SystemFiles};
use crate::{BodyBlock, DirectoryConfig, Disk, DiskConfig, LoadedRecord, NewRecord};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};
use weir_policy::Digest;
use weir_policy::page_cache::WINDOW_LOOKS;

/// Content of one of the responses: around the sizes where a read takes one page more.
const LENGTHS: [usize; 12] = [
    1, 15, 3000, 4096, 4097, 9999, 20_000, 65_536, 70_000, COMES_MAX, LONGER, 250_000,
];

/// The longest content that a read of a device brings with its record.
const COMES_MAX: usize = 192 * 1024;

const LONGER: usize = COMES_MAX + 1;

/// One that lies in extents of its own.
const LARGE: usize = 300_000;

fn digest(key: u64) -> Digest {
    Digest(key + 1, (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn content(key: u64, len: usize) -> Arc<[u8]> {
    (0..len as u64)
        .map(|at| (key + at * 31 + (at >> 8)).to_le_bytes()[0])
        .collect()
}

/// A store in one directory that is stepped by hand.
struct Store {
    disk: Arc<Disk>,
    directory: Arc<Directory>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Store {
    /// With every length of response in it, and a large one behind them; sealed, and opened again.
    fn filled(files: &Arc<dyn Files>, path: &Path) -> Self {
        let config = DiskConfig {
            segment_bytes: 2 << 20,
            ..DiskConfig::new(vec![DirectoryConfig {
                path: path.to_path_buf(),
                bytes: 256 << 20,
            }])
        };
        let log: crate::NoticeHandler = Arc::new(|_| {});
        let (disk, stepped) = assemble_stepped(&config, files, &log).unwrap();
        for (key, len) in (0..).zip(LENGTHS) {
            let (ticket, bytes) = (disk.ticket(), content(key, len));
            let (meta, body) = (vec![7; 100], vec![BodyBlock { from: 0, bytes }]);
            let key = digest(key);
            let new = NewRecord {
                key,
                ticket,
                meta,
                body,
            };
            disk.append(new).unwrap();
        }
        let key = digest(LENGTHS.len() as u64);
        let mut spill = disk.begin(key, disk.ticket(), None).unwrap();
        let whole = content(LENGTHS.len() as u64, LARGE);
        for (block, from) in whole.chunks(60_000).zip((0..).step_by(60_000)) {
            spill.push(from, block.into()).unwrap();
        }
        spill.commit(Vec::new(), &[]).unwrap();
        for (_, mut writer, _) in stepped {
            writer.finish();
        }
        drop(disk);
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let heard = Arc::clone(&notices);
        let log: crate::NoticeHandler = Arc::new(move |notice| heard.lock().unwrap().push(notice));
        let (disk, stepped) = assemble_stepped(&config, files, &log).unwrap();
        let mut directory = None;
        for (its, _, mut loader) in stepped {
            while loader.step() {}
            directory = Some(its);
        }
        let directory = directory.unwrap();
        Self {
            disk,
            directory,
            notices,
        }
    }

    fn simulated() -> (Self, SimulatedFiles) {
        let files = SimulatedFiles::new(1);
        let seam: Arc<dyn Files> = Arc::new(files.clone());
        (Self::filled(&seam, Path::new("/store")), files)
    }

    fn go(&self, read_path: ReadPath) {
        *self.directory.page_cache() = PageCache::new(read_path);
    }

    fn load(&self, key: u64) -> Result<LoadedRecord, ReadError> {
        let candidate = self.disk.find(digest(key)).ok_or(ReadError::Gone)?;
        block_on(self.disk.load(candidate))
    }

    /// Reads everything by its extents and compares.
    fn read_all(&self) {
        let lengths = LENGTHS.into_iter().chain([LARGE]);
        for (key, len) in (0..).zip(lengths) {
            let loaded = self.load(key).unwrap();
            let whole = content(key, len);
            if let Some(inline) = &loaded.inline {
                assert!(**inline == *whole, "{len}, inline");
            }
            let mut at = 0;
            for extent in &loaded.extents {
                while at < extent.to() {
                    let bytes = block_on(extent.read(at)).unwrap();
                    let begin = usize::try_from(at).unwrap();
                    assert!(*bytes == whole[begin..][..bytes.len()], "{len} at {at}");
                    at += bytes.len() as u64;
                }
            }
            assert_eq!(at, len as u64);
        }
    }

    fn key_of(len: usize) -> u64 {
        let place = LENGTHS.iter().position(|it| *it == len);
        place.expect("a stored length") as u64
    }

    /// Reads that `what` waits for.
    fn reads_of(&self, what: impl FnOnce()) -> u64 {
        let before = self.disk.usage().waited_reads;
        what();
        self.disk.usage().waited_reads - before
    }

    fn brought_bytes(&self) -> u64 {
        let counters = &self.directory.counters;
        counters.passed_bytes() - self.disk.usage().written_bytes
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

#[test]
fn real_file_system_returns_stored_bytes_through_and_past_the_page_cache() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let store = Store::filled(&files, directory.path());
    for read_path in [ReadPath::Past, ReadPath::Through, ReadPath::Past] {
        store.go(read_path);
        store.read_all();
    }
}

/// What the reads of all responses come to that are under way side by side, by both paths.
fn read_side_by_side(
    store: &Store,
    batch: Box<dyn crate::files::Batch>,
) -> Vec<Result<LoadedRecord, ReadError>> {
    let results: Arc<Mutex<Vec<_>>> = Arc::default();
    let mut reads = crate::directory::reads::pool::ReadsInProgress::new(batch, 32);
    for read_path in [ReadPath::Past, ReadPath::Through] {
        for key in 0..=LENGTHS.len() as u64 {
            let (candidate, results) =
                (store.disk.find(digest(key)).unwrap(), Arc::clone(&results));
            let directory = Arc::clone(&store.directory);
            reads.begin(Box::new(move || {
                let mode = super::super::reader::ReadMode::Buffered(read_path);
                let loaded = super::super::reader::load(&directory, &candidate, mode);
                let loaded = super::ReadFault::finished(loaded);
                let has_ended = loaded.is_some();
                results.lock().unwrap().extend(loaded);
                has_ended
            }));
        }
    }
    while reads.under_way() > 0 {
        reads.wait(std::time::Duration::from_secs(60)).unwrap();
    }
    std::mem::take(&mut *results.lock().unwrap())
}

/// Whether content that was loaded is what was stored under its key; nothing, if there is none.
fn is_right(loaded: &LoadedRecord) -> Option<bool> {
    let key = loaded.key.0 - 1;
    let length = LENGTHS.get(usize::try_from(key).unwrap());
    let inline = loaded.inline.as_ref()?;
    Some(length.is_some_and(|len| **inline == *content(key, *len)))
}

#[test]
fn concurrent_reads_each_return_their_own_response() {
    let (simulated, _) = Store::simulated();
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let real = Store::filled(&files, directory.path());
    for store in [simulated, real] {
        // the kernel may have no batch for us: one of ours does it then
        let ours = || SimulatedFiles::new(1).batch(32).unwrap();
        let batch = store.directory.files.batch(32).unwrap_or_else(ours);
        let results = read_side_by_side(&store, batch);
        assert_eq!(results.len(), 2 * (LENGTHS.len() + 1));
        let mut keys: Vec<_> = results
            .into_iter()
            .map(|loaded| {
                let loaded = loaded.unwrap();
                // the longest have to be read by their extents
                let key = loaded.key.0;
                let is_short = LENGTHS
                    .get(usize::try_from(key - 1).unwrap())
                    .is_some_and(|len| *len <= COMES_MAX);
                assert_eq!(is_right(&loaded), is_short.then_some(true), "{key}");
                key
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), LENGTHS.len() + 1);
    }
}

#[test]
fn short_failed_or_interrupted_concurrent_reads_return_no_wrong_content() {
    let (mut right, mut failed) = (0, 0);
    for seed in 0..300 {
        let (store, files) = Store::simulated();
        files.plan(Plan {
            one_in: 1 + seed % 20,
            seed,
            indirect: seed % 7 == 0,
            ..Plan::default()
        });
        let results = read_side_by_side(&store, files.batch(32).unwrap());
        assert_eq!(results.len(), 2 * (LENGTHS.len() + 1), "{seed}");
        for result in results {
            match result {
                Ok(loaded) => {
                    // what came short has to be read by its extents
                    let is_right = is_right(&loaded);
                    assert_ne!(is_right, Some(false), "{seed} {:?}", loaded.key);
                    right += u32::from(is_right == Some(true));
                }
                Err(ReadError::Device | ReadError::Fenced) => failed += 1,
                Err(other) => panic!("{seed}: {other:?}"),
            }
        }
    }
    assert!(right > 1000 && failed > 100, "{right} {failed}");
}

#[test]
fn direct_reads_bring_nothing_into_the_page_cache() {
    let (store, files) = Store::simulated();
    files.plan(Plan {
        uncached: true,
        ..Plan::default()
    });
    store.go(ReadPath::Past);
    store.read_all();
    assert_eq!(store.brought_bytes(), 0);
    store.go(ReadPath::Through);
    store.read_all();
    assert!(store.brought_bytes() > LARGE as u64);
}

#[test]
fn content_of_192_kib_comes_with_its_record_by_one_read_and_more_by_its_extents() {
    let (store, _) = Store::simulated();
    store.go(ReadPath::Past);
    let check = |len, comes| {
        let load = || store.load(Store::key_of(len)).unwrap();
        assert_eq!(load().inline.is_some(), comes, "{len}");
        let reads = store.reads_of(|| drop(load()));
        assert_eq!(reads, 1, "{len}");
    };
    check(20_000, true);
    check(70_000, true);
    check(COMES_MAX, true);
    check(LONGER, false);
    check(250_000, false);
}

#[test]
fn content_above_64_kib_that_the_page_cache_has_is_left_there() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let store = Store::filled(&files, directory.path());
    store.go(ReadPath::Through);
    let check = |len, comes| {
        let key = Store::key_of(len);
        let extents = store.load(key).unwrap().extents;
        block_on(extents[0].read_whole(BLOCK)).unwrap();
        let mut loaded = None;
        let reads = store.reads_of(|| loaded = store.load(key).ok());
        assert_eq!(reads, 0, "{len}");
        assert_eq!(loaded.unwrap().inline.is_some(), comes, "{len}");
        assert!(extents[0].begins_in_page_cache(), "{len}");
    };
    check(65_536, true);
    check(70_000, false);
}

#[test]
fn read_brings_three_chunks_at_most_and_none_behind_those_that_are_wanted() {
    let (store, _) = Store::simulated();
    store.go(ReadPath::Past);
    let loaded = store.load(Store::key_of(250_000)).unwrap();
    let (extent, whole) = (&loaded.extents[0], content(Store::key_of(250_000), 250_000));
    // one read each, the header with the first
    for (at, to, end) in [
        (0, 1, 65_536),
        (0, 65_537, 131_072),
        (1, 250_000, 196_608),
        (65_535, 65_536, 65_536),
        (65_536, 65_536, 131_072),
        (131_073, 250_000, 250_000),
        (249_999, 250_000, 250_000),
    ] {
        let mut read = None;
        let reads = store.reads_of(|| read = block_on(extent.read_up_to(at, to)).ok());
        let begin = usize::try_from(at).unwrap();
        assert_eq!(
            (&*read.unwrap(), reads),
            (&whole[begin..end], 1),
            "{at}-{to}"
        );
    }
    assert_eq!(
        block_on(extent.read_up_to(250_000, 250_001)),
        Err(ReadError::Gone)
    );
}

const BLOCK: NonZeroUsize = NonZeroUsize::new(60_000).unwrap();

#[test]
fn whole_extent_is_one_read_in_blocks_of_the_wanted_size() {
    let (store, _) = Store::simulated();
    for read_path in [ReadPath::Past, ReadPath::Through] {
        store.go(read_path);
        for len in [1, COMES_MAX, 250_000] {
            let key = Store::key_of(len);
            let loaded = store.load(key).unwrap();
            let mut blocks = None;
            let reads = store.reads_of(|| {
                blocks = block_on(loaded.extents[0].read_whole(BLOCK)).ok();
            });
            let blocks = blocks.unwrap();
            assert!(reads <= 1 && blocks.iter().all(|block| block.len() <= BLOCK.get()));
            assert!(blocks.concat() == *content(key, len), "{len}");
        }
    }
}

#[test]
fn damage_ends_a_read_before_it_and_fails_one_of_the_whole() {
    let (store, files) = Store::simulated();
    store.go(ReadPath::Past);
    let key = Store::key_of(250_000);
    let loaded = store.load(key).unwrap();
    let (extent, whole) = (&loaded.extents[0], content(key, 250_000));
    let reference = &extent.source.reference;
    let begin = u64::from(reference.at) + crate::format::extent_header_bytes(reference.len);
    let at = usize::try_from(begin).unwrap() + 100_000;
    let segments = files.paths().into_iter();
    for path in segments.filter(|path| path.extension().is_some_and(|it| it == "seg")) {
        let flip = |bytes: &mut Vec<u8>| {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1;
            }
        };
        files.damage(&path, flip).unwrap();
    }
    let read = block_on(extent.read_up_to(0, 250_000)).unwrap();
    assert!(*read == whole[..65_536]);
    let read = block_on(extent.read_up_to(65_536, 250_000));
    assert_eq!(read, Err(ReadError::Damaged));
    assert_eq!(block_on(extent.read_whole(BLOCK)), Err(ReadError::Damaged));
    let read = block_on(extent.read_up_to(131_072, 250_000)).unwrap();
    assert!(*read == whole[131_072..]);
}

#[test]
fn file_system_without_direct_access_is_read_and_reported_once() {
    let (store, files) = Store::simulated();
    files.plan(Plan {
        indirect: true,
        ..Plan::default()
    });
    store.go(ReadPath::Past);
    store.read_all();
    store.read_all();
    let notices = store.notices.lock().unwrap();
    let told = notices
        .iter()
        .filter(|it| matches!(it, Notice::Indirect { .. }));
    assert_eq!(told.count(), 1);
    assert_eq!(store.disk.usage().read_errors, 0);
}

#[test]
fn system_that_does_not_tell_what_the_page_cache_has_is_reported_once_at_start() {
    for untold_residency in [false, true] {
        let files = SimulatedFiles::new(1);
        files.plan(Plan {
            untold_residency,
            ..Plan::default()
        });
        let seam: Arc<dyn Files> = Arc::new(files);
        let store = Store::filled(&seam, Path::new("/store"));
        store.read_all();
        let notices = store.notices.lock().unwrap();
        let told = notices
            .iter()
            .filter(|it| matches!(it, Notice::PageByPage { .. }));
        assert_eq!(told.count(), usize::from(untold_residency));
    }
}

#[test]
fn repeated_direct_read_errors_fence_the_directory() {
    let (store, files) = Store::simulated();
    files.plan(Plan {
        nth: Some((0, Fault::Device)),
        lasting: true,
        ..Plan::default()
    });
    store.go(ReadPath::Past);
    for _ in 0..ERRORS_MAX {
        assert_eq!(store.load(3).unwrap_err(), ReadError::Device);
    }
    assert!(store.directory.fence.is_up());
}

#[test]
fn direct_read_of_damaged_bytes_fails() {
    let (store, files) = Store::simulated();
    store.go(ReadPath::Past);
    let before = store.load(5).unwrap().inline;
    assert!(before.is_some());
    let segments = files.paths().into_iter();
    for path in segments.filter(|path| path.extension().is_some_and(|it| it == "seg")) {
        files
            .damage(&path, |bytes| {
                for at in (8192..bytes.len()).step_by(64) {
                    bytes[at] ^= 1;
                }
            })
            .unwrap();
    }
    assert!(store.load(5).is_err());
}

#[test]
fn chunk_read_directly_does_not_count_as_verified_in_the_page_cache() {
    let (store, _) = Store::simulated();
    let key = LENGTHS.len() as u64;
    let verified = |read_path| {
        store.go(read_path);
        let loaded = store.load(key).unwrap();
        let extent = &loaded.extents[0];
        block_on(extent.read(0)).unwrap();
        extent.is_verified_at(0)
    };
    assert!(!verified(ReadPath::Past));
    assert!(verified(ReadPath::Through));
}

#[test]
fn page_cache_without_hits_is_bypassed_until_probes_hit_again() {
    let (store, files) = Store::simulated();
    files.plan(Plan {
        uncached: true,
        ..Plan::default()
    });
    let read_path = || store.directory.page_cache().read_path();
    // what went through it is less than what is stored, and then more
    store.load(2).unwrap();
    assert_eq!(read_path(), ReadPath::Through);
    let stored = store.disk.usage().bytes;
    while store.brought_bytes() < stored {
        store.load(7).unwrap();
    }
    for _ in 0..WINDOW_LOOKS {
        store.load(2).unwrap();
    }
    assert_eq!(read_path(), ReadPath::Past);
    files.plan(Plan::default());
    for _ in 0..WINDOW_LOOKS * weir_policy::page_cache::LOOK_EVERY {
        store.load(2).unwrap();
    }
    assert_eq!(read_path(), ReadPath::Through);
}
