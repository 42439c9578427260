//! An in-flight response: head and facts, the content received so far, its fetches and its readers.
//!
//! Shared by all workers. Decisions are `weir_policy::fetch::InFlightState`'s, bytes are
//! `weir_store::InFlightContent`'s; here they stand behind one mutex, with the wakers of waiting
//! readers and fetches. The mutex is held for a decision and at most one copy of
//! [`COPY_BYTES_MAX`], never across an await.

mod passing;
mod readers;
mod settling;

use crate::fetch::collapse::CollapsedGroup;
use crate::fetch::waiting::{Waiting, WaitsFor, WakeList};
use crate::log::top::fetch_names::FetchNames;
use crate::worker::core::Worker;
use passing::Passing;
pub(crate) use passing::{LetGo, PassingRoom};
pub(crate) use readers::{COPY_BYTES_MAX, JoinTerms, ReaderAction};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use weir_disk::PendingRecord;
use weir_measure::{Counters, Metric};
use weir_policy::catalog::Refusal;
use weir_policy::collapse::Selection;
use weir_policy::fetch::{
    AbortPolicy, ByteSpan, ByteSpans, Chance, CutReason, FetchEnd, FetchId, InFlightRules,
    InFlightState, ReadAhead, ReadPermit, ReaderId, UnreadFetch,
};
use weir_policy::rule::Reuse;
use weir_policy::{Digest, Tick};
use weir_store::{InFlightContent, Reservation, StoredResponse, VaryRule, WritePositionId};

/// An in-flight response.
#[derive(Debug)]
pub(crate) struct InFlightResponse {
    key: Digest,
    /// How far its fetches may run ahead.
    pub(crate) read_ahead: ReadAhead,
    /// What decides whether they continue without readers.
    pub(crate) abort: AbortPolicy,
    /// Head, facts and validators; its content is what was there at first.
    pub(crate) response: Arc<StoredResponse>,
    /// How rules of the operator have it used.
    reuse: Reuse,
    vary: Option<(VaryRule, Digest)>,
    /// The head says the length already.
    has_length: bool,
    /// The stored part that it completes.
    part: Option<Arc<StoredResponse>>,
    /// The part received is stored if no more is received.
    keeps_part: bool,
    /// It is for one client only.
    for_one: bool,
    /// The names that it is counted under.
    names: Option<Box<FetchNames>>,
    /// For the account at its end.
    counters: Arc<Counters>,
    /// A fetch of it ended with the quota of its link.
    is_link_spent: AtomicBool,
    gives_way: AtomicBool,
    /// Itself; none if it is for one client.
    me: Weak<Self>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    fill: InFlightState,
    content: InFlightContent,
    positions: Vec<(FetchId, WritePositionId)>,
    /// The fetch it began with, and the content bytes that one has brought: for the log line of the
    /// request that began it.
    first: (FetchId, u64),
    /// Room in the store; `None` once it is settled.
    reservation: Option<Reservation>,
    /// The reservation of a settled response that is not stored, as long as it has readers.
    unstored: Option<Reservation>,
    /// The group of requests that waited for it, by which later requests find it; `None` once it is
    /// settled.
    group: Option<CollapsedGroup>,
    /// It is known whether it has a group.
    is_published: bool,
    waiting: Waiting,
    trailers: Box<[u8]>,
    /// There is no room to store it: content stays only until its readers have read it.
    passing: Option<Passing>,
    outcome: Option<Outcome>,
    /// It is over, and waits for the disk.
    disk_wait: Option<DiskWait>,
    /// The record on disk that it becomes; `None` once its memory is given back for it.
    record: Option<PendingRecord>,
    /// Round trips of the fastest reader and of the next hop, microseconds; 0 if unknown.
    client_us: u32,
    next_hop_us: u32,
    /// The furthest a fetch was seen ahead of what the fastest client had acknowledged, bytes.
    read_ahead_max: u64,
}

/// A wait for the disk.
#[derive(Clone, Copy, Debug)]
struct DiskWait {
    /// When the disk has last taken any of it, or the wait began.
    since: Tick,
    /// Bytes that the disk has still to take.
    left: usize,
}

/// What became of it in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is stored whole.
    Whole,
    /// A part of it is stored.
    Part,
    /// The catalog dropped it.
    Refused(Refusal),
    /// It is not whole, and a part is of no use: without a strong validator (RFC 9111 §3.4), or as
    /// the next hop has another representation now.
    Dropped,
}

