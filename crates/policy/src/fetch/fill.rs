//! A response under construction: who reads where, which fetches run, and how much each may take.
//!
//! The driver keeps the bytes; a `Fill` knows their spans. It is one value behind one lock, told of everything
//! that happens to the response, and asked by each reader what it can do ([`Fill::step`]) and by each fetch how much it
//! may take ([`Fill::take`]).
//!
//! * **A fetch is paced by its fastest reader alone.** Of the readers whose next missing byte the fetch will bring, that
//!   is the one furthest on; the fetch may run ahead of its place by [`Pace::ahead`], and never beyond what it wants.
//!   A slow or stopped reader appears in no sum: it reads later what is here. If the fastest leaves, the next one
//!   counts, and the fetch waits until that one has caught up.
//! * **No byte is asked for twice.** A fetch ends where content is present or where another fetch has its front; if that
//!   one ends early, the first goes on beyond.
//! * **A gap is fetched when a reader needs it**: when its place is within the lead of the gap, and no fetch is about to
//!   come there by itself ([`NEAR_BYTES`]). Of [`FillRules::fetches_max`] fetches half are for readers that can do
//!   nothing else; if all run, one that waits for a slow reader, or that nobody reads, gives way ([`Take::GiveWay`]).
//! * **A cut is honest.** A fetch that is cut, or finds another representation, closes the response: what is here
//!   and what other fetches bring is read, then readers are cut. A cut of a fetch that nobody was waiting for closes
//!   nothing if it can be resumed: next hops do lose patience with a proxy that makes them wait.

mod fetch;
mod reader;
mod words;

#[cfg(test)]
mod tests;

use super::byte_span::{ByteSpan, ByteSpans};
use super::pace::Pace;
use crate::now::Now;
use fetch::{Fetch, Fetches};
use reader::{Reader, Readers};
use words::DELIVERED_RUNS_MAX;

pub use words::{
    Cut, Delivered, FETCHES_MAX, FetchEnd, FetchId, FillRules, NEAR_BYTES, NotHere, READERS_MAX,
    ReaderId, SPANS_MAX, Step, Take,
};

/// A response under construction.
///
/// Places only move on, and bytes that are present stay present. An id that is not, or no more, attached or running is
/// answered as one that has ended; nothing panics.
#[derive(Clone, Debug)]
pub struct Fill {
    rules: FillRules,
    complete_length: Option<u64>,
    present: ByteSpans,
    /// What was present before the first fetch.
    kept: ByteSpans,
    /// What was fetched here and given to no reader.
    undelivered: ByteSpans,
    readers: Readers,
    fetches: Fetches,
    closed: Option<Cut>,
    /// What a reader of a fetch not begun yet may have unsent.
    base: Pace,
    fetched: u64,
    fetched_twice: u64,
    lead_max: u64,
    stirred: bool,
}

impl Fill {
    /// A response of which `present` is here already, with nobody reading and nothing fetched.
    #[must_use]
    pub fn new(
        rules: FillRules,
        now: Now,
        complete_length: Option<u64>,
        present: ByteSpans,
    ) -> Self {
        Self {
            rules,
            complete_length,
            kept: present.clone(),
            present,
            undelivered: ByteSpans::new(),
            readers: Readers::default(),
            fetches: Fetches::default(),
            closed: None,
            base: Pace::new(rules.lead, now),
            fetched: 0,
            fetched_twice: 0,
            lead_max: 0,
            stirred: false,
        }
    }

    /// A fetch of `span` runs: the first, by a driver that has its head already. `span.from` is not present.
    pub fn begin(&mut self, now: Now, span: ByteSpan) -> FetchId {
        self.stirred = true;
        self.fetches.begin(now, self.rules.lead, span)
    }

