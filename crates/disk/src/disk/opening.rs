//! From a configuration to a store at work.

use super::{Disk, NoticeHandler, Tickets};
use crate::directory::purging::journal::JournalState;
use crate::directory::purging::purges::LOCAL;
use crate::directory::reads::pool::READS_AT_ONCE_MAX;
use crate::directory::segment::SEGMENTS_MAX;
use crate::directory::starting::loader::Loader;
use crate::directory::starting::open::{
    DirectoryParams, LockedDirectory, OpenedDirectory, lock_directory, new_superblock,
    open as open_directory, start, write_superblock,
};
use crate::directory::writer::Writer;
use crate::directory::{Clock, Directory, Limits, scrub};
use crate::files::Files;
use crate::format::{
    ALIGN_BYTES, CHUNK_BYTES, EXTENT_BYTES_MAX, PAGE_BYTES, PurgeEntry, PurgeScope,
    SEGMENT_BYTES_MAX, Superblock,
};
use crate::lock::lock;
use crate::{DirectoryConfig, DiskConfig, Notice, OpenError, SEGMENT_BYTES_DEFAULT, SEGMENTS_MIN};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long locks are waited for whose processes have ended, of all directories together.
const ENDED_PROCESS_WAIT: Duration = Duration::from_secs(5);

type DirectoryParts = (Arc<Directory>, Writer, Loader);

/// With threads.
pub(super) fn open(
    config: &DiskConfig,
    files: &Arc<dyn Files>,
    log: &NoticeHandler,
) -> Result<Arc<Disk>, OpenError> {
    let since = Instant::now();
    let (disk, stepped) = assemble(config, files, log, &|| Clock::Running(since), false)?;
    for (directory, writer, loader) in stepped {
        let path = directory.path.clone();
        let spawned = spawn(&disk, config, &directory, writer, loader);
        spawned.map_err(|error| OpenError::Io { path, error })?;
    }
    Ok(disk)
}

/// Without threads: the owner of the writers and loaders steps them.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn assemble_stepped(
    config: &DiskConfig,
    files: &Arc<dyn Files>,
    log: &NoticeHandler,
) -> Result<(Arc<Disk>, Vec<DirectoryParts>), OpenError> {
    assemble(
        config,
        files,
        log,
        &|| Clock::Manual(AtomicU64::new(0)),
        true,
    )
}

fn assemble(
    config: &DiskConfig,
    files: &Arc<dyn Files>,
    log: &NoticeHandler,
    clock: &dyn Fn() -> Clock,
    is_stepped: bool,
) -> Result<(Arc<Disk>, Vec<DirectoryParts>), OpenError> {
    if config.directories.is_empty() {
        return Err(OpenError::NoDirectory);
    }
    let limits: Vec<Limits> = config
        .directories
        .iter()
        .map(|directory| limits(config, directory))
        .collect::<Result<_, _>>()?;
    let until = Instant::now() + ENDED_PROCESS_WAIT;
    let claimed: Vec<LockedDirectory> = config
        .directories
        .iter()
        .map(|directory| lock_directory(&**files, &directory.path, until))
        .collect::<Result<_, _>>()?;
    let superblocks = superblocks(&**files, &claimed, &limits)?;
    upgrade(&**files, &claimed)?;
    let tickets = Arc::new(Tickets {
        last: AtomicU64::new(0),
        secret: Mutex::new(superblocks[0].secret),
    });
    let claimed_count = claimed.len().max(1);
    let mut opened = Vec::new();
    for ((claimed, superblock), (limits, position)) in claimed
        .into_iter()
        .zip(superblocks)
        .zip(limits.into_iter().zip(0..))
    {
        opened.push(open_directory(DirectoryParams {
            position,
            path: claimed.path,
            lock: claimed.lock,
            superblock,
            limits,
            // all of them together hold no more than one would
            queue_bytes_max: config.queue_bytes_max / claimed_count,
            reads_waiting_max: config.reads_waiting_max,
            files: Arc::clone(files),
            tickets: Arc::clone(&tickets),
            clock: clock(),
            is_stepped,
            log: Arc::clone(log),
        })?);
    }
    catch_up(&mut opened);
    number_behind(&mut opened, tickets.peek());
    opened.sort_by_key(|opened| opened.directory.volume.directory);
    for directory in opened.iter().map(|opened| &opened.directory) {
        if !files.tells_residency(&directory.path) {
            let path = directory.path.clone();
            directory.tell(Notice::PageByPage { path });
        }
    }
    let stepped: Vec<DirectoryParts> = opened.into_iter().map(start).collect();
    let disk = Disk {
        tickets,
        directories: stepped.iter().map(|(it, ..)| Arc::clone(it)).collect(),
        purging: Mutex::new(()),
        is_closing: Arc::new(AtomicBool::new(false)),
        threads: Mutex::default(),
    };
    Ok((Arc::new(disk), stepped))
}

