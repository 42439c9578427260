//! The writer: writes everything that waits in one call, purges first.
//!
//! Stepped: a thread calls [`Writer::step`] in a loop, a test by hand. Nothing here is shared, so
//! nothing is locked while the device works.

pub(super) mod batch;
mod placement;
pub(super) mod plan;

use crate::directory::Directory;
use crate::directory::active::Active;
use crate::directory::purging::journal::Journal;
use crate::directory::queue::{Job, PurgeJob};
use crate::directory::segment::Segment;
use crate::format::{PurgeEntry, PurgeScope};
use crate::{Notice, Refused};
use batch::Batch;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_policy::Digest;

/// Bytes of jobs that are taken from the queue at once.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Bytes that may be written and not synced: more would go to the device in one gulp, and reads
/// would wait behind it.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

/// Longest time without a look at the clock, in milliseconds.
const IDLE_MS_MAX: u64 = 1_000;

/// Segments that are given up for a new one if the device is full.
const ROOM_TRIES_MAX: usize = 4;

pub(crate) struct Writer {
    pub(super) directory: Arc<Directory>,
    pub(super) journal: Journal,
    pub(super) active: Option<Active>,
    pub(super) batch: Batch,
    pub(super) next_number: u64,
    synced_ms: u64,
    /// Files of retired segments that could not be removed.
    leftovers: Vec<PathBuf>,
    /// Purges that only segments before this one needed are dropped.
    compacted_to: u64,
}

impl Writer {
    pub(crate) fn new(directory: Arc<Directory>, journal: Journal, next_number: u64) -> Self {
        Self {
            directory,
            journal,
            active: None,
            batch: Batch::default(),
            next_number,
            synced_ms: 0,
            leftovers: Vec::new(),
            compacted_to: 0,
        }
    }

    /// What the thread does until the store is closed.
    pub(crate) fn run(mut self) {
        while self.directory.queue.wait(self.mode()) {
            self.step();
        }
        self.finish();
    }

    fn mode(&self) -> Duration {
        let now_ms = self.directory.clock.now_ms();
        let due_ms = match self.directory.fence.until_ms() {
            Some(until_ms) => until_ms,
            None if self.is_dirty() => self.synced_ms + self.directory.limits.sync_interval_ms,
            None => now_ms + IDLE_MS_MAX,
        };
        let ms = due_ms.saturating_sub(now_ms).min(IDLE_MS_MAX);
        Duration::from_millis(ms)
    }

    /// Writes what waits, and does what is due.
    pub(crate) fn step(&mut self) {
        if !self.is_allowed() {
            self.refuse_all();
            return;
        }
        let taken = self.directory.queue.take(BATCH_BYTES_MAX);
        self.write_purges(taken.purges);
        for job in taken.jobs {
            if self.directory.is_usable() {
                self.plan(job);
            } else {
                self.drop_job(job, Refused::Fenced);
            }
        }
        self.flush();
        let now_ms = self.directory.clock.now_ms();
        let unsynced = self.active.as_ref().map_or(0, |it| it.unsynced_bytes);
        if !self.is_dirty() {
            self.synced_ms = now_ms;
        } else if now_ms >= self.synced_ms + self.directory.limits.sync_interval_ms
            || unsynced >= UNSYNCED_BYTES_MAX
        {
            self.sync();
            self.synced_ms = now_ms;
        }
        self.compact();
        while self.directory.purges.is_full() {
            if !self.give_up_oldest() {
                if self.active.is_none() {
                    break;
                }
                self.seal();
            }
            self.compact();
        }
    }

    /// Whether there is something that is not durable.
    fn is_dirty(&self) -> bool {
        match &self.active {
            Some(active) => active.unsynced_bytes > 0 || active.purged < self.journal.last,
            None => false,
        }
    }

    /// Whether the directory may be used; tries one that has rested.
    fn is_allowed(&mut self) -> bool {
        let directory = Arc::clone(&self.directory);
        let now_ms = directory.clock.now_ms();
        match directory.fence.until_ms() {
            Some(until_ms) if now_ms < until_ms => return false,
            None if !directory.must_empty.load(Ordering::Acquire) && self.journal.is_good() => {
                return true;
            }
            _ => {}
        }
        let was_fenced = directory.fence.is_up();
        match self.revive() {
            Ok(()) => {
                directory.fence.lift();
                if was_fenced {
                    directory.tell(Notice::Unfenced {
                        path: directory.path.clone(),
                    });
                }
                true
            }
            Err(error) => {
                directory.failed("try again", &error, false);
                directory.fence.raise(now_ms);
                false
            }
        }
    }

    /// Does everything that using the directory needs.
    fn revive(&mut self) -> io::Result<()> {
        let directory = Arc::clone(&self.directory);
        super::starting::open::restore(&directory)?;
        if directory.must_empty.load(Ordering::Acquire) {
            self.empty()?;
        } else if !self.journal.is_good() {
            // what is in force is known: only how much of it the device has is not
            self.rewrite_journal()?;
        }
        self.roll()
    }

