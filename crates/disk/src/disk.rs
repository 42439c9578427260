//! The store: all directories together.

pub(crate) mod inspection;
mod opening;

pub use self::opening::open_files_max;

use crate::directory::queue::{JOB_BYTES, Job, PurgeJob, RecordJob};
use crate::directory::reads::check;
use crate::directory::reads::reader;
use crate::directory::{Directory, DirectoryLock};
use crate::files::Files;
use crate::format::{
    META_BYTES_MAX, PAGE_BYTES, PurgeScope, TRAILER_BYTES, embedded_bytes, table_bytes,
};
use crate::lock::lock;
use crate::record::BodyBlock;
use crate::{
    Candidate, CheckError, CheckReport, DiskConfig, DiskUse, LoadedRecord, NewRecord, Notice,
    OpenError, PurgeError, ReadError, RecordId, RecordWriter, Refused, Ticket,
};
use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use weir_policy::{Digest, Secret};

/// How long the end of a store waits for the device.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Receives events. It is called from any thread and must not block for long.
pub type NoticeHandler = Arc<dyn Fn(Notice) + Send + Sync>;

/// The order of all requests and purges of a store.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// The last that was given out.
    last: AtomicU64,
    secret: Mutex<Secret>,
}

impl Tickets {
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last that was given out.
    pub(crate) fn peek(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// None up to `generation` is given out from now on.
    pub(crate) fn raise(&self, generation: u64) {
        self.last.fetch_max(generation, Ordering::Relaxed);
    }

    pub(crate) fn secret(&self) -> Secret {
        *lock(&self.secret)
    }
}

/// The disk tier.
pub struct Disk {
    tickets: Arc<Tickets>,
    /// In the order of their numbers, so that a key is looked for in the same place however they
    /// are configured.
    directories: Vec<Arc<Directory>>,
    /// Held while a purge takes its generation and its places in the queues: so that journals
    /// ascend.
    purging: Mutex<()>,
    is_closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk")
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// Opens or creates the store, and returns as soon as it can be used: the index fills in a
    /// thread.
    ///
    /// # Errors
    /// Why it cannot be used at all.
    pub fn open(
        config: DiskConfig,
        files: Arc<dyn Files>,
        log: NoticeHandler,
    ) -> Result<Arc<Self>, OpenError> {
        opening::open(&config, &files, &log)
    }

    /// The secret that keys of this store are made with.
    #[must_use]
    pub fn secret(&self) -> Secret {
        self.tickets.secret()
    }

    /// To be taken before a request goes to the next hop.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket(self.tickets.next())
    }

    /// The last ticket that was given out.
    #[must_use]
    pub fn last_ticket(&self) -> Ticket {
        Ticket(self.tickets.peek())
    }

    /// None up to `number` is given out from now on: an earlier process may have given out more
    /// than its records tell.
    pub fn skip_tickets(&self, number: u64) {
        self.tickets.raise(number);
    }

    /// The directory that `key` lives in: a share of the keys as large as its share of the bytes.
    fn home(&self, key: Digest) -> &Arc<Directory> {
        let total: u64 = self.directories.iter().map(|it| it.limits.bytes).sum();
        let scaled = (u128::from(key.1.rotate_left(32)) * u128::from(total)) >> 64;
        let mut begin = 0;
        for directory in &self.directories {
            begin += u128::from(directory.limits.bytes);
            if scaled < begin {
                return directory;
            }
        }
        // a store has at least one directory, and the shares sum up to the total
        &self.directories[self.directories.len() - 1]
    }

    fn of_record(&self, record: RecordId) -> Option<&Arc<Directory>> {
        let mut all = self.directories.iter();
        all.find(|directory| directory.position == record.directory)
    }

    /// Where the record of `key` may lie. Touches memory only, and notes the request.
    #[must_use]
    pub fn find(&self, key: Digest) -> Option<Candidate> {
        let directory = self.home(key);
        let (segment, place) = directory.find(key)?;
        Some(Candidate {
            key,
            directory: directory.position,
            segment,
            place,
        })
    }

    /// Whether anything of `key` may be stored, now or after a restart: what waits to be written,
    /// what was forgotten and is still on the device, and everything while an index is being read,
    /// count. Requests and in-flight responses do not count. To remove a key, purge it: that costs
    /// nothing on the device if this returns `false`.
    #[must_use]
    pub fn may_hold(&self, key: Digest) -> bool {
        let mut all = self.directories.iter();
        all.any(|directory| directory.may_hold(key))
    }

    /// The first 64 bits of the keys of all that is found here now. Walks all of the index: some
    /// milliseconds for 10^6 of them. No lock is held while one is visited.
    pub fn tags(&self, mut visit: impl FnMut(u64)) {
        for directory in &self.directories {
            directory.index.tags(&mut visit);
        }
    }

