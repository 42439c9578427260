//! What waits to be written, bounded in bytes.
//!
//! Small responses wait for others for some milliseconds. A writer that is woken for each of them
//! costs two switches of threads and a write a response, which was a quarter of what a miss costs.

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

/// How long a small response waits for others: they are lost by a kill anyway that comes before
/// they are written, and by a power failure until they are synced, a second later.
pub(crate) const GATHER_TIME: Duration = Duration::from_millis(5);

/// Bytes of jobs that wait for no more.
const GATHER_BYTES: usize = 512 << 10;

/// The share of the room that extents under way may have together, which wait for bytes that may
/// come late, or never: the rest is for what can be written.
const UNDER_WAY_SHARE: usize = 2;

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

    /// Whether it may wait for others. A large response may be held up by what is not written of
    /// it.
    const fn can_wait(&self) -> bool {
        matches!(self, Self::Record(_))
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

/// What the writer waits for. It is woken once for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WriterState {
    /// Nothing: it looks at the queue before it waits.
    #[default]
    Busy,
    /// Anything.
    Idle,
    /// What may not wait.
    Gathering,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Bytes of them.
    jobs_bytes: usize,
    /// How many of them may not wait.
    urgent_jobs: usize,
    writer: WriterState,
    purges: Vec<PurgeJob>,
    /// Keys of records that wait or are being written, and how many of each.
    pending: HashMap<Digest, u32>,
    bytes: usize,
    /// Those of them that are of extents under way, and of no job yet.
    under_way_bytes: usize,
    is_closed: bool,
    wakes: bool,
}

impl Waiting {
    fn add(&mut self, job: Job) {
        self.jobs_bytes += job.charge();
        self.urgent_jobs += usize::from(!job.can_wait());
        self.jobs.push_back(job);
    }

    fn next(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        self.jobs_bytes -= job.charge();
        self.urgent_jobs -= usize::from(!job.can_wait());
        Some(job)
    }

    fn is_urgent(&self) -> bool {
        self.is_closed
            || self.wakes
            || self.urgent_jobs > 0
            || self.jobs_bytes >= GATHER_BYTES
            || !self.purges.is_empty()
    }

    /// Whether the writer has to be woken, for the first time since it waits.
    fn wakes_writer(&mut self) -> bool {
        let wakes = match self.writer {
            WriterState::Busy => false,
            WriterState::Idle => !self.jobs.is_empty() || self.is_urgent(),
            WriterState::Gathering => self.is_urgent(),
        };
        if wakes {
            self.writer = WriterState::Busy;
        }
        wakes
    }
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
    gather_time: Duration,
}

impl Queue {
    pub(crate) fn new(bytes_max: usize, gather_time: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            ready: Condvar::new(),
            bytes_max,
            gather_time,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Takes room for bytes that will wait here.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Refused> {
        self.take_room(&mut self.lock(), bytes)
    }

    fn take_room(&self, waiting: &mut Waiting, bytes: usize) -> Result<(), Refused> {
        if waiting.is_closed {
            return Err(Refused::Closed);
        }
        if waiting.bytes + bytes > self.bytes_max {
            return Err(Refused::Busy);
        }
        waiting.bytes += bytes;
        Ok(())
    }

    /// The same for bytes of an extent under way. Whether it may stay so: if not, it is to be
    /// pushed as it is.
    pub(crate) fn reserve_under_way(&self, bytes: usize) -> Result<bool, Refused> {
        let mut waiting = self.lock();
        self.take_room(&mut waiting, bytes)?;
        waiting.under_way_bytes += bytes;
        Ok(waiting.under_way_bytes <= self.bytes_max / UNDER_WAY_SHARE)
    }

    /// Whether there is room for bytes that would wait here.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.lock();
        waiting.is_closed || waiting.bytes + bytes <= self.bytes_max
    }

    /// Gives the room of an extent under way back, of which nothing comes.
    pub(crate) fn release_under_way(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        waiting.under_way_bytes = waiting.under_way_bytes.saturating_sub(bytes);
    }

