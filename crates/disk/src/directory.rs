//! One directory: its segments, its index, its journal, its threads. Their shared state is here. No
//! lock is held while the device works.

pub(crate) mod active;
pub(crate) mod counters;
pub(crate) mod eviction;
pub(crate) mod fence;
pub(crate) mod purging;
pub(crate) mod queue;
pub(crate) mod reads;
pub(crate) mod scrub;
pub(crate) mod segment;
pub(crate) mod starting;
pub(crate) mod writer;

use crate::disk::{NoticeHandler, Tickets};
use crate::files::Files;
use crate::files::HeldLock;
use crate::format::{PurgeScope, Volume};
use crate::index::{Index, Place};
use crate::lock::lock;
use crate::record::RecordId;
use crate::{DiskUse, Notice, ReadError, Verify};
use counters::Counters;
use fence::Fence;
use purging::forgotten::ForgottenKeys;
use purging::purges::Purges;
use queue::Queue;
use reads::pool::Pool;
use segment::{Segment, Segments};
use starting::open::LOCK_FILE;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use weir_policy::Digest;
use weir_policy::page_cache::PageCache;

/// What the threads of a directory and its callers share.
pub(crate) struct Directory {
    /// Its place in the configuration.
    pub(crate) position: u16,
    pub(crate) path: PathBuf,
    pub(crate) volume: Volume,
    pub(crate) limits: Limits,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) index: Index,
    pub(crate) segments: Segments,
    pub(crate) purges: Purges,
    pub(crate) forgotten: ForgottenKeys,
    pub(crate) queue: Queue,
    pub(crate) pool: Pool,
    pub(crate) fence: Fence,
    pub(crate) counters: Counters,
    pub(crate) page_cache: Mutex<PageCache>,
    /// The file system cannot be read past the page cache.
    is_indirect: AtomicBool,
    /// Held while one segment's records are inserted into the index, and while one is evicted: so
    /// that no entry outlives its segment.
    gate: Mutex<()>,
    /// Generations from here on were given out by this process.
    pub(crate) first_generation: u64,
    pub(crate) is_loading: AtomicBool,
    /// Some of what is on the device is not in the index: it may be there after a restart.
    pub(crate) is_incomplete: AtomicBool,
    /// The oldest segment whose file could not be opened; [`u64::MAX`] if there is none. It may be
    /// read at the next start: purges that concern it are kept.
    pub(crate) oldest_closed: AtomicU64,
    /// A segment was evicted, and its file is not removed yet, or not durably.
    pub(crate) has_leftovers: AtomicBool,
    /// Everything must be dropped, durably, before anything is found or stored again.
    pub(crate) must_empty: AtomicBool,
    /// That no other process uses it.
    pub(crate) lock: Mutex<DirectoryLock>,
    pub(crate) clock: Clock,
    log: NoticeHandler,
}

/// Whether a directory is ours.
#[derive(Debug)]
pub(crate) enum DirectoryLock {
    /// Unless the file of this was removed.
    Held(Box<dyn HeldLock>),
    /// Another process has it, or it cannot be had.
    Lost,
    /// It was given back: the store is closed.
    Closed,
}

/// Sizes of a directory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    pub(crate) segment_bytes: u32,
    /// Content of a record that is written in one piece, and of an extent.
    pub(crate) extent_bytes: u32,
    pub(crate) sync_interval_ms: u64,
    pub(crate) verify: Verify,
}

/// Milliseconds since the store was opened.
#[derive(Debug)]
pub(crate) enum Clock {
    Running(Instant),
    /// Set by hand, in tests.
    #[cfg_attr(
        not(any(test, feature = "simulated")),
        expect(dead_code, reason = "tests step the store by hand")
    )]
    Manual(AtomicU64),
}

impl Clock {
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Self::Running(since) => u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            Self::Manual(ms) => ms.load(Ordering::Relaxed),
        }
    }
}