    /// A reader for `wants` (open: to the end of the content).
    ///
    /// # Errors
    /// Why it cannot read here: see [`NotHere`].
    pub fn attach(&mut self, now: Now, wants: ByteSpan) -> Result<ReaderId, NotHere> {
        let _ = now;
        let length = self.length();
        if wants.from >= wants.to || (wants.from > 0 && wants.from >= length) {
            return Err(NotHere::BeyondEnd);
        }
        if self.readers.len() >= READERS_MAX {
            return Err(NotHere::TooManyReaders);
        }
        let wanted = ByteSpan::new(wants.from, wants.to.min(length));
        if let Some(gap) = wanted.and_then(|wanted| self.present.first_gap(wanted)) {
            self.reachable(gap.from, wants)?;
        }
        let id = self.readers.attach(wants);
        self.claim(wants.from);
        self.stirred = true;
        Ok(id)
    }

    /// What the reader can do now.
    ///
    /// The answer changes when bytes are [received](Self::received), when a fetch [ends](Self::end), and when the
    /// reader has moved.
    pub fn step(&mut self, now: Now, reader: ReaderId) -> Step {
        let Some(Reader { at, to }) = self.readers.get(reader) else {
            return Step::Done;
        };
        let end = to.min(self.length());
        if at >= end {
            return Step::Done;
        }
        let missing = self.present.run_end(at);
        if missing < end {
            self.claim(at);
            if self.is_to_fetch(at, missing) {
                let span = self.gap(missing, end);
                let fetch = self.begin(now, span);
                return Step::Fetch { fetch, span };
            }
        }
        if let Some(span) = ByteSpan::new(at, missing.min(end)) {
            return Step::Read(span);
        }
        if self.bringing(at).is_some() {
            return Step::Wait;
        }
        if let Some(cut) = self.closed {
            return Step::Cut(cut);
        }
        if !self.rules.can_range {
            return Step::Cut(Cut::Stopped);
        }
        self.ask_for_room(now);
        Step::Wait
    }

    /// The reader wants the byte `at` next: its kernel has all before. Not back, and not beyond what is present.
    pub fn moved(&mut self, now: Now, reader: ReaderId, at: u64) {
        let Some(before) = self.readers.get(reader) else {
            return;
        };
        let at = at
            .min(self.present.run_end(before.at))
            .min(before.to)
            .max(before.at);
        self.readers.moved(reader, at);
        for fetch in self.fetches.iter_mut() {
            if at > fetch.asked.from && at <= fetch.front {
                fetch.consumed = fetch.consumed.max(at);
            }
        }
        let missing = self.present.run_end(at);
        if missing >= before.to {
            return;
        }
        let Some(fetch) = self.bringing(missing) else {
            return;
        };
        let id = fetch.id;
        let is_fastest = self.fastest(fetch).is_some_and(|(id, _)| id == reader);
        self.claim(at);
        if let Some(fetch) = self.fetches.get_mut(id).filter(|_| is_fastest) {
            fetch.pace.handed_over(now, at - before.at, missing == at);
            self.stirred = true;
        }
    }

    /// The reader is gone, for whatever reason.
    pub fn leave(&mut self, now: Now, reader: ReaderId) {
        let _ = now;
        if self.readers.leave(reader).is_some() {
            self.stirred = true;
        }
    }

    /// The fetch brought `bytes` more, from its front on.
    pub fn received(&mut self, now: Now, fetch: FetchId, bytes: u64) {
        let length = self.length();
        let Some(fetch) = self.fetches.get_mut(fetch) else {
            return;
        };
        let from = fetch.front;
        let to = from.saturating_add(bytes).min(fetch.asked.to).min(length);
        let to = to.max(from);
        fetch.front = to;
        fetch.active = now.tick;
        if !fetch.goes_on {
            self.lead_max = self.lead_max.max(to.saturating_sub(fetch.consumed));
        }
        let mut new = 0;
        let mut rest = ByteSpan::new(from, to);
        while let Some(gap) = rest.and_then(|rest| self.present.first_gap(rest)) {
            self.present.insert(gap);
            new += self.undelivered.insert(gap);
            rest = ByteSpan::new(gap.to, to);
        }
        self.fetched += new;
        self.fetched_twice += bytes.saturating_sub(new);
    }