/// Files of a directory that are no segments: lock, both copies of the journal, superblock, and
/// what is written beside them to replace them; the rings of its reads.
const DIRECTORY_FILES: u64 = 16;

/// Files that a directory of so many bytes may have open, once it is full of segments of the
/// default size: each is open twice once it was read past the page cache.
#[must_use]
pub fn open_files_max(directory_bytes: u64) -> u64 {
    let smallest = directory_bytes / (SEGMENTS_MAX as u64 / 2);
    let part = directory_bytes / SEGMENTS_MIN;
    let segment_bytes = SEGMENT_BYTES_DEFAULT.min(part).max(smallest).max(1);
    2 * directory_bytes.div_ceil(segment_bytes) + DIRECTORY_FILES
}

/// Segments large enough that there are not too many files, and small enough that an eviction
/// removes little.
fn limits(config: &DiskConfig, directory: &DirectoryConfig) -> Result<Limits, OpenError> {
    let segments_min = config.segments_min.max(2);
    let least = config.segment_bytes_min.max(2 * PAGE_BYTES as u64);
    let largest = (directory.bytes / segments_min).min(u64::from(SEGMENT_BYTES_MAX));
    if largest < least {
        return Err(OpenError::TooSmall {
            path: directory.path.clone(),
            bytes_min: least * segments_min,
        });
    }
    // half of the permitted files, as each start ends one that is not full
    let smallest = directory.bytes / (SEGMENTS_MAX as u64 / 2);
    let wanted = config.segment_bytes.max(smallest).max(least);
    let align = ALIGN_BYTES as u64;
    let segment_bytes = wanted.min(largest) / align * align;
    // what does not fit any more stays empty at a segment's end: an eighth at most, but a block
    // lies in one extent
    let block_bytes = (CHUNK_BYTES as u64).min(segment_bytes / 2);
    let extent_bytes =
        (segment_bytes / 8).clamp(block_bytes, u64::from(EXTENT_BYTES_MAX)) / align * align;
    Ok(Limits {
        bytes: directory.bytes,
        segment_bytes: u32::try_from(segment_bytes).unwrap_or(SEGMENT_BYTES_MAX),
        extent_bytes: u32::try_from(extent_bytes).unwrap_or(EXTENT_BYTES_MAX),
        sync_interval_ms: config.sync_interval_ms,
        verify: config.verify,
    })
}

/// What each directory says of itself; those that say nothing yet are made part of the store.
fn superblocks(
    files: &dyn Files,
    claimed: &[LockedDirectory],
    limits: &[Limits],
) -> Result<Vec<Superblock>, OpenError> {
    let mut known: Vec<Superblock> = Vec::new();
    for directory in claimed {
        let Some(superblock) = directory.superblock else {
            continue;
        };
        let fits = known.iter().all(|other| {
            other.volume.store == superblock.volume.store
                && other.volume.directory != superblock.volume.directory
                && other.secret.0 == superblock.secret.0
        });
        if !fits {
            return Err(OpenError::Mixed {
                path: directory.path.clone(),
            });
        }
        known.push(superblock);
    }
    let mut all = Vec::new();
    for (directory, limits) in claimed.iter().zip(limits) {
        if let Some(superblock) = directory.superblock {
            all.push(superblock);
            continue;
        }
        let made = new_superblock(files, &known, limits.segment_bytes)
            .and_then(|made| {
                write_superblock(files, &directory.path, &made)?;
                Ok(made)
            })
            .map_err(|error| OpenError::Io {
                path: directory.path.clone(),
                error,
            })?;
        known.push(made);
        all.push(made);
    }
    Ok(all)
}