impl Directory {
    /// Whether it is ours alone still.
    pub(crate) fn is_locked(&self) -> bool {
        match &*lock(&self.lock) {
            DirectoryLock::Held(held) => held.is_of(&self.path.join(LOCK_FILE)),
            DirectoryLock::Lost => false,
            DirectoryLock::Closed => true,
        }
    }

    /// Checks that before something is made in it.
    ///
    /// # Errors
    ///
    /// It is not: its file was removed, or the directory with it.
    pub(crate) fn check_lock(&self) -> io::Result<()> {
        match self.is_locked() {
            true => Ok(()),
            false => Err(io::Error::other(
                "the directory, or its lock, was removed: another process may use it",
            )),
        }
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Directory {
    pub(crate) fn gate(&self) -> MutexGuard<'_, ()> {
        lock(&self.gate)
    }

    pub(crate) fn tell(&self, notice: Notice) {
        (self.log)(notice);
    }

    /// Whether anything may be read or stored.
    pub(crate) fn is_usable(&self) -> bool {
        !self.fence.is_up() && !self.must_empty.load(Ordering::Acquire)
    }

    /// Whether `key` may be on the device, now or after a restart.
    pub(crate) fn may_hold(&self, key: Digest) -> bool {
        self.is_loading.load(Ordering::Acquire)
            || self.is_incomplete.load(Ordering::Acquire)
            || self.has_leftovers.load(Ordering::Acquire)
            || !self.is_usable()
            || self.queue.is_pending(key)
            || self.index.peek(key).is_some()
            || self.forgotten.may_hold(key)
    }

    /// Where the record of `key` may lie.
    pub(crate) fn find(&self, key: Digest) -> Option<(Arc<Segment>, Place)> {
        if !self.is_usable() {
            return None;
        }
        let place = self.index.ask(key)?;
        Some((self.segments.in_slot(place.slot)?, place))
    }

    /// Takes a key out of the index, in this process only.
    pub(crate) fn forget_key(&self, key: Digest) {
        // remembered first: the loader checks it before it inserts an older record of the key
        self.forgotten.remember(key);
        self.index.remove(key);
    }

    /// The same, if there is something that the index has or may still get from the device. A key
    /// of which nothing is there is not remembered: there is room for few.
    pub(crate) fn forget_found(&self, key: Digest) {
        let is_unknown =
            self.is_loading.load(Ordering::Acquire) || self.is_incomplete.load(Ordering::Acquire);
        if is_unknown || self.index.peek(key).is_some() {
            self.forget_key(key);
        }
    }

    /// Records of `key` that were requested up to `generation` and wait to be written are not found
    /// once they are: in this process only.
    pub(crate) fn refuse_older(&self, key: Digest, generation: u64) {
        self.purges.note(PurgeScope::Key(key), generation, None);
        self.settle_purge(PurgeScope::Key(key), generation);
    }

    /// Takes one record out of the index, in this process only.
    pub(crate) fn forget(&self, key: Digest, record: RecordId) {
        if let Some(place) = self.place_in_index(key, record) {
            self.forgotten.remember(key);
            self.index.remove_at(key, place);
        }
    }

    /// Whether the index has `record` for `key`.
    pub(crate) fn is_found(&self, key: Digest, record: RecordId) -> bool {
        self.place_in_index(key, record).is_some()
    }

    /// The place of `record`, if the index has that for `key`.
    fn place_in_index(&self, key: Digest, record: RecordId) -> Option<Place> {
        let segment = self.segments.numbered(record.segment)?;
        let place = Place::new(segment.slot, record.offset, 0);
        let (found, _) = self.index.peek(key)?;
        found.is_at(place).then_some(place)
    }

    /// Bytes of `segment` at `offset` did not verify; what they belong to is not found any more.
    pub(crate) fn damaged(
        &self,
        segment: &Segment,
        offset: u64,
        key: Digest,
        record: Option<RecordId>,
    ) {
        match record {
            Some(record) => self.forget(key, record),
            None => self.forget_key(key),
        }
        self.found_damage(segment, offset);
    }

    /// The error of a read of damaged bytes; of an evicted segment they prove nothing.
    pub(crate) fn read_damage(
        &self,
        segment: &Segment,
        offset: u64,
        key: Digest,
        record: Option<RecordId>,
    ) -> ReadError {
        if segment.is_retired() {
            return ReadError::Gone;
        }
        self.damaged(segment, offset, key, record);
        ReadError::Damaged
    }

    pub(crate) fn found_damage(&self, segment: &Segment, offset: u64) {
        self.counters.damaged.add(1);
        if let Some(more) = self.counters.damage_notices.allow(self.clock.now_ms()) {
            self.tell(Notice::Damaged {
                path: segment.path.clone(),
                offset,
                more,
            });
        }
    }

    /// The device failed to do something.
    pub(crate) fn failed(&self, doing: &'static str, error: &std::io::Error, is_read: bool) {
        let counters = &self.counters;
        let now_ms = self.clock.now_ms();
        if is_read {
            counters.read_errors.add(1);
        } else {
            counters.write_errors.add(1);
        }
        if error.kind() == std::io::ErrorKind::StorageFull {
            self.found_full(error);
        } else if let Some(more) = counters.failure_notices.allow(now_ms) {
            self.tell(Notice::Failed {
                path: self.path.clone(),
                doing,
                why: error.to_string(),
                more,
            });
        }
        if let Some(rest_ms) = self.fence.failed(is_read, now_ms) {
            self.tell(Notice::Fenced {
                path: self.path.clone(),
                why: error.to_string(),
                rest_ms,
            });
            self.queue.wake();
        }
    }

    /// There is no room on the file system.
    pub(crate) fn found_full(&self, error: &std::io::Error) {
        let limiter = &self.counters.full_notices;
        if let Some(more) = limiter.allow(self.clock.now_ms()) {
            self.tell(Notice::Full {
                path: self.path.clone(),
                why: error.to_string(),
                more,
            });
        }
    }

    /// From now on no earlier record is found, and no response requested before will be stored.
    /// Whether there may be anything on the device that the journal must list.
    pub(crate) fn put_in_force(&self, what: PurgeScope, generation: u64) -> bool {
        self.purges.note(what, generation, None);
        match what {
            PurgeScope::Key(key) => {
                // a record that is written meanwhile still counts as pending, or its writer sees
                // the purge and remembers the key
                let may_hold = self.may_hold(key);
                self.index.remove(key);
                return may_hold;
            }
            PurgeScope::All => {
                self.index.clear();
                let newest = self.segments.all();
                if newest.iter().any(|it| it.generation() > generation) {
                    // records that are younger than the purge left the index with the others
                    self.is_incomplete.store(true, Ordering::Release);
                }
            }
            PurgeScope::Floor => {}
        }
        true
    }

    /// Nothing of a purge is on the device: it is in force for late writes only, as long as the
    /// segments of today are there.
    pub(crate) fn settle_purge(&self, what: PurgeScope, generation: u64) {
        let newest = self.segments.all().last().map_or(0, |it| it.number);
        self.purges.settle(what, generation, newest);
    }

    /// Reads that wait for the device.
    pub(crate) fn reads_waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Adds this directory's part.
    pub(crate) fn add_usage(&self, sum: &mut DiskUse) {
        let (segments, bytes) = self.segments.usage();
        sum.bytes += bytes;
        sum.bytes_max += self.limits.bytes;
        sum.entries += self.index.len();
        sum.index_bytes += self.index.bytes();
        sum.segments += segments;
        sum.purges += self.purges.len();
        sum.queue_bytes += self.queue.bytes() as u64;
        sum.reads_waiting += self.pool.waiting() as u64;
        sum.loading += u64::from(self.is_loading.load(Ordering::Acquire));
        sum.fenced += u64::from(!self.is_usable());
        self.counters.add_to(sum);
    }
}
