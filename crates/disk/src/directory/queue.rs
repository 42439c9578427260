//! What waits to be written, bounded in bytes.

use crate::format::{BodyId, PurgeScope};
use crate::lock::lock;
use crate::record::{BodyBlock, Ticket};
use crate::record_writer::Progress;
use crate::{Extent, Refused};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use weir_policy::Digest;

/// Purges that may wait for the journal.
pub(crate) const PURGES_WAITING_MAX: usize = 65_536;

/// What a waiting job is charged beside its bytes.
pub(crate) const JOB_BYTES: usize = 256;

/// A small response.
pub(crate) struct RecordJob {
    pub(crate) key: Digest,
    pub(crate) ticket: Ticket,
    pub(crate) meta: Vec<u8>,
    pub(crate) body: Vec<BodyBlock>,
    pub(crate) charge: usize,
}

/// A stretch of a large one.
pub(crate) struct ExtentJob {
    pub(crate) progress: Arc<Progress>,
    pub(crate) key: Digest,
    pub(crate) body: BodyId,
    pub(crate) from: u64,
    pub(crate) blocks: Vec<Arc<[u8]>>,
    pub(crate) charge: usize,
}

/// The record of a large one, behind all of its extents.
pub(crate) struct CommitJob {
    pub(crate) progress: Arc<Progress>,
    pub(crate) key: Digest,
    pub(crate) ticket: Ticket,
    pub(crate) meta: Vec<u8>,
    pub(crate) inherited: Vec<Extent>,
    pub(crate) charge: usize,
}

pub(crate) struct PurgeJob {
    pub(crate) what: PurgeScope,
    pub(crate) generation: u64,
    /// Hears whether it is durable.
    pub(crate) done: oneshot::Sender<bool>,
}

pub(crate) enum Job {
    Record(RecordJob),
    Extent(ExtentJob),
    Commit(CommitJob),
}

impl Job {
    pub(crate) const fn charge(&self) -> usize {
        match self {
            Self::Record(job) => job.charge,
            Self::Extent(job) => job.charge,
            Self::Commit(job) => job.charge,
        }
    }

    /// The key that will be found when this is done.
    pub(crate) const fn key(&self) -> Option<Digest> {
        match self {
            Self::Record(job) => Some(job.key),
            Self::Commit(job) => Some(job.key),
            Self::Extent(_) => None,
        }
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    purges: Vec<PurgeJob>,
    /// Keys of records that wait or are being written, and how many of each.
    pending: HashMap<Digest, u32>,
    bytes: usize,
    is_closed: bool,
    wakes: bool,
}

/// What the writer takes at once.
#[derive(Default)]
pub(crate) struct WorkBatch {
    pub(crate) jobs: Vec<Job>,
    pub(crate) purges: Vec<PurgeJob>,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    bytes_max: usize,
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            ready: Condvar::new(),
            bytes_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Takes room for bytes that will wait here.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(Refused::Closed);
        }
        if waiting.bytes + bytes > self.bytes_max {
            return Err(Refused::Busy);
        }
        waiting.bytes += bytes;
        Ok(())
    }

    /// Whether there is room for bytes that would wait here.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.lock();
        waiting.is_closed || waiting.bytes + bytes <= self.bytes_max
    }

    /// Gives room back.
    pub(crate) fn release(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
    }

    /// Adds a job whose room was taken; gives it back if the store is closed.
    pub(crate) fn push(&self, job: Job) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            waiting.bytes = waiting.bytes.saturating_sub(job.charge());
            return Err(Refused::Closed);
        }
        if let Some(key) = job.key() {
            *waiting.pending.entry(key).or_default() += 1;
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.ready.notify_one();
        Ok(())
    }

    /// Adds a purge; `false`: it cannot be made durable.
    pub(crate) fn push_purge(&self, job: PurgeJob) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.purges.len() >= PURGES_WAITING_MAX {
            return false;
        }
        waiting.purges.push(job);
        drop(waiting);
        self.ready.notify_one();
        true
    }

    /// All purges, and jobs of about `bytes_max` bytes.
    pub(crate) fn take(&self, bytes_max: usize) -> WorkBatch {
        let mut waiting = self.lock();
        waiting.wakes = false;
        let mut taken = WorkBatch {
            jobs: Vec::new(),
            purges: std::mem::take(&mut waiting.purges),
        };
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(job) = waiting.jobs.pop_front()
        {
            bytes += job.charge();
            taken.jobs.push(job);
        }
        taken
    }

    /// A job was done, or will not be.
    pub(crate) fn finished(&self, charge: usize, key: Option<Digest>) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(charge);
        if let Some(key) = key
            && let Some(count) = waiting.pending.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                waiting.pending.remove(&key);
            }
        }
    }

    /// Whether a record of `key` waits or is being written.
    pub(crate) fn is_pending(&self, key: Digest) -> bool {
        self.lock().pending.contains_key(&key)
    }

    /// Waits until there is something to take, at most `time`. `false`: closed, and nothing is
    /// left.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| {
            waiting.jobs.is_empty()
                && waiting.purges.is_empty()
                && !waiting.is_closed
                && !waiting.wakes
        };
        let (waiting, _) = self
            .ready
            .wait_timeout_while(waiting, time, is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        !(waiting.is_closed && waiting.jobs.is_empty() && waiting.purges.is_empty())
    }

    /// Wakes the writer though nothing waits.
    pub(crate) fn wake(&self) {
        self.lock().wakes = true;
        self.ready.notify_one();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_all();
    }
}
