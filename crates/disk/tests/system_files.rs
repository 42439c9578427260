//! The store on real files, with its threads.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;
use std::sync::{Arc, Mutex};
use weir_disk::files::{Files, SystemFiles};
use weir_disk::format::SUPERBLOCK_FILE;
use weir_disk::{
    BodyBlock, DirectoryConfig, Disk, DiskConfig, LoadedRecord, NewRecord, Notice, NoticeHandler,
    OpenError, stepped,
};
use weir_policy::Digest;

fn config(path: &Path) -> DiskConfig {
    let directory = DirectoryConfig {
        path: path.to_path_buf(),
        bytes: 64 << 20,
    };
    DiskConfig {
        segment_bytes: 4 << 20,
        segments_min: 16,
        sync_interval_ms: 50,
        ..DiskConfig::new(vec![directory])
    }
}

fn silent() -> NoticeHandler {
    Arc::new(|_| {})
}

fn open(path: &Path) -> Arc<Disk> {
    Disk::open(config(path), Arc::new(SystemFiles), silent()).expect("a store")
}

/// Waits for what a thread of the store will do.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 30, "{what} did not come");
        std::thread::yield_now();
    }
}

fn digest(key: u64) -> Digest {
    Digest(
        key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        key.wrapping_add(7).wrapping_mul(0x94d0_49bb_1331_11eb),
    )
}

fn content(key: u64, len: usize) -> Arc<[u8]> {
    (0..len as u64)
        .map(|at| (key + at * 31 + (at >> 8)).to_le_bytes()[0])
        .collect()
}

fn record(disk: &Disk, key: u64, len: usize) -> NewRecord {
    NewRecord {
        key: digest(key),
        ticket: disk.ticket(),
        meta: key.to_le_bytes().to_vec(),
        body: vec![BodyBlock {
            from: 0,
            bytes: content(key, len),
        }],
    }
}

/// Content of which a segment has room for few, bytes.
const LARGE: usize = 400_000;

fn append(disk: &Disk, key: u64, len: usize) {
    disk.append(record(disk, key, len)).expect("room");
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn load(disk: &Disk, key: u64) -> Option<LoadedRecord> {
    let candidate = disk.find(digest(key))?;
    Some(block_on(disk.load(candidate)).expect("a record"))
}

fn read(loaded: &LoadedRecord) -> Vec<u8> {
    let mut all = Vec::new();
    for extent in &loaded.extents {
        let mut at = extent.from;
        while at < extent.to() {
            let bytes = block_on(extent.read(at)).expect("content");
            at += bytes.len() as u64;
            all.extend_from_slice(&bytes);
        }
    }
    all
}

fn wait_for_index(disk: &Disk) {
    until("the index", || disk.usage().loading == 0);
}

#[test]
fn stored_responses_survive_a_clean_shutdown() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let secret = disk.secret().0;
    for key in 0..200 {
        append(&disk, key, 10_000);
    }
    until("the writer", || disk.usage().stored == 200);
    block_on(disk.purge(digest(5))).unwrap();
    disk.check().unwrap();
    disk.close();
    drop(disk);
    let disk = open(directory.path());
    assert_eq!(disk.secret().0, secret);
    wait_for_index(&disk);
    assert_eq!(disk.check().unwrap().entries, 199);
    for key in 0..200 {
        match load(&disk, key) {
            None => assert_eq!(key, 5),
            Some(loaded) => {
                assert_eq!(*loaded.meta, key.to_le_bytes());
                assert_eq!(loaded.inline.as_deref(), Some(&*content(key, 10_000)));
            }
        }
    }
}