/// The parameters of a new in-flight response.
pub(crate) struct InFlightParams {
    pub(crate) key: Digest,
    pub(crate) response: StoredResponse,
    /// How rules of the operator have it used.
    pub(crate) reuse: Reuse,
    pub(crate) vary: Option<(VaryRule, Digest)>,
    /// Room in the store; without, it passes by.
    pub(crate) reservation: Result<Reservation, Refusal>,
    pub(crate) rules: InFlightRules,
    /// What decides whether its fetches continue without readers.
    pub(crate) abort: AbortPolicy,
    pub(crate) complete_length: Option<u64>,
    /// The stored part that it completes.
    pub(crate) part: Option<Arc<StoredResponse>>,
    /// The part received is stored if no more is received.
    pub(crate) keeps_part: bool,
    /// What the first fetch brings.
    pub(crate) span: ByteSpan,
    /// The names that it is counted under.
    pub(crate) names: Option<Box<FetchNames>>,
}

impl InFlightResponse {
    /// Begins one, with its first fetch under way.
    pub(crate) fn begin(worker: &Worker, params: InFlightParams) -> (Arc<Self>, FetchId) {
        let now = worker.now();
        let body = &params.response.body;
        let mut content = InFlightContent::new(params.complete_length, Some(body));
        let mut fill =
            InFlightState::new(params.rules, now, params.complete_length, body.present());
        let fetch = fill.begin(now, params.span);
        let passing = params.reservation.as_ref().err();
        let passing = passing.map(|why| Passing::begin(worker, *why));
        if passing.is_some() {
            fill.pass();
        }
        let position = content.open(params.span);
        let inner = Inner {
            positions: vec![(fetch, position)],
            first: (fetch, 0),
            reservation: params.reservation.ok(),
            passing,
            ..Inner::new(fill, content)
        };
        let in_flight = |me: &Weak<Self>| Self {
            key: params.key,
            read_ahead: params.rules.read_ahead,
            abort: params.abort,
            response: Arc::new(params.response),
            reuse: params.reuse,
            vary: params.vary,
            has_length: params.complete_length.is_some(),
            part: params.part,
            keeps_part: params.keeps_part,
            for_one: false,
            names: params.names,
            counters: Arc::clone(worker.shared.common_counters()),
            is_link_spent: AtomicBool::new(false),
            gives_way: AtomicBool::new(false),
            me: Weak::clone(me),
            inner: Mutex::new(inner),
        };
        (Arc::new_cyclic(in_flight), fetch)
    }

    /// The rest of `response`, `span` of it, for one client only: nothing of it is here or kept,
    /// and its reader has it fetched. `None` if there is no such rest.
    pub(crate) fn for_one(
        worker: &Worker,
        key: Digest,
        (read_ahead, abort): (ReadAhead, AbortPolicy),
        response: &Arc<StoredResponse>,
        span: ByteSpan,
    ) -> Option<(Arc<Self>, ReaderId)> {
        let now = worker.now();
        let complete_length = response.complete_length();
        let rules = InFlightRules {
            read_ahead,
            fetches_max: 1,
            can_range: true,
        };
        let mut fill = InFlightState::new(rules, now, complete_length, ByteSpans::new());
        fill.pass();
        let reader = fill.attach(span).ok()?;
        let inner = Inner {
            is_published: true,
            passing: Some(Passing::for_one()),
            outcome: Some(Outcome::Dropped),
            ..Inner::new(fill, InFlightContent::new(complete_length, None))
        };
        let in_flight = Self {
            key,
            read_ahead,
            abort,
            response: Arc::clone(response),
            reuse: Reuse::NONE,
            vary: None,
            has_length: true,
            part: None,
            keeps_part: false,
            for_one: true,
            names: None,
            counters: Arc::clone(worker.shared.common_counters()),
            is_link_spent: AtomicBool::new(false),
            gives_way: AtomicBool::new(false),
            me: Weak::new(),
            inner: Mutex::new(inner),
        };
        Some((Arc::new(in_flight), reader))
    }

    /// Whether it answers requests that it was not fetched for.
    pub(crate) fn answers_others(&self, worker: &Worker) -> bool {
        let used = self.reuse.of(&self.response.facts);
        used.answers_others(worker.now())
    }

