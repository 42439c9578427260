//! Parts of responses whose fetches were paused for want of room on their link, as all workers
//! share them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_extend::{Fields, ListenerMode, StoredTarget};
use weir_measure::{Counters, Metric};
use weir_policy::fetch::PausedParts;
use weir_policy::{Digest, Tick};
use weir_semantics::DeltaSeconds;

/// A longer URL is not remembered, bytes: all of them take 256 KiB at most.
pub(crate) const URL_BYTES_MAX: usize = 4096;

/// What the rest of a response is requested by. It has no field of the request that was paused: the
/// part is completed if a request without any selects it.
#[derive(Clone, Debug)]
pub(crate) struct PartTarget {
    pub(crate) mode: ListenerMode,
    pub(crate) url: Box<str>,
}

impl From<PartTarget> for StoredTarget {
    fn from(target: PartTarget) -> Self {
        Self {
            mode: target.mode,
            url: target.url.into(),
            fields: Fields::default(),
        }
    }
}

/// The parts that are to be completed.
#[derive(Debug, Default)]
pub(crate) struct PausedFetches(Mutex<PausedParts<PartTarget>>);

impl PausedFetches {
    /// The fetch of `key` was paused.
    pub(crate) fn pause(&self, counters: &Counters, now: Tick, key: Digest, target: PartTarget) {
        counters.add_shared(Metric::FetchesPaused, 1);
        let mut parts = self.lock();
        parts.pause(now, key, target);
        set(counters, &parts);
    }

    /// Those that may be completed now, the oldest first.
    pub(crate) fn due(&self, counters: &Counters, now: Tick) -> Vec<(Digest, PartTarget)> {
        let mut parts = self.lock();
        if parts.is_empty() {
            return Vec::new();
        }
        let due = parts.due(now);
        set(counters, &parts);
        due
    }

    /// The rest of the one of `key` is being requested.
    pub(crate) fn begin(&self, key: Digest) {
        self.lock().begin(key);
    }

    /// There was no room for the one of `key`.
    pub(crate) fn rest(&self, now: Tick, key: Digest) {
        self.lock().rest(now, key);
    }

    /// The next hop of the one of `key` did not send its rest, or not all of it. It is not asked
    /// again before `wait` is over.
    pub(crate) fn fail(&self, counters: &Counters, now: Tick, key: Digest, wait: DeltaSeconds) {
        let mut parts = self.lock();
        parts.fail(now, key, wait);
        set(counters, &parts);
    }

    /// The one of `key` is completed, or cannot be.
    pub(crate) fn forget(&self, counters: &Counters, key: Digest) {
        let mut parts = self.lock();
        parts.forget(key);
        set(counters, &parts);
    }

    fn lock(&self) -> MutexGuard<'_, PausedParts<PartTarget>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(counters: &Counters, parts: &PausedParts<PartTarget>) {
    counters.set(Metric::PausedParts, parts.len() as u64);
}
