//! What was purged or invalidated, and until which version.

use super::client::URLS;
use std::sync::atomic::{AtomicU64, Ordering};

/// By URL: the version there was when it was purged or changed for the last time.
#[derive(Debug)]
pub(crate) struct Purged(Vec<AtomicU64>);

impl Purged {
    pub(crate) fn none() -> Self {
        Self((0..URLS).map(|_| AtomicU64::new(0)).collect())
    }

    /// A request that is sent from now on gets nothing older than `version`.
    pub(crate) fn note(&self, path: u64, version: u64) {
        self.of(path).fetch_max(version, Ordering::SeqCst);
    }

    /// The least version that a request gets which is sent now.
    pub(crate) fn least_version(&self, path: u64) -> u64 {
        self.of(path).load(Ordering::SeqCst)
    }

    fn of(&self, path: u64) -> &AtomicU64 {
        &self.0[usize::try_from(path).expect("small")]
    }
}