    /// Whether it is the rest of a response for one client only: nothing of it is stored.
    pub(crate) fn is_for_one(&self) -> bool {
        self.for_one
    }

    /// The group of the requests that waited for it, in which newcomers find it.
    pub(crate) fn set_group(&self, worker: &Worker, group: Option<CollapsedGroup>) {
        let mut inner = self.lock();
        if let Some(group) = &group
            && inner.is_closed()
        {
            group.withdraw();
        }
        inner.group = group;
        inner.is_published = true;
        // it may be over by now
        self.settle(&mut inner, worker);
    }

    /// Whether it answers a request whose nominated fields have this digest. One that gets a
    /// `variant` of modules is not answered by a response that was fetched without them.
    pub(crate) fn select(
        &self,
        variant: Option<Digest>,
        selecting: &dyn Fn(&VaryRule) -> Digest,
    ) -> Selection<Digest> {
        let Some((rule, digest)) = &self.vary else {
            return variant.map_or(Selection::Selected, Selection::Other);
        };
        match selecting(rule) {
            wanted if wanted == *digest => Selection::Selected,
            wanted => Selection::Other(wanted),
        }
    }

    fn lock(&self) -> LockedResponse<'_> {
        let inner = self.inner.lock();
        LockedResponse {
            inner: inner.unwrap_or_else(PoisonError::into_inner),
            woken: WakeList::default(),
        }
    }

    /// What became of it, once that is known.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.lock().outcome
    }

    /// What `fetch` may take now; it will be woken when that has changed.
    pub(crate) fn permit(&self, worker: &Worker, fetch: FetchId, waker: &Waker) -> ReadPermit {
        let mut inner = self.lock();
        inner.take_back(worker, waker);
        let permit = inner.fill.permit(fetch);
        let waits_for = match permit {
            ReadPermit::Wait | ReadPermit::Background | ReadPermit::Unread => WaitsFor::Readers,
            ReadPermit::UpTo(_) => WaitsFor::NextHop,
            ReadPermit::Complete | ReadPermit::Yield => return permit,
        };
        inner.waiting.fetch(fetch, waits_for, waker);
        permit
    }

    /// How many bytes `fetch` still has to bring, if that is known.
    pub(crate) fn to_come(&self, fetch: FetchId) -> Option<u64> {
        self.lock().fill.remaining(fetch)
    }

    /// Whether the next bytes of `fetch`, so many, are the last of the content.
    pub(crate) fn is_last(&self, fetch: FetchId, bytes: u64) -> bool {
        let fill = &self.lock().fill;
        let end = fill.front(fetch).saturating_add(bytes);
        fill.complete_length() == Some(end)
    }

    /// Content that `fetch` received. If there is no room to store it, it stays for its present
    /// readers only, and no new reader may join. Returns the bytes that were taken: none beyond
    /// those that the fetch is for, whatever its framing has (RFC 9110 §14.4: `Content-Range` says
    /// which they are).
    pub(crate) fn push(&self, worker: &Worker, fetch: FetchId, bytes: &[u8]) -> usize {
        let inner = &mut *self.lock();
        let position = inner.positions.iter().find(|(known, _)| *known == fetch);
        let Some(&(_, position)) = position else {
            return bytes.len();
        };
        let room = inner.fill.remaining(fetch).unwrap_or(u64::MAX);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let bytes = &bytes[..room.min(bytes.len())];
        if inner.passing.is_none()
            && let Some(reservation) = &mut inner.reservation
            && let Err(why) = reservation.reserve_push(&mut inner.content, position, bytes.len())
        {
            inner.pass(worker, why);
        }
        inner.content.push(position, bytes);
        inner.fill.received(worker.now(), fetch, bytes.len() as u64);
        if inner.first.0 == fetch {
            inner.first.1 += bytes.len() as u64;
        }
        inner.let_pass();
        bytes.len()
    }

    /// Content that the fetch it began with has brought so far, bytes.
    pub(crate) fn brought_bytes(&self) -> u64 {
        self.lock().first.1
    }

    /// Wakes the readers that wait: after pushing, once a read.
    pub(crate) fn announce(&self) {
        let mut inner = self.lock();
        inner.wake_readers();
        inner.wake_stirred();
    }

    /// The next hop sends only what is before `to` of what `fetch` was asked for. Readers of what
    /// is behind that have to fetch it themselves.
    pub(crate) fn narrow(&self, fetch: FetchId, to: u64) {
        let mut inner = self.lock();
        inner.fill.narrow(fetch, to);
        inner.wake_readers();
        inner.wake_stirred();
    }

    /// How large the receive window of `fetch` may be (`None`: as the kernel likes), and how many
    /// bytes are still to come, if that is known.
    pub(crate) fn window(&self, fetch: FetchId) -> (Option<u32>, Option<u64>) {
        let inner = &mut *self.lock();
        (inner.fill.open_window(fetch), inner.fill.remaining(fetch))
    }

    /// The round trip to the next hop of `fetch`, microseconds.
    pub(crate) fn look_at_next_hop(&self, fetch: FetchId, next_hop_us: u32) {
        let inner = &mut *self.lock();
        inner.next_hop_us = next_hop_us;
        inner
            .fill
            .set_round_trips(fetch, inner.client_us, next_hop_us);
    }

    /// The facts about `fetch` when it has no reader.
    pub(crate) fn unread(
        &self,
        fetch: FetchId,
        again: Chance,
        background_free_bytes: u64,
    ) -> UnreadFetch {
        let inner = self.lock();
        let rate = inner.fill.rate_bytes_s(fetch);
        // opening takes a round trip, and slow start another before it is at speed again (RFC 5681
        // §3.1)
        let set_up_us = 2 * u64::from(inner.next_hop_us);
        UnreadFetch {
            received: inner.fill.present().total(),
            complete_length: inner.fill.complete_length(),
            is_kept: !inner.is_closed()
                && !inner.fill.closed().is_some_and(CutReason::outdates_stored),
            // a reader is about to need it
            again: if inner.fill.is_awaited(fetch) {
                Chance::CERTAIN
            } else {
                again
            },
            part_is_kept: inner.passing.is_none() && self.keeps_part,
            new_connection_bytes: rate.saturating_mul(set_up_us) / 1_000_000,
            background_free_bytes,
        }
    }

    /// A fetch of it ends as the link to the next hop has spent its quota.
    pub(crate) fn link_is_spent(&self) {
        self.is_link_spent.store(true, Ordering::Relaxed);
    }

    /// Whether one has ended so.
    pub(crate) fn is_link_spent(&self) -> bool {
        self.is_link_spent.load(Ordering::Relaxed)
    }

    /// Another part waits for the place of the fetch that completes this one, which is paused then.
    pub(crate) fn give_way(&self) {
        self.gives_way.store(true, Ordering::Relaxed);
        self.lock().wake_fetches();
    }

    /// Whether that is so.
    pub(crate) fn gives_way(&self) -> bool {
        self.gives_way.load(Ordering::Relaxed)
    }

    /// Whether the part received is stored if no more is received.
    pub(crate) fn keeps_part(&self) -> bool {
        self.keeps_part && self.is_kept()
    }

    /// Whether received content is stored at present.
    pub(crate) fn is_kept(&self) -> bool {
        !self.lock().is_closed()
    }

    /// Whether clients read it now.
    pub(crate) fn has_readers(&self) -> bool {
        self.lock().fill.readers() > 0
    }

    /// Whether a request that waited for it is about to read it: then it is not to be judged as one
    /// without readers.
    pub(crate) fn is_awaited(&self) -> bool {
        self.lock().is_awaited()
    }

    /// No waiting request may read it any more: each reads it now, or has been answered otherwise.
    pub(crate) fn not_awaited(&self, worker: &Worker) {
        let mut inner = self.lock();
        if !inner.is_awaited() {
            inner.wake_fetches();
            self.settle(&mut inner, worker);
        }
    }

    /// The policy decided that `fetch` continues without readers.
    pub(crate) fn go_on(&self, fetch: FetchId) {
        self.lock().fill.continue_unread(fetch);
    }

    /// `fetch` is over; `trailers` are those of the message, if it was whole.
    pub(crate) fn end(&self, worker: &Worker, fetch: FetchId, end: FetchEnd, trailers: &[u8]) {
        let mut inner = self.lock();
        self.end_locked(&mut inner, worker, fetch, end, trailers);
    }

    /// Stops `fetch` if it still has no reader; `false` if it has one, or will have.
    pub(crate) fn end_unread(&self, worker: &Worker, fetch: FetchId) -> bool {
        let mut inner = self.lock();
        let permit = inner.fill.permit(fetch);
        let is_unread =
            matches!(permit, ReadPermit::Unread | ReadPermit::Background) && !inner.is_awaited();
        if is_unread {
            self.end_locked(&mut inner, worker, fetch, FetchEnd::Stopped, &[]);
        }
        is_unread
    }

    fn end_locked(
        &self,
        inner: &mut LockedResponse<'_>,
        worker: &Worker,
        fetch: FetchId,
        end: FetchEnd,
        trailers: &[u8],
    ) {
        inner.fill.end(fetch, end);
        if let Some(length) = inner.fill.complete_length() {
            inner.content.set_complete_length(length);
        }
        if !trailers.is_empty() {
            inner.trailers = trailers.into();
        }
        inner.waiting.forget_fetch(fetch);
        if let Some(at) = inner
            .positions
            .iter()
            .position(|(known, _)| *known == fetch)
        {
            let (_, position) = inner.positions.swap_remove(at);
            inner.content.close(position);
        }
        self.settle(inner, worker);
        inner.wake_readers();
        inner.wake_fetches();
    }

    pub(crate) fn key(&self) -> Digest {
        self.key
    }

    /// The names that it is counted under.
    pub(crate) fn names(&self) -> Option<&FetchNames> {
        self.names.as_deref()
    }
}

