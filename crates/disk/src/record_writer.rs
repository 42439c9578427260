//! A large response on its way to disk.

use crate::directory::Directory;
use crate::directory::queue::{CommitJob, ExtentJob, JOB_BYTES, Job};
use crate::format::{BodyId, META_BYTES_MAX};
use crate::lock::lock;
use crate::record::Ticket;
use crate::{Extent, Refused};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use weir_policy::Digest;

/// Wakers of one record writer: fetch and readers of one response; beyond, the oldest is woken
/// early.
const WAKERS_MAX: usize = 64;

/// Content that is written to disk while it arrives. Dropping the writer abandons what was written:
/// no lookup finds it.
#[derive(Debug)]
pub struct RecordWriter {
    directory: Arc<Directory>,
    key: Digest,
    ticket: Ticket,
    body: BodyId,
    progress: Arc<Progress>,
    /// Blocks of the extent under way; one follows the other.
    blocks: Vec<Arc<[u8]>>,
    from: u64,
    bytes: u32,
    is_committed: bool,
}

/// A record that was handed over to be written.
#[derive(Clone, Debug)]
pub struct PendingRecord {
    progress: Arc<Progress>,
}

/// What the writer thread reports about a record.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    written: Vec<Extent>,
    /// How many of them were requested.
    told: usize,
    waiting_bytes: usize,
    failed: Option<Refused>,
    is_abandoned: bool,
    /// What the record that was written lists.
    committed: Option<Vec<Extent>>,
    wakers: Vec<Waker>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    fn wake(mut state: MutexGuard<'_, State>) {
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }

    /// An extent was written.
    pub(crate) fn wrote(&self, extent: Extent, charge: usize) {
        let mut state = self.lock();
        state.waiting_bytes = state.waiting_bytes.saturating_sub(charge);
        state.written.push(extent);
        Self::wake(state);
    }

    /// Nothing more will be written.
    pub(crate) fn fail(&self, why: Refused) {
        let mut state = self.lock();
        state.failed.get_or_insert(why);
        state.waiting_bytes = 0;
        Self::wake(state);
    }

    /// Whether there is any sense in writing more of it.
    pub(crate) fn is_dead(&self) -> bool {
        let state = self.lock();
        state.is_abandoned || state.failed.is_some()
    }

    /// All that was written.
    pub(crate) fn all(&self) -> Vec<Extent> {
        self.lock().written.clone()
    }

    /// The record was written.
    pub(crate) fn committed(&self, extents: Vec<Extent>) {
        let mut state = self.lock();
        state.waiting_bytes = 0;
        state.committed = Some(extents);
        Self::wake(state);
    }

    fn wake_later(&self, waker: &Waker, is_ready: impl FnOnce(&State) -> bool) {
        let mut state = self.lock();
        if is_ready(&state) {
            drop(state);
            waker.wake_by_ref();
            return;
        }
        if state.wakers.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        let early = (state.wakers.len() >= WAKERS_MAX).then(|| state.wakers.remove(0));
        state.wakers.push(waker.clone());
        drop(state);
        if let Some(early) = early {
            early.wake();
        }
    }
}

impl RecordWriter {
    pub(crate) fn new(directory: Arc<Directory>, key: Digest, ticket: Ticket) -> Self {
        let body = BodyId(directory.tickets.next());
        Self {
            directory,
            key,
            ticket,
            body,
            progress: Arc::default(),
            blocks: Vec::new(),
            from: 0,
            bytes: 0,
            is_committed: false,
        }
    }

    fn fail<T>(&self, why: Refused) -> Result<T, Refused> {
        self.directory.counters.refused(why);
        self.progress.fail(why);
        Err(why)
    }

