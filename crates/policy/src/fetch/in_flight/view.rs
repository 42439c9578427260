//! Reads the state of an in-flight response, without a change.

use super::InFlightState;
use super::reader::Reader;
use super::types::{CutReason, FetchId, ReaderId};
use crate::fetch::byte_span::{ByteSpan, ByteSpans};

impl InFlightState {
    /// The receive window of a fetch; see [`Pace::window`](crate::fetch::Pace::window).
    #[must_use]
    pub fn window(&self, fetch: FetchId) -> Option<u32> {
        let remaining = self.remaining(fetch);
        self.fetches.get(fetch)?.pace.window(remaining)
    }

    /// What a reader may have unsent; see [`Pace::unsent`](crate::fetch::Pace::unsent). `None` also
    /// if its whole span is here.
    #[must_use]
    pub fn unsent(&self, reader: ReaderId) -> Option<u32> {
        let Reader { at, to, .. } = self.readers.get(reader)?;
        let missing = self.present.run_end(at);
        if missing >= to.min(self.length()) {
            return None;
        }
        let pace = self.bringing(missing).map(|fetch| &fetch.pace);
        pace.unwrap_or(&self.base).unsent()
    }

    /// The fetch whose bytes the reader needs next and will get: the one whose pace gets its round
    /// trip.
    #[must_use]
    pub fn fetch_of(&self, reader: ReaderId) -> Option<FetchId> {
        let Reader { at, to, .. } = self.readers.get(reader)?;
        let missing = self.present.run_end(at);
        let fetch = self.bringing(missing).filter(|_| missing < to)?;
        Some(fetch.id)
    }

    /// Whether a reader is there that will come to need what the fetch still has to bring, be it
    /// far from it now. For the decision on a fetch: a further request is certain then.
    #[must_use]
    pub fn is_awaited(&self, fetch: FetchId) -> bool {
        let wants = |reader: Reader, front| reader.at <= front && reader.to > front;
        self.fetches
            .get(fetch)
            .is_some_and(|fetch| self.readers.iter().any(|reader| wants(reader, fetch.front)))
    }

    /// The reader that paces the fetch.
    #[must_use]
    pub fn fastest_of(&self, fetch: FetchId) -> Option<ReaderId> {
        let (reader, _) = self.fastest(self.fetches.get(fetch)?)?;
        Some(reader)
    }

    /// The next byte a fetch brings; 0 if it has ended.
    #[must_use]
    pub fn front(&self, fetch: FetchId) -> u64 {
        self.fetches.get(fetch).map_or(0, |fetch| fetch.front)
    }

    /// How many bytes a fetch still has to bring until its end or what it will meet, if that is
    /// known.
    #[must_use]
    pub fn remaining(&self, fetch: FetchId) -> Option<u64> {
        let fetch = self.fetches.get(fetch)?;
        let limit = self.limit(fetch);
        (limit != ByteSpan::OPEN).then(|| limit.saturating_sub(fetch.front))
    }

    /// Length of the content, if it is known.
    #[must_use]
    pub const fn complete_length(&self) -> Option<u64> {
        self.complete_length
    }

    /// What is here.
    #[must_use]
    pub const fn present(&self) -> &ByteSpans {
        &self.present
    }

    /// Whether all of the content is here.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let all = |length| self.present.run_end(0) >= length;
        self.complete_length.is_some_and(all)
    }

    /// Whether nothing will be added: no fetch runs, and no reader is there for whom one could be
    /// begun.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let length = self.length();
        let lacks = |reader: Reader| self.present.run_end(reader.at) < reader.to.min(length);
        let can_begin = self.closed.is_none() && self.rules.can_range;
        self.fetches.len() == 0 && !(can_begin && self.readers.iter().any(lacks))
    }

    /// Whether a fetch was cut or found another representation: none is begun any more.
    #[must_use]
    pub const fn closed(&self) -> Option<CutReason> {
        self.closed
    }

    /// Bytes fetched here and given to no reader so far.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.counts.undelivered.total()
    }

    /// Bytes fetched here.
    #[must_use]
    pub const fn fetched(&self) -> u64 {
        self.counts.fetched
    }

    /// Bytes received that were here already, or beyond the requested span: not in
    /// [`Self::fetched`].
    #[must_use]
    pub const fn fetched_twice(&self) -> u64 {
        self.counts.fetched_twice
    }

    /// The furthest a fetch ever was ahead of all its readers, in bytes; what came in the
    /// background does not count.
    #[must_use]
    pub const fn read_ahead_max(&self) -> u64 {
        self.counts.read_ahead_max
    }

    /// The same for a driver that closes the window towards the end by itself.
    #[must_use]
    pub fn open_window(&self, fetch: FetchId) -> Option<u32> {
        self.fetches.get(fetch)?.pace.window(None)
    }

    /// Bytes a second at which the fastest reader of a fetch takes them; 0 if that is not known.
    #[must_use]
    pub fn rate_bytes_s(&self, fetch: FetchId) -> u64 {
        let fetch = self.fetches.get(fetch);
        fetch.map_or(0, |fetch| fetch.pace.rate_bytes_s())
    }

    /// The places of the slowest reader and of the fastest; `None` without readers.
    #[must_use]
    pub fn places(&self) -> Option<(u64, u64)> {
        self.readers.ends()
    }

    /// How many readers are attached.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.len()
    }

    /// How many fetches run.
    #[must_use]
    pub const fn fetches(&self) -> usize {
        self.fetches.len()
    }
}