impl Drop for InFlightResponse {
    /// It has no reader any more: bytes that no client received were wasted, so far.
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        let wasted = inner.fill.undelivered() + inner.fill.fetched_twice();
        self.counters.add_shared(Metric::BytesWasted, wasted);
        if let Some(names) = &self.names {
            names.wasted(wasted);
        }
    }
}

impl Inner {
    /// Without a fetch, a reservation or a group.
    fn new(fill: InFlightState, content: InFlightContent) -> Self {
        Self {
            fill,
            content,
            positions: Vec::new(),
            first: (FetchId(0), 0),
            reservation: None,
            unstored: None,
            group: None,
            is_published: false,
            waiting: Waiting::default(),
            trailers: Box::default(),
            passing: None,
            outcome: None,
            disk_wait: None,
            record: None,
            client_us: 0,
            next_hop_us: 0,
            read_ahead_max: 0,
        }
    }

    /// The furthest a fetch was ahead, bytes: of what the fastest client's kernel had been given,
    /// and, where that was looked at, of what the client had acknowledged.
    fn read_ahead_max(&self) -> u64 {
        self.read_ahead_max.max(self.fill.read_ahead_max())
    }

    fn is_awaited(&self) -> bool {
        !self.is_published || self.group.as_ref().is_some_and(CollapsedGroup::is_awaited)
    }