/// Directories of an older version become ones of this version, before anything is written that the
/// older one would not understand.
fn upgrade(files: &dyn Files, claimed: &[LockedDirectory]) -> Result<(), OpenError> {
    for directory in claimed.iter().filter(|it| it.is_older) {
        let Some(superblock) = &directory.superblock else {
            continue;
        };
        let written = write_superblock(files, &directory.path, superblock);
        written.map_err(|error| OpenError::Io {
            path: directory.path.clone(),
            error,
        })?;
    }
    Ok(())
}

/// A directory that was away for a while, or whose journal is an entry behind after a crash, gets
/// the purges it has missed from the others; if they have dropped some of them, it is emptied.
fn catch_up(opened: &mut [OpenedDirectory]) {
    let all: Vec<PurgeEntry> = opened
        .iter()
        .filter_map(|opened| match &opened.found {
            JournalState::Entries(found) => Some(&found.entries),
            JournalState::Absent | JournalState::Damaged(_) => None,
        })
        .flatten()
        .copied()
        .filter(|entry| !is_local(entry))
        .collect();
    for one in opened {
        let last = one.journal.last;
        let JournalState::Entries(found) = &mut one.found else {
            continue;
        };
        let mut missed: Vec<PurgeEntry> = all
            .iter()
            .filter(|entry| entry.generation > last)
            .map(|entry| PurgeEntry {
                segment: one.next_number.saturating_sub(1),
                ..*entry
            })
            .collect();
        missed.sort_unstable_by_key(|entry| entry.generation);
        missed.dedup_by_key(|entry| entry.generation);
        if missed.is_empty() {
            continue;
        }
        let has_gap = missed.iter().any(|entry| entry.what == PurgeScope::Floor);
        // one that must be rewritten gets them then
        let is_written = !one.journal.is_good() || one.journal.append(&missed).is_ok();
        if has_gap || !is_written {
            one.directory.must_empty.store(true, Ordering::Release);
        }
        missed.retain(|entry| entry.what != PurgeScope::Floor);
        found.entries.extend(missed);
    }
}

/// A directory without segments may have had some, or be in the place of one that is lost: no
/// number is used a second time, or old bytes on the device might verify. Fewer segments were begun
/// than generations given out, but for those that failed at once, of which the journal knows.
fn number_behind(opened: &mut [OpenedDirectory], generation: u64) {
    for one in opened {
        if !one.directory.segments.all().is_empty() {
            continue;
        }
        let journaled = match &one.found {
            JournalState::Entries(found) => &found.entries[..],
            JournalState::Absent | JournalState::Damaged(_) => &[],
        };
        let numbers = journaled.iter().map(|entry| entry.segment);
        let most = numbers.filter(|number| *number != LOCAL).max();
        let behind = generation.max(most.unwrap_or(0)) + 1;
        one.next_number = one.next_number.max(behind);
    }
}

/// Whether an entry concerns its own directory only: that was emptied after a fault of its own.
fn is_local(entry: &PurgeEntry) -> bool {
    entry.what == PurgeScope::All && entry.segment == LOCAL
}

/// What threads that read are called.
const READER: &str = "disk-reader";

fn spawn(
    disk: &Arc<Disk>,
    config: &DiskConfig,
    directory: &Arc<Directory>,
    writer: Writer,
    loader: Loader,
) -> io::Result<()> {
    let closing = || {
        let is_closing = Arc::clone(&disk.is_closing);
        move || is_closing.load(Ordering::Acquire)
    };
    run(disk, "disk-writer", move || writer.run())?;
    let is_closing = closing();
    run(disk, "disk-loader", move || loader.run(is_closing))?;
    let (reading, threads) = (Arc::clone(directory), config.readers);
    run(disk, READER, move || {
        let batch = reading.files.batch(READS_AT_ONCE_MAX);
        reading.pool.serve(batch, (READER, threads), |threads| {
            let path = reading.path.clone();
            reading.tell(Notice::OneByOne { path, threads });
        });
    })?;
    if config.scrub_bytes_per_s > 0 {
        let (directory, is_closing) = (Arc::clone(directory), closing());
        let rate = config.scrub_bytes_per_s;
        run(disk, "disk-scrub", move || {
            scrub::run(&directory, rate, is_closing);
        })?;
    }
    Ok(())
}

fn run(disk: &Disk, name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread: JoinHandle<()> = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(what)?;
    let mut threads = lock(&disk.threads);
    threads.push(thread);
    Ok(())
}
