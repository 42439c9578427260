//! An in-flight response: where each reader reads, which fetches run, and how much each may take.
//!
//! The driver keeps the bytes; a `InFlightState` knows their spans. It is one value behind one
//! lock. It receives all events of the response, and decides what each reader does
//! ([`InFlightState::step`]) and how much each fetch may read ([`InFlightState::permit`]).
//!
//! * **A fetch is paced by its fastest reader alone.** Of the readers whose next missing byte the
//!   fetch will receive, that is the most advanced one; the fetch may be ahead of its place by
//!   [`Pace::ahead`], and never beyond its span. A slow or stopped reader appears in no sum: it
//!   reads later what is here. If the fastest disconnects, the next one counts, and the fetch waits
//!   until that one has caught up.
//! * **No byte is requested twice.** A fetch ends where content is present or at the front of
//!   another fetch; if that one ends early, the first continues beyond if it has not ended, and
//!   another is begun otherwise. One that is sent less than it was asked for ends there
//!   ([`InFlightState::narrow`]), and the rest is a gap as any.
//! * **A gap is fetched when a reader needs it**: when its place is within the read-ahead of the
//!   gap, and no fetch is about to come there by itself ([`NEAR_BYTES`]). Of
//!   [`InFlightRules::fetches_max`] fetches half are for readers that can do nothing else; if all
//!   run, one that waits for a slow reader, or has no reader, gives way ([`ReadPermit::Yield`]).
//! * **A cut is honest.** A fetch that is cut, or finds another representation, closes the
//!   response: what is here and what other fetches bring is read, then readers are cut. So does one
//!   that may not be shared; then each reader may still fetch for itself alone. A cut of a fetch
//!   that no reader was waiting for closes nothing if it can be resumed: next hops do lose patience
//!   with a proxy that makes them wait.
//! * **A cut costs nothing that would have come.** Once no fetch begins any more, one that runs
//!   goes on through what is here, and through what others bring, as long as something is missing
//!   behind that which it was asked for, unless another one brings all of it: its readers had no
//!   part in the cut.

mod byte_counts;
mod confirm;
mod fetch;
mod missing_ranges;
mod passing;
mod reader;
mod types;
mod view;

use super::byte_span::{ByteSpan, ByteSpans};
use super::pace::Pace;
use crate::now::Now;
use byte_counts::ByteCounts;
use fetch::{Fetch, Fetches};
use reader::{Reader, Readers};

pub use passing::{PASSING_AHEAD_BYTES_MAX, PASSING_BEHIND_BYTES, PASSING_BEHIND_READER_BYTES};
pub use types::{
    AttachError, Confirm, CutReason, DeliveryCount, FETCHES_MAX, FetchEnd, FetchId, InFlightRules,
    NEAR_BYTES, PART_BYTES_MIN, READERS_MAX, ReadPermit, ReaderId, SPANS_MAX, Step,
};

/// An in-flight response.
///
/// Places only move on, and bytes that are present stay present. An id that is not, or no more,
/// attached or running is answered as one that has ended; nothing panics.
#[derive(Clone, Debug)]
pub struct InFlightState {
    rules: InFlightRules,
    complete_length: Option<u64>,
    present: ByteSpans,
    readers: Readers,
    fetches: Fetches,
    closed: Option<CutReason>,
    /// What a reader of a fetch not begun yet may have unsent.
    base: Pace,
    counts: ByteCounts,
    /// What comes is not kept.
    is_passing: bool,
    take_changed: bool,
}

impl InFlightState {
    /// A response of which `present` is here already, without readers and fetches.
    #[must_use]
    pub fn new(
        rules: InFlightRules,
        now: Now,
        complete_length: Option<u64>,
        present: ByteSpans,
    ) -> Self {
        Self {
            rules,
            complete_length,
            counts: ByteCounts::new(present.clone()),
            present,
            readers: Readers::default(),
            fetches: Fetches::default(),
            closed: None,
            base: Pace::new(rules.read_ahead, now),
            is_passing: false,
            take_changed: false,
        }
    }

    /// A fetch of `span` runs: the first, by a driver that has its head already. `span.from` is not
    /// present.
    pub fn begin(&mut self, now: Now, span: ByteSpan) -> FetchId {
        let fetch = self.ask(now, span);
        self.confirmed(fetch);
        fetch
    }

    /// A fetch of `span` began, whose head is not received yet.
    fn ask(&mut self, now: Now, span: ByteSpan) -> FetchId {
        self.take_changed = true;
        self.fetches.begin(now, self.rules.read_ahead, span)
    }