#[test]
fn large_response_is_readable_during_its_write_and_sendable_from_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let whole = content(9, 3_500_000);
    let mut writer = disk
        .begin(digest(9), disk.ticket(), Some(whole.len() as u64))
        .unwrap();
    let mut at = 0;
    for block in whole.chunks(64 * 1024) {
        writer.push(at, block.into()).unwrap();
        at += block.len() as u64;
    }
    let mut early = Vec::new();
    until("the first extent", || {
        early.extend(writer.written());
        !early.is_empty()
    });
    let first = block_on(early[0].read(70_000)).unwrap();
    assert_eq!(*first, whole[70_000..70_000 + first.len()]);
    let committed = writer.commit(b"head".to_vec(), &[]).unwrap();
    until("the record", || committed.extents().is_some());
    let loaded = load(&disk, 9).unwrap();
    assert_eq!(read(&loaded), *whole);
    let extent = &loaded.extents[0];
    if let Some(piece) = extent.sendable(100, 200_000) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::from(piece.fd().try_clone_to_owned().unwrap());
        let mut bytes = vec![0; usize::try_from(piece.len).unwrap()];
        file.read_exact_at(&mut bytes, piece.offset).unwrap();
        assert_eq!(bytes, whole[100..100 + bytes.len()]);
        let len = piece.len;
        let rest = piece.clone().after(len - 1).unwrap();
        assert_eq!((rest.offset, rest.len), (piece.offset + len - 1, 1));
        assert!(piece.after(len).is_none());
    }
    assert_eq!(disk.check().unwrap().bytes, whole.len() as u64);
}

/// Slow fetches have blocks that wait for more of the same extent.
#[test]
fn extents_under_way_leave_half_of_the_queue_to_what_can_be_written() {
    const BLOCK: usize = 64 * 1024;
    let directory = tempfile::tempdir().unwrap();
    let config = DiskConfig {
        queue_bytes_max: 32 * BLOCK,
        ..config(directory.path())
    };
    let disk = Disk::open(config, Arc::new(SystemFiles), silent()).expect("a store");
    // twice as many as the queue has room for
    let writers: Vec<_> = (0..64)
        .map(|key| {
            let mut writer = disk.begin(digest(key), disk.ticket(), None).unwrap();
            until("room", || writer.has_room(BLOCK));
            writer.push(0, content(key, BLOCK)).unwrap();
            writer
        })
        .collect();
    let mut append = || disk.append(record(&disk, 99, 3 * BLOCK)).is_ok();
    until("room", &mut append);
    until("the record", || disk.find(digest(99)).is_some());
    for (key, writer) in (0..).zip(writers) {
        let committed = writer.commit(b"head".to_vec(), &[]).unwrap();
        until("the record", || committed.extents().is_some());
        assert_eq!(read(&load(&disk, key).unwrap()), *content(key, BLOCK));
    }
}

/// `sendfile` costs half as much again, or three times as much, for what begins within a page.
#[test]
fn content_of_more_than_15_pages_begins_at_a_page_of_its_file() {
    const PAGE: u64 = 4096;
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let lens = [61_440, 61_441, 100_000, 300_001, 500_000];
    for (key, len) in (0..).zip(lens) {
        append(&disk, key, len);
    }
    let whole = content(9, 1_300_000);
    let ticket = disk.ticket();
    let mut writer = disk.begin(digest(9), ticket, None).unwrap();
    for (block, from) in whole.chunks(64 * 1024).zip((0..).step_by(64 * 1024)) {
        writer.push(from, block.into()).unwrap();
    }
    let committed = writer.commit(b"head".to_vec(), &[]).unwrap();
    until("the record", || committed.extents().is_some());
    let short = (0..lens.len() as u64).flat_map(|key| {
        until("a record", || disk.find(digest(key)).is_some());
        load(&disk, key).unwrap().extents
    });
    let extents: Vec<_> = short.chain(load(&disk, 9).unwrap().extents).collect();
    assert!(extents.len() > lens.len() + 1, "{} extents", extents.len());
    for extent in extents {
        // verified by this, so that it may be sent as it is
        block_on(extent.read(extent.from)).unwrap();
        let Some(piece) = extent.sendable(extent.from, PAGE) else {
            // a file system that does not say what is in the page cache
            return;
        };
        let (len, within_page) = (extent.to() - extent.from, piece.offset % PAGE);
        // shorter content lies where the item before it ends
        assert_eq!(within_page == 0, len > 61_440, "{len} bytes: {within_page}");
    }
    let stored = 1_300_000 + lens.iter().sum::<usize>() as u64;
    assert_eq!(disk.check().unwrap().bytes, stored);
}

