//! Counts of the requests that a recorder was given, by what became of them.

use super::QUEUE_BYTES_MAX;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use weir_measure::{Label as _, Metric, Snapshot, Unrecorded};

/// Counts, from the start of the process.
#[derive(Debug, Default)]
pub struct Tally {
    recorded: AtomicU64,
    unrecorded: [AtomicU64; Unrecorded::COUNT],
    files: AtomicU64,
    written_bytes: AtomicU64,
    queued: AtomicU64,
    queued_bytes: AtomicUsize,
}

impl Tally {
    /// A request was written down.
    pub fn recorded(&self) {
        self.recorded.fetch_add(1, Relaxed);
    }

    /// So many requests will not be in the trace.
    pub fn unrecorded(&self, why: Unrecorded, requests: u64) {
        self.unrecorded[why.index()].fetch_add(requests, Relaxed);
    }

    /// A file was finished.
    pub fn finished(&self, bytes: u64) {
        self.files.fetch_add(1, Relaxed);
        self.written_bytes.fetch_add(bytes, Relaxed);
    }

    /// How many requests are not in the trace for this reason.
    #[must_use]
    pub fn count(&self, why: Unrecorded) -> u64 {
        self.unrecorded[why.index()].load(Relaxed)
    }

    /// Adds `bytes` to those that wait; `false` if there are too many.
    pub(super) fn enter(&self, bytes: usize) -> bool {
        let before = self.queued_bytes.fetch_add(bytes, Relaxed);
        if before + bytes > QUEUE_BYTES_MAX {
            self.queued_bytes.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.queued.fetch_add(1, Relaxed);
        true
    }

    /// It waits no more.
    pub(super) fn leave(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Relaxed);
        self.queued.fetch_sub(1, Relaxed);
    }

    /// Enters the counts.
    pub(crate) fn count_in(&self, snapshot: &mut Snapshot) {
        for (metric, count) in [
            (Metric::Recorded, &self.recorded),
            (Metric::RecordQueued, &self.queued),
            (Metric::RecordFiles, &self.files),
            (Metric::RecordWrittenBytes, &self.written_bytes),
        ] {
            snapshot.set(metric, count.load(Relaxed));
        }
        for why in Unrecorded::ALL {
            snapshot.set(Metric::Unrecorded(*why), self.count(*why));
        }
    }
}