    /// A reader of the span `wants` (open: to the end of the content).
    ///
    /// # Errors
    /// Why it cannot read here: see [`AttachError`].
    pub fn attach(&mut self, wants: ByteSpan) -> Result<ReaderId, AttachError> {
        let length = self.length();
        if wants.from >= wants.to || (wants.from > 0 && wants.from >= length) {
            return Err(AttachError::BeyondEnd);
        }
        if self.is_ended_by_module() {
            return Err(AttachError::Closed);
        }
        if self.readers.len() >= READERS_MAX {
            return Err(AttachError::TooManyReaders);
        }
        let wanted = ByteSpan::new(wants.from, wants.to.min(length));
        let gap = wanted.and_then(|wanted| self.present.first_missing(wanted));
        if let Some(gap) = gap {
            self.reachable(gap.from, wants)?;
        }
        let id = self.readers.attach(wants);
        if gap.is_some() {
            self.claim(wants.from);
        }
        self.take_changed = true;
        Ok(id)
    }

    /// What the reader can do now.
    ///
    /// The answer changes when bytes are [received](Self::received), when a fetch
    /// [ends](Self::end) or is to bring [less](Self::narrow), and when the reader has moved.
    pub fn step(&mut self, now: Now, reader: ReaderId) -> Step {
        let Some(reader) = self.readers.get(reader) else {
            return Step::Done;
        };
        let Reader { at, to, .. } = reader;
        let end = to.min(self.length());
        if at >= end {
            return Step::Done;
        }
        if self.is_ended_by_module() && !reader.has_begun() {
            return Step::Cut(CutReason::Module);
        }
        let missing = self.present.run_end(at);
        if missing < end {
            self.claim(at);
            if self.is_to_fetch(at, missing) {
                let span = self.gap(missing, end);
                let fetch = self.ask(now, span);
                return Step::Fetch { fetch, span };
            }
        }
        if let Some(span) = ByteSpan::new(at, missing.min(end)) {
            return Step::Read(span);
        }
        if self.can_begin() {
            if self.near(at).is_none() {
                self.ask_for_room();
            }
            return Step::Wait;
        }
        match self.bringing(at) {
            Some(_) => Step::Wait,
            None => Step::Cut(self.closed.unwrap_or(CutReason::Stopped)),
        }
    }

