//! What is kept in memory for a client that is sent it slowly, as a rule of the operator says.
//!
//! Without a store on disk, what is read is in memory and stays there as long as it is. How much of
//! it may be kept for readers that a rate holds back, and for one client among them, says
//! `weir_policy::rule::HeldBack`.

use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::Digest;
use weir_policy::catalog::UNPINNED_CONTENT_BYTES_MAX;
use weir_policy::rule::{HeldBack, KeptResponse};

/// How many bytes content that is still received grows before they are counted.
const STEP_BYTES: u64 = 64 * 1024;

/// What is kept for the clients of all workers.
#[derive(Debug, Default)]
pub(crate) struct AllKeptContent(Mutex<HeldBack>);

impl AllKeptContent {
    fn lock(&self) -> MutexGuard<'_, HeldBack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content that one reader reads, counted until that is dropped.
pub(crate) struct KeptContent {
    worker: Rc<Worker>,
    client: Digest,
    response: KeptResponse,
    counted_bytes: u64,
    is_kept: bool,
}

impl KeptContent {
    /// Of `owner`, which has the content and lives as long as this does, `bytes` are in memory, and
    /// `client` reads it.
    pub(crate) fn new<T>(worker: &Rc<Worker>, client: Digest, owner: &Arc<T>, bytes: u64) -> Self {
        let mut new = Self {
            worker: Rc::clone(worker),
            client,
            response: KeptResponse(Arc::as_ptr(owner).addr() as u64),
            counted_bytes: counted(bytes),
            is_kept: true,
        };
        let budget_bytes = new.budget_bytes();
        let mut all = new.worker.shared.kept_content.lock();
        let is_kept = all.begin(client, new.response, new.counted_bytes, budget_bytes);
        drop(all);
        new.is_kept = is_kept;
        new
    }

    /// Whether it may be kept: if not, the reader is to let go of it.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// So many bytes of it are in memory by now.
    pub(crate) fn grow(&mut self, bytes: u64) {
        let bytes = counted(bytes);
        if !self.is_kept || bytes < self.counted_bytes.saturating_add(STEP_BYTES) {
            return;
        }
        self.counted_bytes = bytes;
        let budget_bytes = self.budget_bytes();
        let mut all = self.worker.shared.kept_content.lock();
        self.is_kept = all.grow(self.client, self.response, bytes, budget_bytes);
        if !self.is_kept {
            all.end(self.client, self.response);
        }
    }

    fn budget_bytes(&self) -> u64 {
        self.worker.settings().config.cache.memory.bytes()
    }
}

impl Drop for KeptContent {
    fn drop(&mut self) {
        if self.is_kept {
            let mut all = self.worker.shared.kept_content.lock();
            all.end(self.client, self.response);
        }
    }
}

/// So little content is in the account of the connection.
const fn counted(bytes: u64) -> u64 {
    if bytes <= UNPINNED_CONTENT_BYTES_MAX {
        return 0;
    }
    bytes
}
