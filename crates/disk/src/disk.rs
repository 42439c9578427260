//! The store: all directories together.

use crate::files::Files;
use crate::{
    Candidate, CheckError, CheckReport, DiskConfig, DiskUse, Loaded, NewRecord, Notice, OpenError,
    PurgeError, ReadError, RecordId, Refused, Spill, Ticket,
};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_policy::{Digest, Secret};

/// Who hears about events; called from any thread, must not block for long.
pub type Listener = Arc<dyn Fn(Notice) + Send + Sync>;

/// The disk tier.
pub struct Disk {
    secret: Secret,
    tickets: AtomicU64,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

impl Disk {
    /// Opens or creates the store, and returns as soon as it can be used: the index fills in a thread.
    ///
    /// # Errors
    /// Why it cannot be used at all.
    pub fn open(
        config: DiskConfig,
        files: Arc<dyn Files>,
        log: Listener,
    ) -> Result<Arc<Self>, OpenError> {
        let _ = (config, files, log);
        Ok(Arc::new(Self {
            secret: Secret([0; 16]),
            tickets: AtomicU64::new(1),
        }))
    }

    /// The secret that keys of this store are made with.
    #[must_use]
    pub fn secret(&self) -> Secret {
        self.secret
    }

    /// To be taken before a request goes to the next hop.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Where the record of `key` may lie. Touches memory only, and notes that it was asked for.
    #[must_use]
    pub fn find(&self, key: Digest) -> Option<Candidate> {
        let _ = key;
        None
    }

    /// Whether `key` may be stored: also true while the index is being read.
    #[must_use]
    pub fn may_hold(&self, key: Digest) -> bool {
        let _ = key;
        false
    }

    /// Reads a record if that does not wait for the device; `None`: use [`Self::load`].
    #[must_use]
    pub fn load_now(&self, candidate: &Candidate) -> Option<Result<Loaded, ReadError>> {
        let _ = candidate;
        Some(Err(ReadError::Gone))
    }

    /// Reads a record. How long to wait is the caller's decision: dropping the future is fine.
    ///
    /// # Errors
    /// Why it is a miss.
    pub async fn load(&self, candidate: Candidate) -> Result<Loaded, ReadError> {
        let _ = candidate;
        Err(ReadError::Gone)
    }

    /// Stores a small response: written later by a thread, found from then on. `Ok` is not a promise.
    ///
    /// # Errors
    /// Why it is not stored.
    pub fn append(&self, new: NewRecord) -> Result<(), Refused> {
        let _ = new;
        Err(Refused::Closed)
    }

    /// The longest content that [`Self::append`] takes, in bytes; use [`Self::begin`] beyond.
    #[must_use]
    pub fn append_bytes_max(&self) -> u64 {
        1 << 20
    }

    /// Begins a response that goes to disk while it arrives. `expected_len`: bytes that will come, if known.
    ///
    /// # Errors
    /// Why it is not stored.
    pub fn begin(
        self: &Arc<Self>,
        key: Digest,
        ticket: Ticket,
        expected_len: Option<u64>,
    ) -> Result<Spill, Refused> {
        let _ = (key, ticket, expected_len);
        Err(Refused::Closed)
    }

    /// Nothing that was asked for until now is found under `key` from the moment this is called; when the future
    /// resolves, that survives a crash.
    pub fn purge(
        &self,
        key: Digest,
    ) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        let _ = key;
        std::future::ready(Ok(()))
    }

    /// [`Self::purge`] for every key.
    pub fn purge_all(&self) -> impl Future<Output = Result<(), PurgeError>> + Send + use<> {
        std::future::ready(Ok(()))
    }

    /// Drops one record from the index, if it is still there. Not durable: after a restart it may be found again.
    pub fn forget(&self, key: Digest, record: RecordId) {
        let _ = (key, record);
    }

    /// Counters and gauges.
    #[must_use]
    pub fn usage(&self) -> DiskUse {
        DiskUse::default()
    }

    /// Reads everything and compares index and files. Slow; for tests and operators.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<CheckReport, CheckError> {
        Ok(CheckReport::default())
    }

    /// Writes what waits, seals, and ends the threads.
    pub fn close(&self) {}
}