    /// How much the fetch may take now.
    ///
    /// The answer changes when [`Self::stirred`] says so, and when bytes are received.
    #[must_use]
    pub fn take(&self, now: Now, fetch: FetchId) -> Take {
        let _ = now;
        let Some(fetch) = self.fetches.get(fetch) else {
            return Take::Orphaned;
        };
        let limit = self.limit(fetch);
        if fetch.front >= limit {
            return Take::Met;
        }
        let Some((_, fastest)) = self.fastest(fetch) else {
            return match (fetch.goes_on, fetch.gives_way) {
                (true, false) => Take::Background,
                (true, true) => Take::GiveWay,
                (false, _) => Take::Orphaned,
            };
        };
        let until = fastest.at.saturating_add(fetch.pace.ahead());
        let until = until.min(fastest.to).min(limit);
        match until.saturating_sub(fetch.front) {
            0 if fetch.gives_way => Take::GiveWay,
            0 => Take::Wait,
            room => Take::UpTo(room),
        }
    }

    /// It was judged that the fetch goes on though nobody reads: until a reader needs it again, and leaves again.
    pub fn go_on(&mut self, fetch: FetchId) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.goes_on = true;
            self.stirred = true;
        }
    }

    /// The fetch has ended, so.
    pub fn end(&mut self, now: Now, fetch: FetchId, how: FetchEnd) {
        let take = self.take(now, fetch);
        let Some(fetch) = self.fetches.end(fetch) else {
            return;
        };
        let how = if how == FetchEnd::Whole && !self.completes(&fetch, take) {
            FetchEnd::Cut
        } else {
            how
        };
        let closed = match how {
            FetchEnd::Whole | FetchEnd::Stopped => None,
            FetchEnd::Changed => Some(Cut::Changed),
            // whoever is waited for, or nobody, is not cut by this
            FetchEnd::Cut if !matches!(take, Take::UpTo(_)) && self.rules.can_range => None,
            FetchEnd::Cut => Some(Cut::NextHop),
        };
        self.closed = self.closed.or(closed);
        for fetch in self.fetches.iter_mut() {
            fetch.gives_way = false;
        }
        self.stirred = true;
    }

    /// A fetch told how long the content is. Does nothing if that is known.
    pub fn learn_length(&mut self, complete_length: u64) {
        self.complete_length.get_or_insert(complete_length);
    }

    /// The round trips of a fetch's fastest reader and of its next hop; see [`Pace::set_round_trips`].
    pub fn set_round_trips(&mut self, fetch: FetchId, client_us: u32, next_hop_us: u32) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.pace.set_round_trips(client_us, next_hop_us);
        }
    }

    /// The receive window of a fetch; see [`Pace::window`].
    #[must_use]
    pub fn window(&self, fetch: FetchId) -> Option<u32> {
        let to_come = self.to_come(fetch);
        self.fetches.get(fetch)?.pace.window(to_come)
    }

    /// What a reader may have unsent; see [`Pace::unsent`]. `None` also if all it wants is here.
    #[must_use]
    pub fn unsent(&self, reader: ReaderId) -> Option<u32> {
        let Reader { at, to } = self.readers.get(reader)?;
        let missing = self.present.run_end(at);
        if missing >= to.min(self.length()) {
            return None;
        }
        let pace = self.bringing(missing).map(|fetch| &fetch.pace);
        pace.unwrap_or(&self.base).unsent()
    }

    /// The fetch whose bytes the reader needs next and will get: the one its round trip is to be told of.
    #[must_use]
    pub fn fetch_of(&self, reader: ReaderId) -> Option<FetchId> {
        let Reader { at, to } = self.readers.get(reader)?;
        let missing = self.present.run_end(at);
        let fetch = self.bringing(missing).filter(|_| missing < to)?;
        Some(fetch.id)
    }

    /// The reader that paces the fetch.
    #[must_use]
    pub fn fastest_of(&self, fetch: FetchId) -> Option<ReaderId> {
        let (reader, _) = self.fastest(self.fetches.get(fetch)?)?;
        Some(reader)
    }

    /// Whether a fetch should look again at what it may take; asking forgets it.
    pub fn stirred(&mut self) -> bool {
        core::mem::take(&mut self.stirred)
    }

    /// The next byte a fetch brings; 0 if it has ended.
    #[must_use]
    pub fn front(&self, fetch: FetchId) -> u64 {
        self.fetches.get(fetch).map_or(0, |fetch| fetch.front)
    }

    /// How many bytes a fetch still has to bring until its end or what it will meet, if that is known.
    #[must_use]
    pub fn to_come(&self, fetch: FetchId) -> Option<u64> {
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

    /// Whether nothing will be added: no fetch runs, and no reader is there for whom one could be begun.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let length = self.length();
        let lacks = |reader: Reader| self.present.run_end(reader.at) < reader.to.min(length);
        let can_begin = self.closed.is_none() && self.rules.can_range;
        self.fetches.len() == 0 && !(can_begin && self.readers.iter().any(lacks))
    }

    /// Whether a fetch was cut or found another representation: none is begun any more.
    #[must_use]
    pub const fn closed(&self) -> Option<Cut> {
        self.closed
    }

    /// The reader was given `span`. For the accounts; it need not be told at once.
    pub fn delivered(&mut self, now: Now, reader: ReaderId, span: ByteSpan) -> Delivered {
        let _ = (now, reader);
        let is_remembered = self.undelivered.len() < DELIVERED_RUNS_MAX;
        let live = if is_remembered {
            self.undelivered.remove(span)
        } else {
            self.undelivered.remove_edge(span)
        };
        Delivered {
            live,
            again: span.len() - live,
            kept: self.kept.overlap(span),
        }
    }

    /// Bytes fetched here and given to nobody so far.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.undelivered.total()
    }

    /// Bytes fetched here.
    #[must_use]
    pub const fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Bytes that came though they were here, or beyond the span that was asked for: not in [`Self::fetched`].
    #[must_use]
    pub const fn fetched_twice(&self) -> u64 {
        self.fetched_twice
    }

    /// The furthest a fetch ever was ahead of all its readers, in bytes; what came in the background does not count.
    #[must_use]
    pub const fn lead_max(&self) -> u64 {
        self.lead_max
    }

    /// Bytes a second at which the fastest reader of a fetch takes them; 0 if that is not known.
    #[must_use]
    pub fn rate_bytes_s(&self, fetch: FetchId) -> u64 {
        let fetch = self.fetches.get(fetch);
        fetch.map_or(0, |fetch| fetch.pace.rate_bytes_s())
    }

    /// The places of the slowest reader and of the fastest; `None` if nobody reads.
    #[must_use]
    pub fn places(&self) -> Option<(u64, u64)> {
        let slowest = self.readers.iter().map(|reader| reader.at).min()?;
        let fastest = self.readers.iter().map(|reader| reader.at).max()?;
        Some((slowest, fastest))
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

    fn length(&self) -> u64 {
        self.complete_length.unwrap_or(ByteSpan::OPEN)
    }

    fn limit(&self, fetch: &Fetch) -> u64 {
        self.fetches.limit(fetch, &self.present, self.length())
    }

    fn bringing(&self, missing: u64) -> Option<&Fetch> {
        self.fetches.bringing(missing, &self.present, self.length())
    }

    /// The fastest of those whose next missing byte the fetch will bring: they stand in what it will bring, or in the
    /// run of present bytes just before its front.
    fn fastest(&self, fetch: &Fetch) -> Option<(ReaderId, Reader)> {
        let from = self.present.run_start(fetch.front);
        let places = ByteSpan::new(from, self.limit(fetch))?;
        self.readers.fastest(places, fetch.front)
    }

    /// Whether a reader of `wants`, of which `missing` is the first byte that is not here, will get all of it.
    fn reachable(&self, missing: u64, wants: ByteSpan) -> Result<(), NotHere> {
        if self.closed.is_some() {
            return Err(NotHere::Closed);
        }
        let near = self.near(missing);
        if self.rules.can_range {
            let begins_run = self.present.run_start(missing) == missing && near.is_none();
            let is_full = self.present.len() >= SPANS_MAX;
            return if begins_run && is_full {
                Err(NotHere::TooManySpans)
            } else {
                Ok(())
            };
        }
        let limit = near.map_or(missing, |fetch| self.limit(fetch));
        let beyond = ByteSpan::new(limit, wants.to.min(self.length()));
        match beyond.and_then(|beyond| self.present.first_gap(beyond)) {
            Some(_) => Err(NotHere::CannotRange),
            None => Ok(()),
        }
    }

    /// The fetch that will soon bring the byte `missing`.
    fn near(&self, missing: u64) -> Option<&Fetch> {
        self.bringing(missing)
            .filter(|fetch| missing - fetch.front <= NEAR_BYTES)
    }

    /// A reader stands at `at`: the fetch it needs is nobody's no longer.
    fn claim(&mut self, at: u64) {
        let missing = self.present.run_end(at);
        let Some(id) = self.bringing(missing).map(|fetch| fetch.id) else {
            return;
        };
        if let Some(fetch) = self.fetches.get_mut(id).filter(|fetch| fetch.goes_on) {
            fetch.goes_on = false;
            self.stirred = true;
        }
    }

    /// Whether the byte `missing` is to be fetched now for a reader at `at`.
    fn is_to_fetch(&self, at: u64, missing: u64) -> bool {
        let running = self.fetches.len();
        let max = usize::try_from(self.rules.fetches_max.max(1)).unwrap_or(usize::MAX);
        // a reader that still has something to read does not take the last places
        let max = if missing > at { max.div_ceil(2) } else { max };
        self.closed.is_none()
            && self.rules.can_range
            && running < max
            && missing - at <= self.rules.lead.bytes()
            && self.near(missing).is_none()
    }

    /// What is missing from `from` up to `to`, to what is present, and to what another fetch brings.
    fn gap(&self, from: u64, to: u64) -> ByteSpan {
        let present = self.present.next_present(from);
        let fronts = self.fetches.iter().map(|fetch| fetch.front);
        let to = fronts
            .chain(present)
            .filter(|&at| at > from)
            .fold(to, u64::min);
        ByteSpan { from, to }
    }

    /// A reader can only go on if a fetch makes room: the one that has brought nothing for the longest time of those
    /// that wait or that nobody reads.
    fn ask_for_room(&mut self, now: Now) {
        if self.fetches.iter().any(|fetch| fetch.gives_way) {
            return;
        }
        let idle = |fetch: &&Fetch| {
            let take = self.take(now, fetch.id);
            matches!(take, Take::Wait | Take::Background)
        };
        let id = self
            .fetches
            .iter()
            .filter(idle)
            .min_by_key(|fetch| (!fetch.goes_on, fetch.active))
            .map(|fetch| fetch.id);
        if let Some(fetch) = id.and_then(|id| self.fetches.get_mut(id)) {
            fetch.gives_way = true;
            self.stirred = true;
        }
    }

    /// Whether a fetch that ended as whole has brought all it could; learns the length of the content from one that
    /// ended with it.
    fn completes(&mut self, fetch: &Fetch, take: Take) -> bool {
        if take == Take::Met {
            return true;
        }
        // nothing lies beyond: no fetch and no byte
        let is_last = self.limit(fetch) == ByteSpan::OPEN;
        if is_last {
            self.complete_length = Some(fetch.front);
        }
        is_last
    }
}
