//! Opens or makes a directory: a few small reads, so that the store can be used at once.

use crate::directory::purging::journal::{Journal, JournalEntries, JournalState};
use crate::directory::queue::GATHER_TIME;
use crate::directory::segment::NewSegment;
use crate::directory::starting::loader::{Loader, header, set_aside};
use crate::directory::starting::scan::trailer;
use crate::directory::writer::Writer;
use crate::directory::{
    Clock, Counters, Directory, DirectoryLock, Fence, ForgottenKeys, Limits, Pool, Purges, Queue,
    Segments,
};
use crate::disk::{NoticeHandler, Tickets};
use crate::files::{Access, Files, HeldLock, Lock, read_bytes, write_full};
use crate::format::{
    FORMAT_VERSION, FormatErrorKind, JOURNAL_FILE, PAGE_BYTES, PurgeEntry, PurgeScope,
    SUPERBLOCK_FILE, StoreId, Superblock, Volume, segment_file_name, segment_number,
};
use crate::index::Index;
use crate::lock::lock;
use crate::{Notice, OpenError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use weir_policy::Secret;

/// The file that is locked.
pub(crate) const LOCK_FILE: &str = "lock";

/// A directory that is ours, and what its first file says.
pub(crate) struct LockedDirectory {
    pub(crate) path: PathBuf,
    pub(crate) lock: Box<dyn HeldLock>,
    /// `None`: there is no store in it yet.
    pub(crate) superblock: Option<Superblock>,
    /// It was written by an older version of the format.
    pub(crate) is_older: bool,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> OpenError + use<'_> {
    move |error| OpenError::Io {
        path: path.to_path_buf(),
        error,
    }
}

/// Makes a directory ours alone. The lock of a process that has ended is waited for until then.
pub(crate) fn lock_directory(
    files: &dyn Files,
    path: &Path,
    until: Instant,
) -> Result<LockedDirectory, OpenError> {
    files.create_directory(path).map_err(failed(path))?;
    let lock = files.lock_by(&path.join(LOCK_FILE), until);
    let lock = match lock.map_err(failed(path))? {
        Lock::Held(lock) => lock,
        Lock::Taken(pid) => {
            return Err(OpenError::InUse {
                path: path.to_path_buf(),
                pid,
            });
        }
    };
    let found = read_superblock(files, path)?;
    Ok(LockedDirectory {
        path: path.to_path_buf(),
        lock,
        superblock: found.map(|(superblock, _)| superblock),
        is_older: found.is_some_and(|(_, version)| version < FORMAT_VERSION),
    })
}

/// The superblock is written twice, a page each: one may be damaged. With it the version that it is
/// of.
fn read_superblock(files: &dyn Files, path: &Path) -> Result<Option<(Superblock, u32)>, OpenError> {
    let name = path.join(SUPERBLOCK_FILE);
    let file = match files.open(&name, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&name)(error)),
    };
    let mut first_error = None;
    for copy in 0..2 {
        let page = read_bytes(&*file, copy * PAGE_BYTES as u64, PAGE_BYTES);
        match Superblock::decode_versioned(&page.map_err(failed(&name))?) {
            Ok(found) => return Ok(Some(found)),
            Err(error) => {
                if let FormatErrorKind::Newer { version } = error.kind {
                    return Err(OpenError::Newer {
                        path: name,
                        found: version,
                        known: FORMAT_VERSION,
                    });
                }
                first_error.get_or_insert(error);
            }
        }
    }
    Err(OpenError::Unreadable {
        path: name,
        what: first_error.map_or_else(String::new, |error| {
            format!("both copies of what identifies the store are damaged: {error}")
        }),
    })
}

/// A new store, or one more directory of an old one: by the lowest number that is free, so that it
/// takes the place of one that was lost, and the keys of the others stay where they are.
pub(crate) fn new_superblock(
    files: &dyn Files,
    others: &[Superblock],
    segment_bytes: u32,
) -> io::Result<Superblock> {
    let (mut store, mut secret) = ([0; 16], [0; 16]);
    match others.first() {
        Some(other) => (store, secret) = (other.volume.store.0, other.secret.0),
        None => {
            files.random(&mut store)?;
            files.random(&mut secret)?;
        }
    }
    let is_used = |number: &u32| others.iter().any(|it| it.volume.directory == *number);
    Ok(Superblock {
        volume: Volume {
            store: StoreId(store),
            directory: (0..u32::MAX)
                .find(|number| !is_used(number))
                .unwrap_or(u32::MAX),
        },
        secret: Secret(secret),
        made_s: files.wall_s(),
        segment_bytes,
    })
}

/// Writes it under another name first, so that there is never half of one.
pub(crate) fn write_superblock(
    files: &dyn Files,
    path: &Path,
    superblock: &Superblock,
) -> io::Result<()> {
    let new = path.join("store.weir.new");
    match files.unlink(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = files.open(&new, Access::Create)?;
    let page = superblock.encode();
    write_full(&*file, &[&page, &page], 0)?;
    file.sync()?;
    files.rename(&new, &path.join(SUPERBLOCK_FILE))?;
    files.sync_directory(path)
}

/// What is needed to put a directory to use.
pub(crate) struct DirectoryParams {
    pub(crate) position: u16,
    pub(crate) path: PathBuf,
    pub(crate) lock: Box<dyn HeldLock>,
    pub(crate) superblock: Superblock,
    pub(crate) limits: Limits,
    pub(crate) queue_bytes_max: usize,
    pub(crate) reads_waiting_max: usize,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) clock: Clock,
    pub(crate) is_stepped: bool,
    pub(crate) log: NoticeHandler,
}