    /// Whether it is closed to new readers: it is over, will not be stored, or was requested before
    /// a purge.
    fn is_closed(&self) -> bool {
        let is_outdated = self
            .reservation
            .as_ref()
            .is_none_or(Reservation::is_outdated);
        is_outdated || self.passing.is_some()
    }

    /// A fetch of `span` begins.
    fn open(&mut self, fetch: FetchId, span: ByteSpan) {
        let position = self.content.open(span);
        self.positions.push((fetch, position));
    }

    /// Takes back the memory of what was written to disk since the last look; `waker` is woken when
    /// there is more. It passes by if the disk takes no more of it, and memory has no room for what
    /// waited there.
    fn take_back(&mut self, worker: &Worker, waker: &Waker) {
        if self.passing.is_none()
            && let Some(reservation) = &mut self.reservation
            && let Err(why) = reservation.take_back(&mut self.content, waker)
        {
            self.pass(worker, why);
        }
    }
}

/// The lock. Wakers are woken after it has been released.
struct LockedResponse<'a> {
    // dropped in this order
    inner: MutexGuard<'a, Inner>,
    woken: WakeList,
}

impl LockedResponse<'_> {
    /// Wakes the fetches if what they may take may have changed.
    fn wake_stirred(&mut self) {
        if self.inner.fill.take_changed() {
            self.wake_fetches();
        }
    }

    fn wake_readers(&mut self) {
        self.inner.waiting.take_readers(&mut self.woken);
    }

    fn wake_fetches(&mut self) {
        self.inner.waiting.take_fetches(&mut self.woken);
    }

    fn wake_held_back(&mut self) {
        self.inner.waiting.take_held_back(&mut self.woken);
    }
}

impl Deref for LockedResponse<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for LockedResponse<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}