    /// Drops everything, durably: the journal says so before anything is removed.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        let directory = Arc::clone(&self.directory);
        // from here on nothing is found
        directory.must_empty.store(true, Ordering::Release);
        let generation = directory.tickets.next();
        directory.purges.empty(generation);
        let files = &*directory.files;
        self.journal.rewrite(files, &directory.purges.entries())?;
        self.batch.drop_all(&directory);
        self.active = None;
        for segment in directory.segments.all() {
            self.take_out(&segment);
        }
        self.remove_leftovers();
        directory.index.clear();
        directory.forgotten.clear();
        directory.is_incomplete.store(false, Ordering::Release);
        directory.must_empty.store(false, Ordering::Release);
        Ok(())
    }

    /// Nothing can be written: everything that waits hears so.
    fn refuse_all(&mut self) {
        let taken = self.directory.queue.take(usize::MAX);
        // the journal may still work: what fenced the directory may have been its reads
        self.write_purges(taken.purges);
        for job in taken.jobs {
            self.drop_job(job, Refused::Fenced);
        }
    }

    /// A job that is not done.
    pub(super) fn drop_job(&mut self, job: Job, why: Refused) {
        if let Some(key) = job.key().filter(|_| why != Refused::Outdated) {
            self.forget_older(key);
        }
        let directory = &self.directory;
        directory.queue.finished(job.charge(), job.key());
        match job {
            Job::Record(_) => directory.counters.lost.add(1),
            Job::Extent(job) => job.progress.fail(why),
            Job::Commit(job) => {
                directory.counters.lost.add(1);
                job.progress.fail(why);
            }
        }
    }

    /// A newer record of `key` is not stored: an older one must not be found in its place.
    pub(super) fn forget_older(&mut self, key: Digest) {
        if self.batch.generation(key).is_some() {
            // it would be found once it is written
            self.flush();
        }
        self.directory.forget_found(key);
    }

    fn write_purges(&mut self, mut jobs: Vec<PurgeJob>) {
        if jobs.is_empty() {
            return;
        }
        let directory = Arc::clone(&self.directory);
        jobs.sort_unstable_by_key(|job| job.generation);
        let segment = self.next_number.saturating_sub(1);
        let entries: Vec<PurgeEntry> = jobs
            .iter()
            .map(|job| PurgeEntry {
                generation: job.generation,
                what: job.what,
                segment,
            })
            .collect();
        let written = self.write_entries(&entries);
        let is_durable = written.is_ok();
        if let Err(error) = written {
            directory.must_empty.store(true, Ordering::Release);
            directory.failed("write the purge journal anew", &error, false);
        }
        for job in jobs {
            if is_durable {
                directory
                    .purges
                    .note(job.what, job.generation, Some(segment));
                directory.counters.purged.add(1);
                if let PurgeScope::Key(key) = job.what {
                    directory.forgotten.purged(key);
                }
            }
            match job.done.send(is_durable) {
                // the purging request may have ended
                Ok(()) | Err(_) => {}
            }
        }
        if is_durable && self.active.is_none() && !directory.fence.is_up() {
            // so that something beside the journal shows how far it goes
            self.roll_or_fail();
        }
    }

    /// Makes purges durable that are in force. If they cannot be added to the journal, its content
    /// from there on is not known: then a new journal with all purges in force replaces it. A purge
    /// is reported as durable only when it is.
    fn write_entries(&mut self, entries: &[PurgeEntry]) -> io::Result<()> {
        let directory = Arc::clone(&self.directory);
        let Err(error) = self.journal.append(entries) else {
            return Ok(());
        };
        directory.failed("write a purge", &error, false);
        if directory.must_empty.load(Ordering::Acquire) {
            // what the journal has lost is not known: a new one would look as if it had all
            return Err(error);
        }
        for entry in entries {
            directory
                .purges
                .note(entry.what, entry.generation, Some(entry.segment));
        }
        self.rewrite_journal()
    }

    /// Writes a journal with all that is in force. If there is no room for it, the oldest segments
    /// leave.
    fn rewrite_journal(&mut self) -> io::Result<()> {
        let directory = Arc::clone(&self.directory);
        directory.check_lock()?;
        self.with_room(|writer| {
            let all = directory.purges.entries();
            writer.journal.rewrite(&*directory.files, &all)
        })
    }

    /// Carries out `write`, and again after each eviction of the oldest segment while the device is
    /// full.
    fn with_room<T>(&mut self, mut write: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<T> {
        let mut tries = 0;
        loop {
            match write(self) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    self.directory.found_full(&error);
                    tries += 1;
                    if tries > ROOM_TRIES_MAX || !self.give_up_oldest() {
                        return Err(error);
                    }
                }
                written => return written,
            }
        }
    }

    /// Makes what was written durable.
    fn sync(&mut self) {
        self.mark();
        let Some(active) = &mut self.active else {
            return;
        };
        match active.segment.file.sync() {
            Ok(()) => {
                active.unsynced_bytes = 0;
                self.directory.fence.succeeded(false);
            }
            Err(error) => {
                // what is on the device is not known, and a second call would claim success: leave
                // this segment alone
                self.directory.failed("sync", &error, false);
                self.abandon();
            }
        }
    }

    fn abandon(&mut self) {
        if let Some(active) = self.active.take() {
            active.close();
        }
    }

    /// Seals the segment that is being written and begins the next.
    pub(super) fn roll(&mut self) -> io::Result<()> {
        let directory = Arc::clone(&self.directory);
        self.flush();
        self.seal();
        directory.check_lock()?;
        let active = self.with_room(|writer| {
            let number = writer.next_number;
            writer.next_number += 1;
            Active::create(&directory, number, writer.journal.last)
        })?;
        self.active = Some(active);
        if directory.has_leftovers.load(Ordering::Acquire) {
            self.remove_leftovers();
        }
        self.shrink();
        Ok(())
    }

    fn roll_or_fail(&mut self) -> bool {
        match self.roll() {
            Ok(()) => true,
            Err(error) => {
                self.directory.failed("begin a segment", &error, false);
                false
            }
        }
    }

    fn seal(&mut self) {
        if let Some(active) = self.active.take() {
            if let Err(error) = active.seal(&self.directory, self.journal.last) {
                self.directory.failed("seal a segment", &error, false);
            }
            active.close();
        }
    }

    /// Makes sure that `bytes` of one item go into the segment that is being written.
    pub(super) fn make_room(&mut self, bytes: u64) -> bool {
        for _ in 0..2 {
            if self.has_room(bytes) {
                return true;
            }
            if !self.roll_or_fail() {
                return false;
            }
        }
        false
    }

    /// Whether an item goes into the segment that is being written, as it is.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let capacity = self.directory.limits.segment_bytes;
        self.active.as_ref().is_some_and(|active| {
            let items = self.batch.items() + 1;
            let end = active.end + self.batch.bytes();
            // every generation that can be in it was given out already
            self.directory.tickets.peek() < active.ceiling
                && active.has_room(capacity, end, bytes, items)
        })
    }

    /// Takes a segment and its records out of everything. Its bytes are freed as soon as no reader
    /// holds it.
    pub(super) fn retire(&mut self, segment: &Segment) {
        self.take_out(segment);
        self.remove_leftovers();
    }

    fn take_out(&mut self, segment: &Segment) {
        let directory = Arc::clone(&self.directory);
        // its records leave the index now and the device later: until then a purge must be
        // journaled
        directory.has_leftovers.store(true, Ordering::Release);
        let gate = directory.gate();
        let mut left = 0;
        for resident in directory.index.residents(segment.slot) {
            left += u64::from(directory.index.remove_resident(&resident));
        }
        directory.segments.retire(segment);
        drop(gate);
        directory.counters.evicted.add(left);
        self.leftovers.push(segment.path.clone());
    }

    /// Removes files, and makes that durable: a segment that comes back must not do so after the
    /// purges that concern it were dropped, and older ones must not come back without newer ones.
    fn remove_leftovers(&mut self) {
        let directory = Arc::clone(&self.directory);
        if !directory.is_locked() {
            // they went with the directory: files of these names are another process's
            self.leftovers.clear();
        }
        let mut first_error = None;
        self.leftovers
            .retain(|path| match directory.files.unlink(path) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    first_error = Some(error);
                    true
                }
            });
        let synced = directory.files.sync_directory(&directory.path);
        match (first_error, synced) {
            (None, Ok(())) => directory.has_leftovers.store(false, Ordering::Release),
            (Some(error), _) | (None, Err(error)) => {
                directory.failed("remove a segment", &error, false);
            }
        }
    }

    /// Forgets purges that concern nothing any more, and shortens the journal if that is worth it.
    fn compact(&mut self) {
        let directory = Arc::clone(&self.directory);
        if directory.has_leftovers.load(Ordering::Acquire) {
            return;
        }
        if directory.purges.len() > 0 {
            let oldest = directory.segments.oldest();
            let oldest = oldest.map_or(self.next_number, |segment| segment.number);
            let oldest = oldest.min(directory.oldest_closed.load(Ordering::Acquire));
            if oldest > self.compacted_to {
                directory.purges.drop_before(oldest);
                self.compacted_to = oldest;
            }
        }
        let is_bloated = self.journal.is_good() && self.journal.is_bloated(directory.purges.len());
        if is_bloated && directory.is_locked() {
            let entries = directory.purges.entries();
            if let Err(error) = self.journal.rewrite(&*directory.files, &entries) {
                directory.failed("shorten the purge journal", &error, false);
            }
        }
    }

    /// Writes the waiting records, seals, and ends.
    pub(crate) fn finish(&mut self) {
        self.step();
        self.seal();
    }
}