    /// Reads a record: ready at once if the page cache is looked into and has it, else when a
    /// thread has read it. How long to wait is the caller's decision: dropping the future is fine.
    ///
    /// # Errors
    /// Why it is a miss.
    pub fn load(
        &self,
        candidate: Candidate,
    ) -> impl Future<Output = Result<LoadedRecord, ReadError>> + Send + use<> {
        let directory = self.of_record(candidate.record()).cloned();
        let segment = Arc::clone(&candidate.segment);
        let reading = directory.map(|directory| {
            let its = Arc::clone(&directory);
            directory.read(&segment, move |mode| reader::load(&its, &candidate, mode))
        });
        async move {
            match reading {
                Some(reading) => reading.await,
                None => Err(ReadError::Gone),
            }
        }
    }

    /// Stores a small response: a thread writes it later, and it is found from then on. `Ok` does
    /// not guarantee that it is written. If it is not, the older record of its key is forgotten.
    ///
    /// # Errors
    /// Why it is not stored. The older record of its key is still found then: see
    /// [`Self::forget_older`].
    pub fn append(&self, new: NewRecord) -> Result<(), Refused> {
        let directory = self.home(new.key);
        let appended = append(directory, new);
        if let Err(why) = appended {
            directory.counters.refused(why);
        }
        appended
    }

    /// The longest content that [`Self::append`] takes, in bytes; use [`Self::begin`] beyond.
    #[must_use]
    pub fn append_bytes_max(&self) -> u64 {
        let all = self.directories.iter();
        let least = all.map(|directory| directory.limits.extent_bytes).min();
        u64::from(least.unwrap_or_default())
    }

    /// Begins a response that goes to disk while it arrives. `expected_len`: bytes that will come,
    /// if known.
    ///
    /// # Errors
    /// Why it is not stored.
    pub fn begin(
        self: &Arc<Self>,
        key: Digest,
        ticket: Ticket,
        expected_len: Option<u64>,
    ) -> Result<RecordWriter, Refused> {
        let directory = self.home(key);
        let limits = directory.limits;
        // what is older must not have to go for its own beginning: two segments are being written
        // and freed
        let most = limits.bytes - 2 * u64::from(limits.segment_bytes);
        let why = if !directory.is_usable() {
            Refused::Fenced
        } else if expected_len.is_some_and(|len| len > most) {
            Refused::TooLarge
        } else if directory.purges.refuse(key, ticket.0) {
            Refused::Outdated
        } else {
            return Ok(RecordWriter::new(Arc::clone(directory), key, ticket));
        };
        directory.counters.refused(why);
        Err(why)
    }