    /// The reader needs the byte `at` next: its kernel has accepted all before. Not back, and not
    /// beyond what is present.
    pub fn moved(&mut self, now: Now, reader: ReaderId, at: u64) {
        let Some(before) = self.readers.get(reader) else {
            return;
        };
        let at = at
            .min(self.present.run_end(before.at))
            .min(before.to)
            .max(before.at);
        let missing = self.present.run_end(at);
        // a reader that comes by another fetch is not as fast as the distance suggests
        let fastest = self
            .bringing(missing)
            .and_then(|fetch| self.fastest(fetch))
            .map_or(before.at, |(_, fastest)| fastest.at.max(before.at));
        self.readers.moved(reader, at);
        for fetch in self.fetches.iter_mut() {
            if at > fetch.asked.from && at <= fetch.front {
                fetch.consumed = fetch.consumed.max(at);
            }
        }
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
            let beyond = at.saturating_sub(fastest);
            fetch.pace.handed_over(now, beyond, missing == at);
            self.take_changed = true;
        }
    }

    /// The reader is detached, for whatever reason.
    pub fn leave(&mut self, reader: ReaderId) {
        if self.readers.leave(reader).is_some() {
            self.take_changed = true;
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
        fetch.is_confirmed = true;
        fetch.active = now.tick;
        if !fetch.goes_on {
            self.counts.led(to.saturating_sub(fetch.consumed));
        }
        let mut new = 0;
        let mut rest = ByteSpan::new(from, to);
        while let Some(gap) = rest.and_then(|rest| self.present.first_missing(rest)) {
            self.present.insert(gap);
            self.counts.fetched(gap);
            new += gap.len();
            rest = ByteSpan::new(gap.to, to);
        }
        self.counts.fetched_twice += bytes.saturating_sub(new);
        // it has met what is present: readers here may need another fetch from now on
        self.take_changed |= self.present.run_end(to) > to;
    }

    /// The next hop sends of what the fetch was asked for only what is before `to`, as it may (RFC
    /// 9110 §15.3.7): the fetch ends there, and is whole. A part of fewer than [`PART_BYTES_MIN`]
    /// is taken for one that is cut.
    pub fn narrow(&mut self, fetch: FetchId, to: u64) {
        let length = self.length();
        let Some(fetch) = self.fetches.get_mut(fetch) else {
            return;
        };
        let is_short = to < fetch.asked.to.min(length);
        if is_short && to.saturating_sub(fetch.front) >= PART_BYTES_MIN {
            fetch.asked.to = to;
            self.take_changed = true;
        }
    }

    /// How much the fetch may take now.
    ///
    /// The answer changes when [`Self::take_changed`] says so, and when bytes are received.
    #[must_use]
    pub fn permit(&self, fetch: FetchId) -> ReadPermit {
        let Some(fetch) = self.fetches.get(fetch) else {
            return ReadPermit::Unread;
        };
        let limit = self.limit(fetch);
        if fetch.front >= limit {
            return ReadPermit::Complete;
        }
        let fastest = self.fastest(fetch).map(|(_, reader)| reader);
        let Some(fastest) = fastest.or_else(|| self.expecting(fetch)) else {
            return match (fetch.goes_on, fetch.yields) {
                (true, false) => ReadPermit::Background,
                (true, true) => ReadPermit::Yield,
                (false, _) => ReadPermit::Unread,
            };
        };
        let until = fastest.at.saturating_add(self.ahead(fetch));
        let until = until.min(fastest.to).min(limit);
        match until.saturating_sub(fetch.front) {
            0 if fetch.yields => ReadPermit::Yield,
            0 => ReadPermit::Wait,
            room => ReadPermit::UpTo(room),
        }
    }

    /// The decision is that the fetch continues without readers: until a reader needs it again, and
    /// is detached again.
    pub fn continue_unread(&mut self, fetch: FetchId) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.goes_on = true;
            self.take_changed = true;
        }
    }

    /// The fetch has ended, so.
    pub fn end(&mut self, fetch: FetchId, how: FetchEnd) {
        let permit = self.permit(fetch);
        let Some(fetch) = self.fetches.end(fetch) else {
            return;
        };
        let how = if how == FetchEnd::Whole && !self.completes(&fetch, permit) {
            FetchEnd::Cut
        } else {
            how
        };
        let closed = match how {
            FetchEnd::Whole | FetchEnd::Met | FetchEnd::Stopped => None,
            FetchEnd::Changed => Some(CutReason::Changed),
            FetchEnd::NotShared => Some(CutReason::NotShared),
            FetchEnd::Module => Some(CutReason::Module),
            FetchEnd::Cut if self.was_kept_waiting(&fetch, permit) => None,
            FetchEnd::Cut => Some(CutReason::NextHop),
        };
        self.closed = self.closed.or(closed);
        for fetch in self.fetches.iter_mut() {
            fetch.yields = false;
        }
        self.take_changed = true;
    }

    /// The length of the content is known from a fetch. Does nothing if that is known.
    pub fn learn_length(&mut self, complete_length: u64) {
        self.complete_length.get_or_insert(complete_length);
    }

    /// The round trips of a fetch's fastest reader and of its next hop; see
    /// [`Pace::set_round_trips`].
    pub fn set_round_trips(&mut self, fetch: FetchId, client_us: u32, next_hop_us: u32) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.pace.set_round_trips(client_us, next_hop_us);
        }
    }

    /// Whether a fetch should read its permit again; the call clears it.
    pub fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.take_changed)
    }

    /// The reader was given `span`. For the counts; it need not be reported at once.
    pub fn delivered(&mut self, span: ByteSpan) -> DeliveryCount {
        self.counts.delivered(span)
    }

    /// Whether a module has ended it: then it is for no reader that has not begun.
    fn is_ended_by_module(&self) -> bool {
        self.closed == Some(CutReason::Module)
    }

    fn length(&self) -> u64 {
        self.complete_length.unwrap_or(ByteSpan::OPEN)
    }

    /// What ends a fetch beside other fetches: the length, and whether none begins any more.
    fn ends(&self) -> (u64, bool) {
        (self.length(), self.closed.is_some())
    }

    fn limit(&self, fetch: &Fetch) -> u64 {
        self.fetches.limit(fetch, &self.present, self.ends())
    }

    fn bringing(&self, missing: u64) -> Option<&Fetch> {
        self.fetches.bringing(missing, &self.present, self.ends())
    }

    /// The fastest of the readers whose next missing byte the fetch will receive: those in its
    /// remaining span, or in the present bytes just before its front.
    fn fastest(&self, fetch: &Fetch) -> Option<(ReaderId, Reader)> {
        let from = self.present.run_start(fetch.front);
        let reach = fetch.front.saturating_add(self.reach()).saturating_add(1);
        let places = ByteSpan::new(from, self.limit(fetch).min(reach))?;
        self.readers.fastest(places, fetch.front)
    }

    /// A reader stands at `at`: the fetch that it needs has a reader again.
    fn claim(&mut self, at: u64) {
        let missing = self.present.run_end(at);
        let Some(id) = self.bringing(missing).map(|fetch| fetch.id) else {
            return;
        };
        if let Some(fetch) = self.fetches.get_mut(id).filter(|fetch| fetch.goes_on) {
            fetch.goes_on = false;
            self.take_changed = true;
        }
    }

    /// Whether a fetch was cut while no reader waited for it, and can be resumed. It must have
    /// received something: a next hop that cuts at once gets no further request.
    fn was_kept_waiting(&self, fetch: &Fetch, permit: ReadPermit) -> bool {
        // a fetch whose head was awaited may have received the head alone
        let is_head_alone = fetch.is_confirmed && fetch.expected_by.is_some();
        let has_brought = fetch.front > fetch.asked.from || is_head_alone;
        match permit {
            ReadPermit::Complete => true,
            ReadPermit::UpTo(_) => false,
            _ => self.rules.can_range && has_brought,
        }
    }

    /// Whether a fetch that ended as whole has brought all it could; learns the length of the
    /// content from one that ended with it.
    fn completes(&mut self, fetch: &Fetch, permit: ReadPermit) -> bool {
        if permit == ReadPermit::Complete {
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