    /// Adds a job whose room was taken; gives it back if the store is closed.
    pub(crate) fn push(&self, job: Job) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if let Job::Extent(job) = &job {
            waiting.under_way_bytes = waiting.under_way_bytes.saturating_sub(job.charge);
        }
        if waiting.is_closed {
            waiting.bytes = waiting.bytes.saturating_sub(job.charge());
            return Err(Refused::Closed);
        }
        if let Some(key) = job.key() {
            *waiting.pending.entry(key).or_default() += 1;
        }
        waiting.add(job);
        self.wake_if_needed(waiting);
        Ok(())
    }

    /// Adds a purge; `false`: it cannot be made durable.
    pub(crate) fn push_purge(&self, job: PurgeJob) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.purges.len() >= PURGES_WAITING_MAX {
            return false;
        }
        waiting.purges.push(job);
        self.wake_if_needed(waiting);
        true
    }

    /// Each notification is a call of the kernel, whether the writer waits or not.
    fn wake_if_needed(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let wakes = waiting.wakes_writer();
        drop(waiting);
        if wakes {
            self.ready.notify_one();
        }
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
            && let Some(job) = waiting.next()
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

    /// Waits until there is something to take, at most `time`; then for what can be taken with it,
    /// at most the time to gather. `false`: closed, and nothing is left.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let is_idle = |waiting: &Waiting| waiting.jobs.is_empty() && !waiting.is_urgent();
        let waiting = self.wait_as(WriterState::Idle, waiting, time, is_idle);
        let gathers = |waiting: &Waiting| !waiting.jobs.is_empty() && !waiting.is_urgent();
        let time = time.min(self.gather_time);
        let waiting = self.wait_as(WriterState::Gathering, waiting, time, gathers);
        !(waiting.is_closed && waiting.jobs.is_empty() && waiting.purges.is_empty())
    }

    /// Waits as long as `is_it`, at most `time`.
    fn wait_as<'a>(
        &'a self,
        state: WriterState,
        mut waiting: MutexGuard<'a, Waiting>,
        time: Duration,
        is_it: impl Fn(&Waiting) -> bool,
    ) -> MutexGuard<'a, Waiting> {
        waiting.writer = state;
        let (mut waiting, _) = self
            .ready
            .wait_timeout_while(waiting, time, |waiting| is_it(waiting))
            .unwrap_or_else(PoisonError::into_inner);
        waiting.writer = WriterState::Busy;
        waiting
    }

    /// Wakes the writer though nothing waits.
    pub(crate) fn wake(&self) {
        let mut waiting = self.lock();
        waiting.wakes = true;
        self.wake_if_needed(waiting);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.wake_if_needed(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_writer::Progress;

    /// A wait that a test must not need ends too late for it.
    const NEVER: Duration = Duration::from_secs(3600);

    fn record(number: u8, charge: usize) -> Job {
        Job::Record(RecordJob {
            key: Digest(u64::from(number), 0),
            ticket: Ticket(u64::from(number)),
            meta: Vec::new(),
            body: Vec::new(),
            charge,
        })
    }

    fn extent() -> Job {
        Job::Extent(ExtentJob {
            progress: Arc::new(Progress::default()),
            key: Digest(0, 0),
            body: BodyId(1),
            from: 0,
            blocks: Vec::new(),
            charge: 1,
        })
    }

    fn jobs_after_wait(queue: &Queue) -> usize {
        assert!(queue.wait(NEVER));
        queue.take(usize::MAX).jobs.len()
    }

    #[test]
    fn small_responses_wait_until_enough_bytes_wait() {
        let queue = Queue::new(usize::MAX, NEVER);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| jobs_after_wait(&queue));
            for number in 0..4 {
                let charge = GATHER_BYTES / 4;
                assert!(queue.push(record(number, charge)).is_ok());
            }
            assert_eq!(writer.join().ok(), Some(4));
        });
        assert!(!queue.lock().is_urgent());
    }

    #[test]
    fn small_responses_alone_are_taken_when_the_time_to_gather_is_over() {
        let queue = Queue::new(usize::MAX, Duration::ZERO);
        assert!(queue.push(record(1, 1)).is_ok());
        assert_eq!(jobs_after_wait(&queue), 1);
    }

    #[test]
    fn what_may_not_wait_is_taken_at_once_with_all_that_waits() {
        let purge = |queue: &Queue| {
            let (done, _) = oneshot::channel();
            let job = PurgeJob {
                what: PurgeScope::All,
                generation: 1,
                done,
            };
            assert!(queue.push_purge(job));
        };
        let large = |queue: &Queue| assert!(queue.push(extent()).is_ok());
        let hurries: [&dyn Fn(&Queue); 4] = [&purge, &large, &Queue::wake, &Queue::close];
        for (hurry, jobs) in hurries.into_iter().zip([1, 2, 1, 1]) {
            let queue = Queue::new(usize::MAX, NEVER);
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| jobs_after_wait(&queue));
                assert!(queue.push(record(1, 1)).is_ok());
                hurry(&queue);
                assert_eq!(writer.join().ok(), Some(jobs));
            });
        }
    }
}