    /// From the moment of this call, no response that was requested before is found under `key`;
    /// when the future resolves, that survives a crash. Dropping the future does not undo it.
    pub fn purge(
        &self,
        key: Digest,
    ) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        self.purge_what(PurgeScope::Key(key))
    }

    /// [`Self::purge`] for every key.
    pub fn purge_all(&self) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        self.purge_what(PurgeScope::All)
    }

    /// Every directory's journal gets it: which one a key lives in changes when directories come
    /// and go.
    fn purge_what(
        &self,
        what: PurgeScope,
    ) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        let mut waiting: Vec<(PathBuf, Option<oneshot::Receiver<bool>>)> = Vec::new();
        let order = lock(&self.purging);
        let generation = self.tickets.next();
        let mut is_held = false;
        for directory in &self.directories {
            is_held |= directory.put_in_force(what, generation);
        }
        if !is_held {
            for directory in &self.directories {
                directory.settle_purge(what, generation);
            }
        }
        for directory in self.directories.iter().filter(|_| is_held) {
            let (done, receiver) = oneshot::channel();
            let is_queued = directory.queue.push_purge(PurgeJob {
                what,
                generation,
                done,
            });
            if !is_queued {
                directory.must_empty.store(true, Ordering::Release);
            }
            waiting.push((directory.path.clone(), is_queued.then_some(receiver)));
        }
        drop(order);
        async move {
            let mut failed = None;
            for (path, receiver) in waiting {
                let is_durable = match receiver {
                    Some(receiver) => receiver.await.unwrap_or(false),
                    None => false,
                };
                if !is_durable {
                    failed.get_or_insert(PurgeError { path });
                }
            }
            failed.map_or(Ok(()), Err)
        }
    }

    /// Drops one record from the index, if it is still there. Not durable: after a restart it may
    /// be found again.
    pub fn forget(&self, key: Digest, record: RecordId) {
        if let Some(directory) = self.of_record(record) {
            directory.forget(key, record);
        }
    }

    /// Drops the record of `key` from the index, whichever it is. Not durable: after a restart it
    /// may be found again.
    pub fn forget_key(&self, key: Digest) {
        self.home(key).forget_key(key);
    }

    /// Drops what is stored or waits to be written under `key`, for a newer response of `ticket`
    /// that is not stored: the older one must not be found in its place. Not durable: after a
    /// restart it may be found again, as if the process had ended before the newer one came. Costs
    /// nothing on the device.
    pub fn forget_older(&self, key: Digest, ticket: Ticket) {
        let directory = self.home(key);
        if directory.queue.is_pending(key) {
            directory.refuse_older(key, ticket.0);
        }
        directory.forget_found(key);
    }

    /// How many records are found.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let directories = self.directories.iter();
        directories.map(|directory| directory.index.len()).sum()
    }

    /// Whether there may be records on the device that are not found now, as the index is being
    /// read or lacks some of them.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        let mut directories = self.directories.iter();
        directories.any(|directory| {
            directory.is_loading.load(Ordering::Acquire)
                || directory.is_incomplete.load(Ordering::Acquire)
        })
    }

    /// Whether a record of `key` is found, or waits to be written.
    #[must_use]
    pub fn is_held(&self, key: Digest) -> bool {
        let directory = self.home(key);
        directory.queue.is_pending(key) || directory.index.peek(key).is_some()
    }

    /// Whether `record` is what is found under `key`, and no other record of that key waits to be
    /// written.
    #[must_use]
    pub fn is_newest(&self, key: Digest, record: RecordId) -> bool {
        let directory = self.home(key);
        // the queue first: what leaves it between the two is in the index
        !directory.queue.is_pending(key) && directory.is_found(key, record)
    }

    /// Counters and gauges.
    #[must_use]
    pub fn usage(&self) -> DiskUse {
        let mut sum = DiskUse::default();
        for directory in &self.directories {
            directory.add_usage(&mut sum);
        }
        sum
    }

    /// Reads that wait for the devices.
    #[must_use]
    pub fn reads_waiting(&self) -> usize {
        let directories = self.directories.iter();
        directories.map(|directory| directory.reads_waiting()).sum()
    }

    /// Reads everything and compares index and files. Slow; for tests and operators, while nothing
    /// is being stored.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<CheckReport, CheckError> {
        let mut report = CheckReport::default();
        let mut complaints = Vec::new();
        for directory in &self.directories {
            check::check(directory, &mut report, &mut complaints);
        }
        if complaints.is_empty() {
            Ok(report)
        } else {
            Err(CheckError { complaints })
        }
    }

    /// Writes what waits, seals, and ends the threads, within 5 s. Reads fail from then on, but for
    /// content that is in the page cache.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        for directory in &self.directories {
            directory.queue.close();
            directory.pool.close();
        }
        let mut threads = lock(&self.threads);
        let begun = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            if begun.elapsed() >= CLOSE_TIME_MAX {
                // the device hangs: the directory stays ours until the process ends, and what waits
                // is lost
                return;
            }
            for thread in &*threads {
                thread.thread().unpark();
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        threads.clear();
        for directory in &self.directories {
            *lock(&directory.lock) = DirectoryLock::Closed;
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

fn append(directory: &Directory, new: NewRecord) -> Result<(), Refused> {
    if !directory.is_usable() {
        return Err(Refused::Fenced);
    }
    let content = content_bytes(&new.body).ok_or(Refused::Incomplete)?;
    let capacity = u64::from(directory.limits.segment_bytes);
    // each block might be an extent of its own
    let lens: Vec<u32> = new
        .body
        .iter()
        .map(|block| u32::try_from(block.bytes.len()).unwrap_or(u32::MAX))
        .collect();
    let meta_bytes = u32::try_from(new.meta.len()).unwrap_or(u32::MAX);
    let closing = (PAGE_BYTES + table_bytes(1) + TRAILER_BYTES) as u64;
    if content > u64::from(directory.limits.extent_bytes)
        || meta_bytes > META_BYTES_MAX
        || embedded_bytes(meta_bytes, &lens) + closing > capacity
    {
        return Err(Refused::TooLarge);
    }
    if directory.purges.refuse(new.key, new.ticket.0) {
        return Err(Refused::Outdated);
    }
    let blocks = new.body.len() * size_of::<BodyBlock>();
    let content = usize::try_from(content).unwrap_or(usize::MAX);
    let charge = new.meta.len() + content + blocks + JOB_BYTES;
    directory.queue.reserve(charge)?;
    directory.queue.push(Job::Record(RecordJob {
        key: new.key,
        ticket: new.ticket,
        meta: new.meta,
        body: new.body,
        charge,
    }))
}

/// Bytes of a content whose blocks ascend without overlap; `None` if they do not.
fn content_bytes(body: &[BodyBlock]) -> Option<u64> {
    let (mut end, mut sum) = (0, 0);
    for block in body {
        if block.from < end {
            return None;
        }
        let len = block.bytes.len() as u64;
        end = block.from.checked_add(len)?;
        sum += len;
    }
    Some(sum)
}

#[cfg(any(test, feature = "simulated"))]
pub(crate) use opening::assemble_stepped;