/// The kernel holds pages, not copies, until the client has acknowledged them.
#[test]
fn bytes_sent_by_sendfile_are_unchanged_after_their_segment_is_evicted() {
    use std::io::Read as _;
    let directory = tempfile::tempdir().unwrap();
    let small = DirectoryConfig {
        path: directory.path().to_path_buf(),
        bytes: 16 << 20,
    };
    let config = DiskConfig::new(vec![small]);
    let disk = Disk::open(config, Arc::new(SystemFiles), silent()).unwrap();
    let whole = content(9, 60_000);
    append(&disk, 9, whole.len());
    until("the record", || disk.find(digest(9)).is_some());
    let loaded = load(&disk, 9).unwrap();
    let extent = &loaded.extents[0];
    assert_eq!(*block_on(extent.read(0)).unwrap(), *whole);
    let Some(piece) = extent.sendable(0, 60_000) else {
        // a file system that does not say what is in the page cache
        return;
    };
    let (socket, mut client) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut offset = piece.offset;
    let length = usize::try_from(piece.len).unwrap();
    let sent = rustix::fs::sendfile(&socket, piece.fd(), Some(&mut offset), length).unwrap();
    assert!(sent > 0);
    let mut key = 100;
    until("the end of its segment", || {
        if disk.usage().queue_bytes == 0 {
            append(&disk, key, 60_000);
            key += 1;
        }
        extent.is_retired()
    });
    // the file of a later segment may have got its place on the device by now
    let mut bytes = vec![0; sent];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, whole[..sent]);
}

/// Two directories; the one that is lost takes what was in it, and an empty one its place.
#[test]
fn loss_of_one_directory_loses_only_its_own_responses() {
    let parent = tempfile::tempdir().unwrap();
    let paths = [parent.path().join("a"), parent.path().join("b")];
    let config = || {
        let directories = paths
            .iter()
            .zip([16, 48])
            .map(|(path, mib)| DirectoryConfig {
                path: path.clone(),
                bytes: mib << 20,
            });
        DiskConfig::new(directories.collect())
    };
    let open = || Disk::open(config(), Arc::new(SystemFiles), silent()).unwrap();
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let keys: Vec<u64> = (1..300).map(spread).collect();
    let segments = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".seg")).collect();
        names.sort();
        names
    };
    for lost in 0..2 {
        for path in &paths {
            drop(std::fs::remove_dir_all(path));
        }
        let disk = open();
        for key in &keys {
            append(&disk, *key, 100);
        }
        until("the writers", || disk.usage().stored == keys.len() as u64);
        drop(disk);
        let before = segments(&paths[lost]);
        std::fs::remove_dir_all(&paths[lost]).unwrap();
        let disk = open();
        wait_for_index(&disk);
        let left = disk.usage().entries;
        let found = keys.iter().filter(|key| load(&disk, **key).is_some());
        assert_eq!(found.count() as u64, left, "{lost} was lost");
        let share = if lost == 0 { 224 } else { 75 };
        assert!(left.abs_diff(share) < 25, "{left} of 299 are left");
        // it is used again, and never under a number that was used before
        for key in &keys {
            append(&disk, *key, 100);
        }
        until("the writers", || disk.usage().stored == keys.len() as u64);
        assert_eq!(disk.usage().entries, keys.len() as u64);
        let after = segments(&paths[lost]);
        assert!(!after.is_empty() && after.iter().all(|name| !before.contains(name)));
    }
}

#[test]
fn second_open_of_a_store_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let refused = Disk::open(config(directory.path()), Arc::new(SystemFiles), silent());
    let error = refused.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OpenError::InUse { .. }), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    disk.close();
    drop(open(directory.path()));
}