/// A directory whose files are open and whose journal was read; nothing was changed yet.
pub(crate) struct OpenedDirectory {
    pub(crate) directory: Directory,
    pub(crate) journal: Journal,
    pub(crate) found: JournalState,
    pub(crate) next_number: u64,
}

/// Opens all files, and learns which generations were given out before.
pub(crate) fn open(params: DirectoryParams) -> Result<OpenedDirectory, OpenError> {
    let path = params.path.clone();
    let volume = params.superblock.volume;
    let directory = Directory {
        position: params.position,
        path: params.path,
        volume,
        limits: params.limits,
        files: params.files,
        tickets: params.tickets,
        index: Index::new(),
        segments: Segments::default(),
        purges: Purges::default(),
        forgotten: ForgottenKeys::default(),
        queue: Queue::new(params.queue_bytes_max, GATHER_TIME),
        pool: Pool::new(params.reads_waiting_max, params.is_stepped),
        fence: Fence::default(),
        counters: Counters::default(),
        page_cache: Mutex::default(),
        is_indirect: AtomicBool::new(false),
        gate: Mutex::new(()),
        first_generation: 0,
        is_loading: AtomicBool::new(true),
        is_incomplete: AtomicBool::new(false),
        oldest_closed: AtomicU64::new(u64::MAX),
        has_leftovers: AtomicBool::new(false),
        must_empty: AtomicBool::new(false),
        lock: Mutex::new(DirectoryLock::Held(params.lock)),
        clock: params.clock,
        log: params.log,
    };
    let (numbers, closed) = open_segments(&directory)?;
    let mut journal = Journal::new(&path, volume.journal());
    let found = journal.read(&*directory.files);
    let found = found.map_err(failed(&path.join(JOURNAL_FILE)))?;
    directory.tickets.raise(journal.last);
    let (newest, generation) = reserved(&directory, closed)?;
    directory.tickets.raise(generation);
    Ok(OpenedDirectory {
        directory,
        journal,
        found,
        next_number: number_after(newest, &numbers),
    })
}

/// A segment that cannot be opened, and why.
type Closed = (u64, io::Error);

/// A file whose number is higher by more than that than the newest segment's was not made here: a
/// store that writes 64 MiB each has written 256 PiB by then.
const NUMBERS_BETWEEN_MAX: u64 = 1 << 32;

/// The number of the next segment behind the `newest` that can be read: higher than any that a file
/// has or had, of those that were made here.
fn number_after(newest: u64, numbers: &[u64]) -> u64 {
    let last = newest.saturating_add(NUMBERS_BETWEEN_MAX);
    let ours = numbers.iter().copied().filter(|number| *number <= last);
    ours.fold(newest, u64::max).saturating_add(1)
}

/// The numbers of all files of segments, those set aside included, and what cannot be opened.
fn open_segments(directory: &Directory) -> Result<(Vec<u64>, Vec<Closed>), OpenError> {
    let mut closed = Vec::new();
    let path = &directory.path;
    let names = directory.files.list(path).map_err(failed(path))?;
    let numbers = |suffix: &'static str| {
        let stems = names
            .iter()
            .filter_map(move |name| name.strip_suffix(suffix));
        stems.filter_map(segment_number)
    };
    let all = numbers("").chain(numbers(".aside")).collect();
    for number in numbers("") {
        let name = path.join(segment_file_name(number));
        let file = directory.files.open(&name, Access::Read);
        let (file, len) = match file.and_then(|file| Ok((Arc::clone(&file), file.len()?))) {
            Ok(opened) => opened,
            Err(error) => {
                directory.is_incomplete.store(true, Ordering::Release);
                directory.failed("open a segment", &error, true);
                directory.oldest_closed.fetch_min(number, Ordering::AcqRel);
                closed.push((number, error));
                continue;
            }
        };
        directory.segments.add(NewSegment {
            number,
            seal: directory.volume.segment(number),
            path: name,
            file,
            bytes: len,
            end: len,
            is_sealed: true,
        });
    }
    Ok((all, closed))
}