    /// Takes a block at offset `from` of the content, at most 64 KiB. Blocks that follow each other
    /// become extents of up to 1 MiB; a block lies in one extent. Where extents under way have half
    /// of the queue, those of slow fetches, a block is an extent.
    ///
    /// # Errors
    /// The block was not taken; the writer is not usable any more.
    pub fn push(&mut self, from: u64, block: Arc<[u8]>) -> Result<(), Refused> {
        if let Some(why) = self.failed() {
            return Err(why);
        }
        if !self.directory.is_usable() {
            return self.fail(Refused::Fenced);
        }
        if block.is_empty() {
            return Ok(());
        }
        let most = self.directory.limits.extent_bytes;
        let Some(len) = u32::try_from(block.len()).ok().filter(|len| *len <= most) else {
            return self.fail(Refused::TooLarge);
        };
        let follows = self.from + u64::from(self.bytes) == from;
        if self.bytes > 0 && (!follows || self.bytes + len > most) {
            self.flush()?;
        }
        let charge = block.len() + JOB_BYTES;
        let may_grow = match self.directory.queue.reserve_under_way(charge) {
            Ok(may_grow) => may_grow,
            Err(why) => return self.fail(why),
        };
        self.progress.lock().waiting_bytes += charge;
        if self.bytes == 0 {
            self.from = from;
        }
        self.bytes += len;
        self.blocks.push(block);
        if self.bytes == most || !may_grow {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether the queue has room for so many bytes more at this moment: what finds none fails the
    /// writer.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.directory.queue.has_room(bytes + JOB_BYTES)
    }

    /// Closes the extent under way, so that everything pushed will be written without waiting for
    /// more.
    ///
    /// # Errors
    /// The extent was not taken; the writer is not usable any more.
    pub fn flush(&mut self) -> Result<(), Refused> {
        if self.bytes == 0 {
            return Ok(());
        }
        let job = ExtentJob {
            progress: Arc::clone(&self.progress),
            key: self.key,
            body: self.body,
            from: self.from,
            charge: self.charge(),
            blocks: std::mem::take(&mut self.blocks),
        };
        self.bytes = 0;
        match self.directory.queue.push(Job::Extent(job)) {
            Ok(()) => Ok(()),
            Err(why) => self.fail(why),
        }
    }

    /// What the extent under way holds of the queue's room.
    fn charge(&self) -> usize {
        self.bytes as usize + self.blocks.len() * JOB_BYTES
    }

    /// Extents written since the last call; readable from now on.
    #[must_use]
    pub fn written(&self) -> Vec<Extent> {
        let mut state = self.progress.lock();
        let new = state.written[state.told..].to_vec();
        state.told = state.written.len();
        new
    }

    /// What there is to know of the record that [`Self::commit`] makes it.
    #[must_use]
    pub fn record(&self) -> PendingRecord {
        let progress = Arc::clone(&self.progress);
        PendingRecord { progress }
    }

    /// Wakes `waker` once when there is more in [`Self::written`] or the writer has failed.
    pub fn wake_on_written(&self, waker: &Waker) {
        self.progress.wake_later(waker, |state| {
            state.told < state.written.len() || state.failed.is_some()
        });
    }

    /// Bytes pushed and not yet written: what this response holds of the queue.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.progress.lock().waiting_bytes
    }

    /// Why nothing more is written, if so.
    #[must_use]
    pub fn failed(&self) -> Option<Refused> {
        self.progress.lock().failed
    }

    /// Writes the record that lists what was pushed and `inherited`: extents of an older record of
    /// the same key that are still needed. One that overlaps with what was pushed is left out as a
    /// whole. Found from the moment it is written.
    ///
    /// # Errors
    /// Why nothing is stored.
    pub fn commit(mut self, meta: Vec<u8>, inherited: &[Extent]) -> Result<PendingRecord, Refused> {
        self.flush()?;
        if let Some(why) = self.failed() {
            return Err(why);
        }
        if meta.len() > META_BYTES_MAX as usize {
            return self.fail(Refused::TooLarge);
        }
        let charge = meta.len() + size_of_val(inherited) + JOB_BYTES;
        if let Err(why) = self.directory.queue.reserve(charge) {
            return self.fail(why);
        }
        self.is_committed = true;
        let job = CommitJob {
            progress: Arc::clone(&self.progress),
            key: self.key,
            ticket: self.ticket,
            meta,
            inherited: inherited.to_vec(),
            charge,
        };
        if let Err(why) = self.directory.queue.push(Job::Commit(job)) {
            return self.fail(why);
        }
        Ok(PendingRecord {
            progress: Arc::clone(&self.progress),
        })
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.directory.queue.release_under_way(self.charge());
        if !self.is_committed {
            self.progress.lock().is_abandoned = true;
        }
    }
}

impl PendingRecord {
    /// What the record lists, as soon as it is written; or why it was not.
    #[must_use]
    pub fn extents(&self) -> Option<Result<Vec<Extent>, Refused>> {
        let state = self.progress.lock();
        match (&state.committed, state.failed) {
            (Some(extents), _) => Some(Ok(extents.clone())),
            (None, Some(why)) => Some(Err(why)),
            (None, None) => None,
        }
    }

    /// Wakes `waker` once when [`Self::extents`] has an answer.
    pub fn wake_on_written(&self, waker: &Waker) {
        self.progress.wake_later(waker, |state| {
            state.committed.is_some() || state.failed.is_some()
        });
    }
}