#[test]
fn store_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let path = directory.path().join(SUPERBLOCK_FILE);
    let old = std::fs::read(&path).unwrap();
    // what a newer version would write: another number, and a checksum that fits
    let mut page = old[..4096].to_vec();
    page[8] = 3;
    let sum = twox_hash::XxHash3_64::oneshot_with_seed(0, &page[..4088]);
    page[4088..].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, [&page[..], &page[..]].concat()).unwrap();
    let refused = Disk::open(config(directory.path()), Arc::new(SystemFiles), silent());
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("format version 3"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap()[8], 3, "it was changed");
}

#[test]
fn unusable_directory_is_refused_with_an_io_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    for path in [file.join("store"), file, "/proc/weir-store".into()] {
        let refused = Disk::open(config(&path), Arc::new(SystemFiles), silent());
        assert!(matches!(refused, Err(OpenError::Io { .. })), "{refused:?}");
    }
}

/// What a store tells, and the list that this is in.
fn collected() -> (NoticeHandler, Arc<Mutex<Vec<Notice>>>) {
    let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let told = Arc::clone(&notices);
    let log: NoticeHandler = Arc::new(move |notice| told.lock().expect("no panic").push(notice));
    (log, notices)
}

/// Appends records until that is so: the open segment takes what it has room for, and the next one
/// cannot be made where its directory is gone.
fn append_until(disk: &Disk, what: &str, is_so: impl Fn() -> bool) {
    let mut key = 2;
    until(what, || {
        key += u64::from(disk.append(record(disk, key, LARGE)).is_ok());
        is_so()
    });
}

/// All that it could concern seems to have left, and the journal is written anew.
#[test]
fn purge_survives_for_a_segment_that_could_not_be_opened_when_it_came() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = open(directory.path());
    append(&disk, 1, 1000);
    append_until(&disk, "a second segment", || disk.usage().segments > 1);
    disk.close();
    drop(disk);
    let first = {
        let entries = std::fs::read_dir(directory.path()).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        let segments = paths.filter(|path| path.extension().is_some_and(|it| it == "seg"));
        segments.min().unwrap()
    };
    let kept = elsewhere.path().join("kept");
    std::fs::copy(&first, &kept).unwrap();
    std::fs::remove_file(&first).unwrap();
    std::fs::create_dir(&first).unwrap();
    let disk = open(directory.path());
    wait_for_index(&disk);
    block_on(disk.purge(digest(1))).unwrap();
    // more than the journal keeps without need
    let more: Vec<_> = (0..5000)
        .map(|key| disk.purge(digest(1_000_000 + key)))
        .collect();
    more.into_iter()
        .for_each(|purged| block_on(purged).unwrap());
    // twice what it may hold
    append_until(&disk, "eviction of all", || {
        disk.usage().written_bytes > 128 << 20
    });
    disk.close();
    drop(disk);
    std::fs::remove_dir(&first).unwrap();
    std::fs::copy(&kept, &first).unwrap();
    let disk = open(directory.path());
    wait_for_index(&disk);
    assert!(first.is_file(), "it is not of the store any more");
    assert!(load(&disk, 1).is_none());
}

#[test]
fn lock_holds_though_its_file_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let _disk = open(directory.path());
    std::fs::remove_file(directory.path().join("lock")).unwrap();
    let refused = Disk::open(config(directory.path()), Arc::new(SystemFiles), silent());
    assert!(
        matches!(refused, Err(OpenError::InUse { .. })),
        "{refused:?}"
    );
}

