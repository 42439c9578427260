//! One running fetch, and all that run.

use super::types::{FetchId, ReaderId};
use crate::fetch::byte_span::{ByteSpan, ByteSpans};
use crate::fetch::pace::{Pace, ReadAhead};
use crate::now::{Now, Tick};
use alloc::vec::Vec;

/// A running fetch.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) id: FetchId,
    /// The requested span.
    pub(super) asked: ByteSpan,
    /// The next byte it brings; missing, unless the fetch has met another's bytes.
    pub(super) front: u64,
    pub(super) pace: Pace,
    /// It was decided to go on, and no reader has needed it since.
    pub(super) goes_on: bool,
    /// Another reader needs its place among the fetches.
    pub(super) yields: bool,
    /// The furthest place any reader ever had in what this fetch brings.
    pub(super) consumed: u64,
    /// When it brought something last, or was begun.
    pub(super) active: Tick,
    /// Its response head has come, and is of the same representation.
    pub(super) is_confirmed: bool,
    /// The reader that is sent its head once this fetch is confirmed.
    pub(super) expected_by: Option<ReaderId>,
}

/// The running fetches: few.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetches {
    running: Vec<Fetch>,
    next: u32,
}

impl Fetches {
    pub(super) fn begin(&mut self, now: Now, read_ahead: ReadAhead, asked: ByteSpan) -> FetchId {
        let id = FetchId(self.next);
        self.next = self.next.wrapping_add(1);
        self.running.push(Fetch {
            id,
            asked,
            front: asked.from,
            pace: Pace::new(read_ahead, now),
            goes_on: false,
            yields: false,
            consumed: asked.from,
            active: now.tick,
            is_confirmed: false,
            expected_by: None,
        });
        id
    }

    pub(super) fn end(&mut self, id: FetchId) -> Option<Fetch> {
        let place = self.running.iter().position(|fetch| fetch.id == id)?;
        Some(self.running.swap_remove(place))
    }

    pub(super) fn get(&self, id: FetchId) -> Option<&Fetch> {
        self.running.iter().find(|fetch| fetch.id == id)
    }

    pub(super) fn get_mut(&mut self, id: FetchId) -> Option<&mut Fetch> {
        self.running.iter_mut().find(|fetch| fetch.id == id)
    }

    pub(super) const fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Fetch> {
        self.running.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fetch> {
        self.running.iter_mut()
    }

    /// Where `fetch` ends: at the end of its span, at present content, or at the front of another
    /// fetch. Once no further one begins (`is_closed`), these end it only where nothing is missing
    /// behind them of what it was asked for, or the other fetch brings all of that: what it does
    /// not bring then, nothing brings.
    pub(super) fn limit(
        &self,
        fetch: &Fetch,
        present: &ByteSpans,
        (length, is_closed): (u64, bool),
    ) -> u64 {
        let to = fetch.asked.to.min(length);
        let mut limit = to;
        for other in self.unfinished() {
            // of two at one place the first has it
            let is_behind_its_equal = other.front == fetch.front && other.id < fetch.id;
            let is_before = other.front > fetch.front || is_behind_its_equal;
            let brings_all = other.asked.to.min(length) >= to;
            if is_before && (brings_all || !is_closed) {
                limit = limit.min(other.front);
            }
        }
        if is_closed {
            return present.run_start(limit).max(fetch.front);
        }
        match present.next_present(fetch.front) {
            Some(at) => limit.min(at),
            None => limit,
        }
    }

    /// The fetch that will bring the missing byte `at`, as things are: of those that have their
    /// front at or before it, and that nothing ends before, the last one.
    pub(super) fn bringing(
        &self,
        at: u64,
        present: &ByteSpans,
        ends: (u64, bool),
    ) -> Option<&Fetch> {
        let behind = self.unfinished().filter(|fetch| fetch.front <= at);
        let bringing = behind.filter(|fetch| self.limit(fetch, present, ends) > at);
        // of two at one place the first has it
        bringing.max_by_key(|fetch| (fetch.front, core::cmp::Reverse(fetch.id)))
    }

    /// The places from which something is on its way.
    pub(super) fn fronts(&self) -> impl Iterator<Item = u64> {
        self.unfinished().map(|fetch| fetch.front)
    }

    /// Those that have not received their whole span, even if that is not noticed yet.
    fn unfinished(&self) -> impl Iterator<Item = &Fetch> {
        let is_unfinished = |fetch: &&Fetch| fetch.front < fetch.asked.to;
        self.running.iter().filter(is_unfinished)
    }
}