/// The number of the newest segment whose header can be read, 0 if there is none, and the newest
/// generation that may have been given out by then. What is newer than that one is set aside for
/// good: it may hold generations that will be given out again, and purges of then would not concern
/// it.
fn reserved(directory: &Directory, closed: Vec<Closed>) -> Result<(u64, u64), OpenError> {
    let mut unreadable: Vec<(u64, String)> = closed
        .into_iter()
        .map(|(number, error)| (number, error.to_string()))
        .collect();
    let (mut base, mut generation) = (0, 0);
    for segment in directory.segments.all().iter().rev() {
        match header(directory, segment) {
            Ok(Ok(header)) => {
                let sealed = trailer(&*segment.file, segment.seal, segment.end());
                generation = match sealed {
                    Ok(Some(trailer)) => trailer.generation,
                    Ok(None) | Err(_) => header.generation,
                };
                base = segment.number;
                break;
            }
            Ok(Err(why)) => unreadable.push((segment.number, why)),
            Err(error) => unreadable.push((segment.number, error.to_string())),
        }
    }
    unreadable.retain(|(number, _)| *number > base);
    for (number, why) in &unreadable {
        if let Some(segment) = directory.segments.numbered(*number) {
            directory.segments.retire(&segment);
        }
        let path = directory.path.join(segment_file_name(*number));
        set_aside(directory, &path, why).map_err(failed(&path))?;
    }
    if !unreadable.is_empty() {
        let path = &directory.path;
        directory.files.sync_directory(path).map_err(failed(path))?;
    }
    Ok((base, generation))
}

/// Puts the journal's purges in force, and mends the journal. All directories were opened before:
/// the count of generations is right.
pub(crate) fn start(mut opened: OpenedDirectory) -> (Arc<Directory>, Writer, Loader) {
    opened.directory.first_generation = opened.directory.tickets.peek() + 1;
    let directory = Arc::new(opened.directory);
    let mut journal = opened.journal;
    let files = &*directory.files;
    let is_new = directory.segments.all().is_empty();
    let why = match opened.found {
        JournalState::Entries(found) => {
            mirror(&directory, &mut journal, &found);
            None
        }
        JournalState::Absent if is_new => {
            let floor = PurgeEntry {
                generation: 0,
                what: PurgeScope::Floor,
                segment: 0,
            };
            if let Err(error) = journal.rewrite(files, &[floor]) {
                directory.failed("begin the purge journal", &error, false);
            }
            None
        }
        JournalState::Absent => Some("it is missing".to_owned()),
        JournalState::Damaged(why) => Some(why),
    };
    if let Some(why) = why {
        directory.tell(Notice::JournalDamaged {
            path: journal.path(),
            why,
        });
        directory.must_empty.store(true, Ordering::Release);
    }
    let loader = Loader::new(Arc::clone(&directory), journal.last);
    if is_new {
        directory.is_loading.store(false, Ordering::Release);
    }
    let writer = Writer::new(Arc::clone(&directory), journal, opened.next_number);
    (directory, writer, loader)
}

/// Puts purges in force, and rewrites the journal if not both copies have them.
fn mirror(directory: &Directory, journal: &mut Journal, found: &JournalEntries) {
    for entry in &found.entries {
        let segment = Some(entry.segment);
        directory.purges.note(entry.what, entry.generation, segment);
    }
    if found.recovered > 0 {
        directory.counters.purges_recovered.add(found.recovered);
        directory.tell(Notice::JournalRecovered {
            path: journal.path(),
            entries: found.recovered,
            why: found.damage.clone(),
        });
    }
    if !journal.is_good() {
        let entries = directory.purges.entries();
        if let Err(error) = journal.rewrite(&*directory.files, &entries) {
            // the writer tries again before it does anything else
            directory.failed("write the purge journal twice", &error, false);
        }
    }
}

/// Restores the directory's own files if they were removed while the store is open.
///
/// # Errors
/// What the system says, or another process has the directory.
pub(crate) fn restore(directory: &Directory) -> io::Result<()> {
    let files = &*directory.files;
    lock_again(directory)?;
    match files.open(&directory.path.join(SUPERBLOCK_FILE), Access::Read) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // the journal went with it: nothing that we have may be trusted
            directory.must_empty.store(true, Ordering::Release);
            files.create_directory(&directory.path)?;
            let superblock = Superblock {
                volume: directory.volume,
                secret: directory.tickets.secret(),
                made_s: files.wall_s(),
                segment_bytes: directory.limits.segment_bytes,
            };
            write_superblock(files, &directory.path, &superblock)
        }
        Err(error) => Err(error),
    }
}

/// Takes the lock again if its file was removed, or the directory with it: else another process
/// could use it, too.
fn lock_again(directory: &Directory) -> io::Result<()> {
    if directory.is_locked() {
        return Ok(());
    }
    let (files, path) = (&*directory.files, directory.path.join(LOCK_FILE));
    let mut held = lock(&directory.lock);
    files.create_directory(&directory.path)?;
    // first: that of the directory may be ours still
    *held = DirectoryLock::Lost;
    let new = match files.lock(&path)? {
        Lock::Held(new) => new,
        Lock::Taken(pid) => return Err(taken(pid)),
    };
    // what another process has left there is none of ours, and stays its own
    match read_superblock(files, &directory.path) {
        Ok(Some((found, _))) if found.volume != directory.volume => Err(io::Error::other(
            "another process has made the store anew: start this one again",
        )),
        Ok(_) => {
            *held = DirectoryLock::Held(new);
            Ok(())
        }
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

fn taken(pid: Option<u32>) -> io::Error {
    let process = pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    );
    io::Error::other(format!(
        "the directory was removed, and {process} has it open now"
    ))
}
