//! What became of the bytes that were fetched.

use super::types::{DELIVERED_RUNS_MAX, DeliveryCount};
use crate::fetch::byte_span::{ByteSpan, ByteSpans};

/// The counts of an in-flight response; at any time `fetched` = what was delivered live +
/// `undelivered`.
#[derive(Clone, Debug)]
pub(super) struct ByteCounts {
    /// What was present before the first fetch.
    kept: ByteSpans,
    /// What was fetched here and given to no reader.
    pub(super) undelivered: ByteSpans,
    pub(super) fetched: u64,
    pub(super) fetched_twice: u64,
    pub(super) read_ahead_max: u64,
}

impl ByteCounts {
    pub(super) const fn new(kept: ByteSpans) -> Self {
        Self {
            kept,
            undelivered: ByteSpans::new(),
            fetched: 0,
            fetched_twice: 0,
            read_ahead_max: 0,
        }
    }

    /// `span`, which was missing, was fetched.
    pub(super) fn fetched(&mut self, span: ByteSpan) {
        self.fetched += self.undelivered.insert(span);
    }

    /// A fetch was `bytes` ahead of its readers.
    pub(super) fn led(&mut self, bytes: u64) {
        self.read_ahead_max = self.read_ahead_max.max(bytes);
    }

    /// A reader was given `span`.
    pub(super) fn delivered(&mut self, span: ByteSpan) -> DeliveryCount {
        let live = if self.undelivered.len() < DELIVERED_RUNS_MAX {
            self.undelivered.remove(span)
        } else {
            self.undelivered.remove_edge(span)
        };
        DeliveryCount {
            live,
            again: span.len() - live,
            kept: self.kept.overlap(span),
        }
    }
}
