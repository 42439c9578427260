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
    /// It goes on through content that is present: what another fetch was to bring behind that is
    /// lost, and this one was asked for it, too.
    pub(super) goes_through: bool,
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
            goes_through: false,
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

    /// The byte `at` is lost with the fetch that was to bring it. Of those that were asked for it,
    /// too, the one that comes there first goes on through what is present before it.
    pub(super) fn go_through(&mut self, at: u64) {
        let can_bring = |fetch: &&mut Fetch| fetch.front <= at && at < fetch.asked.to;
        let asked = self.running.iter_mut().filter(can_bring);
        if let Some(last) = asked.max_by_key(|fetch| fetch.front) {
            last.goes_through = true;
        }
    }

    /// Where `fetch` ends: at the end of its span, at present content, or at the front of another
    /// fetch.
    pub(super) fn limit(&self, fetch: &Fetch, present: &ByteSpans, length: u64) -> u64 {
        let mut limit = fetch.asked.to.min(length);
        if !fetch.goes_through
            && let Some(at) = present.next_present(fetch.front)
        {
            limit = limit.min(at);
        }
        for other in self.unfinished() {
            // of two at one place the first has it
            let is_behind_its_equal = other.front == fetch.front && other.id < fetch.id;
            if other.front > fetch.front || is_behind_its_equal {
                limit = limit.min(other.front);
            }
        }
        limit
    }

    /// The fetch that will bring the missing byte `at`, as things are: the last one that has its
    /// front at or before it, if nothing ends it before.
    pub(super) fn bringing(&self, at: u64, present: &ByteSpans, length: u64) -> Option<&Fetch> {
        let behind = self.unfinished().filter(|fetch| fetch.front <= at);
        // of two at one place the first has it
        let last = behind.max_by_key(|fetch| (fetch.front, core::cmp::Reverse(fetch.id)))?;
        (self.limit(last, present, length) > at).then_some(last)
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