fn names_in(path: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(path).expect("a directory");
    let names = entries.map(|entry| entry.expect("a name").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn directory_that_another_process_has_taken_is_not_written_to() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("store");
    let (log, notices) = collected();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let (disk, mut directories) = stepped::open(&config(&path), &files, &log).unwrap();
    let directory = &mut directories[0];
    while directory.load() {}
    append(&disk, 1, 1000);
    directory.write();
    std::fs::remove_dir_all(&path).unwrap();
    // as another process does
    let other = open(&path);
    append(&other, 1, 1000);
    until("the other writer", || other.usage().stored == 1);
    let before = names_in(&path);
    // fills the open segment, and tries to begin the next one, behind each rest
    let mut write = || {
        for key in 2..50 {
            let _refused = disk.append(record(&disk, key, LARGE));
            directory.write();
            directory.advance_clock_ms(61_000);
        }
    };
    write();
    let said = |notice: &Notice| notice.to_string().contains("has it open now");
    assert!(notices.lock().unwrap().iter().any(said), "{notices:?}");
    assert_eq!((names_in(&path), disk.usage().fenced), (before, 1));
    // nor when that process has ended
    other.close();
    drop(other);
    let before = names_in(&path);
    write();
    assert_eq!((names_in(&path), disk.usage().fenced), (before, 1));
    drop((disk, directories));
    let other = open(&path);
    wait_for_index(&other);
    assert!(load(&other, 1).is_some());
}

#[test]
fn store_recreates_a_directory_that_is_removed_while_in_use() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("store");
    let (log, notices) = collected();
    let disk = Disk::open(config(&path), Arc::new(SystemFiles), log).unwrap();
    append(&disk, 1, 1000);
    until("the writer", || disk.usage().stored == 1);
    std::fs::remove_dir_all(&path).unwrap();
    append_until(&disk, "a new directory", || {
        path.join(SUPERBLOCK_FILE).exists()
    });
    assert!(!notices.lock().unwrap().is_empty());
    until("the fence", || disk.usage().fenced == 0);
    append(&disk, 1, 1000);
    until("the record", || disk.find(digest(1)).is_some());
    assert_eq!(
        load(&disk, 1).unwrap().inline.as_deref(),
        Some(&*content(1, 1000))
    );
    // and no other process may use it
    let refused = Disk::open(config(&path), Arc::new(SystemFiles), silent());
    assert!(
        matches!(refused, Err(OpenError::InUse { .. })),
        "{refused:?}"
    );
}

/// A closed store with a response under key 1.
fn closed_store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let disk = open(directory.path());
    append(&disk, 1, 1000);
    until("the writer", || disk.usage().stored == 1);
    disk.close();
    directory
}

#[test]
fn unreadable_segment_is_set_aside_and_the_store_opens() {
    let directory = closed_store();
    let segment = directory.path().join("0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[9] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let disk = open(directory.path());
    wait_for_index(&disk);
    assert!(load(&disk, 1).is_none());
    assert_eq!(disk.usage().set_aside, 1);
    assert!(directory.path().join("0000000000000001.seg.aside").exists());
}

/// Names as segments have them, of which the higher ones leave few numbers, or none.
#[test]
fn files_that_others_have_put_among_the_segments_stop_no_store() {
    let directory = closed_store();
    let pipe = directory.path().join("00000000000000f0.seg");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for name in [
        "0000ffffffffffff.seg",
        "fffffffffffffff0.seg",
        "ffffffffffffffff.seg",
    ] {
        std::fs::write(directory.path().join(name), []).unwrap();
    }
    // each makes a segment, with a number of its own
    for key in 2..4 {
        let disk = open(directory.path());
        wait_for_index(&disk);
        append(&disk, key, 1000);
        until("the writer", || disk.usage().stored == 1);
        for stored in 1..=key {
            assert!(load(&disk, stored).is_some(), "{stored} of {key}");
        }
        assert_eq!(disk.usage().write_errors, 0);
        disk.close();
    }
    for name in [
        "00000000000000f0.seg",
        "0000ffffffffffff.seg",
        "ffffffffffffffff.seg",
    ] {
        assert!(directory.path().join(format!("{name}.aside")).exists());
    }
    // behind the pipe, which may have been one of this store
    assert!(directory.path().join("00000000000000f1.seg").exists());
}

/// The kernel would interrupt it in its calls: one with a time limit fails then.
#[test]
fn thread_that_opened_a_store_is_not_interrupted_when_the_store_closes() {
    let directory = tempfile::tempdir().unwrap();
    let (socket, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let limit = std::time::Duration::from_millis(40);
    socket.set_read_timeout(Some(limit)).unwrap();
    for key in 0..20 {
        let disk = open(directory.path());
        append(&disk, key, 10_000);
        until("the writer", || disk.usage().stored == 1);
        assert!(load(&disk, key).is_some());
        disk.close();
        drop(disk);
        let error = socket.recv(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
