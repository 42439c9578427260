//! A fetch: one transfer from a next hop into an in-flight response, a task of its own.
//!
//! It belongs to no client. It reads as far ahead of its readers as `weir_policy::fetch` permits,
//! and sizes the kernel's buffer accordingly. When the last reader is detached, the policy decides
//! whether it continues. Its content is in [`InFlightResponse`]. Its connection returns to the pool
//! if the response was complete, and is closed otherwise: HTTP/1.1 has no other way to stop a
//! response (RFC 9112 §9.3). A stream of HTTP/2 is reset, and its connection goes on.

use crate::config::Mode;
use crate::exchange::state::RequestState;
use crate::fetch::in_flight::InFlightResponse;
use crate::worker::core::{SCRATCH_BYTES, Worker};
use crate::worker::demand::Allowance;
use crate::worker::paused_fetches::{PartTarget, URL_BYTES_MAX};
use std::cell::Cell;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_extend::ListenerMode;
use weir_measure::{Aborted, Label as _, Metric};
use weir_net::flow;
use weir_net::http::{ContentCut, ContentEnd, ContentRead, Governor, NextHopStream};
use weir_net::{Deadline, Party};
use weir_policy::Tick;
use weir_policy::fetch::{
    AbortDecision, FetchEnd, FetchId, LeastProgress, ReadPermit, StopReason, UnreadOverLink, judge,
};
use weir_semantics::{DeltaSeconds, Method};

/// What a fetch begins with: the response head has been received.
pub(crate) struct FetchTarget {
    pub(crate) in_flight: Arc<InFlightResponse>,
    pub(crate) id: FetchId,
}

/// A fetch under way.
struct Fetch {
    worker: Rc<Worker>,
    in_flight: Arc<InFlightResponse>,
    id: FetchId,
    hop: Option<NextHopStream>,
    deadline: Deadline,
    silence: Duration,
    /// It runs without a client: its failure is counted here.
    is_spawned: bool,
    /// No reader waits for what it brings, as its link was told.
    is_background: bool,
    /// The kernel's buffer is fitted to the readers. A small response fits into the first window,
    /// which bounds it alone.
    is_paced: bool,
    /// How it ended, once it has.
    end: Option<FetchEnd>,
    /// When the round trip was looked at.
    looked: Option<Tick>,
    /// How long it may continue without a reader if its length is not known, milliseconds.
    unread_ms_max: u64,
    /// Since when it continues so.
    unread_since: Option<Tick>,
    /// Its share of the budget of background bytes.
    background: Allowance,
    /// What requests the rest of it, if it is over a link and can be paused.
    target: Option<PartTarget>,
    /// What it brings without readers, if it completes a paused part: then it has a place that
    /// others wait for.
    completing: Option<LeastProgress>,
    /// Bytes that the heavy hitters do not have yet.
    uncounted: Cell<u64>,
}

/// A transfer that has begun, with the content received with the head; the caller spawns it.
pub(crate) struct Ready(Box<Fetch>);

/// Begins the transfer: readers can read the content received with the head when this returns.
pub(crate) fn begin(
    worker: &Rc<Worker>,
    exchange: &RequestState,
    mut hop: NextHopStream,
    begun: FetchTarget,
) -> Ready {
    let settings = &exchange.settings;
    let silence = settings.config.limits.next_hop_silence.as_duration();
    let read_ahead = begun.in_flight.read_ahead;
    // a connection may come from a route with another read-ahead, and a link offers windows itself
    let is_paced = settings.read_aheads_differ()
        || hop.facts().link.is_some()
        || !Governor::is_small(read_ahead, begun.in_flight.to_come(begun.id));
    if is_paced {
        let base = flow::first_window(read_ahead, worker.now());
        hop.response().begin_window(base.unwrap_or(0));
    }
    let mut fetch = Box::new(Fetch {
        worker: Rc::clone(worker),
        target: part_target(exchange, &hop),
        in_flight: begun.in_flight,
        id: begun.id,
        hop: Some(hop),
        deadline: Deadline::new(silence),
        silence,
        is_spawned: false,
        is_background: exchange.is_for_store_alone(),
        is_paced,
        end: None,
        looked: None,
        unread_ms_max: settings.config.fetch.finish_unknown_length.as_millis(),
        unread_since: None,
        background: Allowance::default(),
        completing: exchange
            .completes_part()
            .then(|| LeastProgress::new(worker.now().tick)),
        uncounted: Cell::new(0),
    });
    worker.counters().inc(Metric::FetchesUnderWay);
    fetch.take_buffered();
    Ready(fetch)
}

/// What requests the rest of what `exchange` has requested, without its fields. None where modules
/// may have changed the request, and where another node of the cluster has the response.
fn part_target(exchange: &RequestState, hop: &NextHopStream) -> Option<PartTarget> {
    let request = &exchange.request;
    let is_plain = request.method == Method::Get
        && exchange.modules.is_none()
        && exchange.variant.is_none()
        && exchange.lateral.is_none();
    if hop.facts().link.is_none() || !is_plain {
        return None;
    }
    let url = request.target_uri();
    (url.len() <= URL_BYTES_MAX).then(|| PartTarget {
        mode: match request.mode {
            Mode::Forward => ListenerMode::Forward,
            Mode::Gateway => ListenerMode::Gateway,
        },
        url: url.into(),
    })
}

impl Ready {
    /// Whether the bytes received with the head break the framing of the response.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.end == Some(FetchEnd::Cut)
    }

    /// Runs it as a task of this worker.
    pub(crate) fn spawn(self) {
        let mut fetch = self.0;
        fetch.is_spawned = true;
        fetch.count_cut();
        if fetch.end.is_none() {
            tokio::task::spawn_local(async move {
                poll_fn(|cx| fetch.poll(cx)).await;
            });
        }
    }
}

impl Fetch {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.end.is_some() {
                return Poll::Ready(());
            }
            let permit = self.in_flight.permit(&self.worker, self.id, cx.waker());
            if matches!(permit, ReadPermit::UpTo(_) | ReadPermit::Wait) {
                self.unread_since = None;
                self.begin_progress();
            }
            let most = match permit {
                ReadPermit::UpTo(most) => {
                    self.set_background(false);
                    most
                }
                ReadPermit::Wait => {
                    // readers keep it waiting, not the next hop
                    self.deadline.moved();
                    return Poll::Pending;
                }
                // switched off meanwhile
                ReadPermit::Background if self.worker.shared.background.is_nothing() => {
                    self.finish(FetchEnd::Stopped);
                    continue;
                }
                ReadPermit::Background if self.is_endless() && !self.in_flight.is_awaited() => {
                    self.stop_unread(StopReason::LengthUnknown);
                    continue;
                }
                ReadPermit::Background if self.is_to_pause() => {
                    self.pause();
                    continue;
                }
                ReadPermit::Background if self.in_flight.is_kept() => {
                    self.set_background(true);
                    let allowed = self.poll_background(cx);
                    if allowed.is_pending() {
                        self.hold_back();
                    }
                    ready!(allowed)
                }
                ReadPermit::Unread | ReadPermit::Background if self.in_flight.is_awaited() => {
                    return Poll::Pending;
                }
                // whether a fetch continues is decided again once it has no reader
                ReadPermit::Unread | ReadPermit::Background => {
                    self.judge();
                    continue;
                }
                // what follows is there, or another fetch brings it
                ReadPermit::Complete => {
                    self.finish(FetchEnd::Met);
                    continue;
                }
                ReadPermit::Yield => {
                    self.finish(FetchEnd::Stopped);
                    continue;
                }
            };
            ready!(self.poll_read(cx, most));
        }
    }

    /// Reads once, at most `most` bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>, most: u64) -> Poll<()> {
        self.adjust();
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch();
        // a read that fills its buffer has the reactor think that there is more, and ask the
        // kernel. Not where another fetch begins: if that has brought nothing, this one may go on
        let is_last = self.in_flight.is_last(self.id, most);
        let most = most.saturating_add(u64::from(is_last));
        let most = usize::try_from(most).map_or(scratch.len(), |most| most.min(scratch.len()));
        let (in_flight, id) = (&self.in_flight, self.id);
        let Some(hop) = &mut self.hop else {
            return Poll::Ready(());
        };
        let mut response = hop.response();
        let read = response.poll_content(cx, &mut scratch[..most.max(1)], |_, data| {
            push(in_flight, &worker, id, data)
        });
        match read {
            Poll::Pending if response.is_held_back() => {
                // the link keeps it waiting, not the next hop
                self.deadline.moved();
                self.hold_back();
                Poll::Pending
            }
            Poll::Pending => {
                if let Some(progress) = &mut self.completing {
                    progress.go_on(worker.now().tick);
                }
                self.deadline.wait_for(Party::NextHop, self.silence);
                if self.deadline.poll_passed(cx).is_ready() {
                    self.finish(FetchEnd::Cut);
                    return Poll::Ready(());
                }
                Poll::Pending
            }
            Poll::Ready(Err(why)) => {
                if why == ContentCut::LinkSpent {
                    self.in_flight.link_is_spent();
                    let goes_on = matches!(self.verdict(), AbortDecision::Continue(_));
                    if goes_on && self.in_flight.keeps_part() {
                        self.remember();
                    }
                }
                self.finish(match why {
                    ContentCut::Filter => FetchEnd::Module,
                    _ => FetchEnd::Cut,
                });
                Poll::Ready(())
            }
            Poll::Ready(Ok(read)) => {
                self.deadline.moved();
                if let Some(progress) = &mut self.completing {
                    progress.add(worker.now().tick, read.bytes);
                }
                self.background.spend(read.bytes);
                worker.counters().add(Metric::BytesFromNextHops, read.bytes);
                self.uncounted.set(self.uncounted.get() + read.bytes);
                self.count_names();
                self.settle(&read);
                if self.is_too_slow() {
                    self.finish(FetchEnd::Cut);
                }
                Poll::Ready(())
            }
        }
    }

    /// No reader waits for what it brings, or one does: others go first over its link.
    fn set_background(&mut self, is_background: bool) {
        if self.is_background != is_background {
            self.is_background = is_background;
            if let Some(hop) = &mut self.hop {
                hop.set_background(is_background);
            }
        }
    }

    /// Counts what was received under the names of the fetch, unless these are read right now.
    fn count_names(&self) {
        if let Some(names) = self.in_flight.names()
            && names.received(self.uncounted.get())
        {
            self.uncounted.set(0);
        }
    }

    /// Takes the content that was received with the head.
    fn take_buffered(&mut self) {
        let (in_flight, worker, id) = (&self.in_flight, &self.worker, self.id);
        let Some(hop) = &mut self.hop else { return };
        let read = hop
            .response()
            .take_buffered(|data| push(in_flight, worker, id, data));
        self.settle(&read);
    }

    /// Reports received content to the readers, and counts it.
    fn settle(&mut self, read: &ContentRead) {
        let counters = self.worker.counters();
        counters.add(Metric::BodyBytesFromNextHops, read.content_bytes);
        let overhead = read.bytes - read.content_bytes;
        counters.add(Metric::OverheadFromNextHops, overhead);
        match read.end {
            ContentEnd::More => self.in_flight.announce(),
            ContentEnd::Whole => self.finish(FetchEnd::Whole),
            // where the rest is received by another fetch, too, no request is sent for it
            ContentEnd::Stopped => self.finish(FetchEnd::Met),
            ContentEnd::BrokenFraming => self.finish(FetchEnd::Cut),
        }
    }

    /// Whether it is worth its bytes without a reader.
    fn verdict(&mut self) -> AbortDecision {
        // what another connection would cost depends on the round trip
        self.look();
        let shared = &self.worker.shared;
        let free = shared.background.free(self.worker.now());
        let again = shared.popularity.again(self.in_flight.key());
        let mut unread = self.in_flight.unread(self.id, again, free);
        // to stop a stream of HTTP/2 closes no connection
        let closes_one = |hop: &NextHopStream| hop.has_own_connection();
        if !self.hop.as_ref().is_none_or(closes_one) {
            unread.new_connection_bytes = 0;
        }
        match judge(&self.in_flight.abort, &unread) {
            // it would wait for ever
            AbortDecision::Continue(_) if shared.background.is_nothing() => {
                AbortDecision::Stop(StopReason::NoBudget)
            }
            verdict => verdict,
        }
    }

    /// Whether it is better completed later: no reader needs it, and its link has nothing for it,
    /// or another one waits for its place.
    fn is_to_pause(&self) -> bool {
        let over_link = || UnreadOverLink {
            is_link_scarce: self.hop.as_ref().is_some_and(NextHopStream::is_link_scarce),
            gives_way: self.in_flight.gives_way(),
            keeps_part: self.in_flight.keeps_part(),
            is_awaited: self.in_flight.is_awaited(),
        };
        self.target.is_some() && over_link().is_to_pause()
    }

    /// Whether it completes a part, and its next hop sends too little. It is looked at whenever
    /// something comes, and what sends nothing is cut as silent.
    fn is_too_slow(&self) -> bool {
        let now = || self.worker.now().tick;
        let is_too_slow = |progress: &LeastProgress| progress.is_too_slow(now());
        self.completing.as_ref().is_some_and(is_too_slow) && !self.in_flight.is_awaited()
    }

    /// What it brings is measured from now on.
    fn begin_progress(&mut self) {
        if let Some(progress) = &mut self.completing {
            *progress = LeastProgress::new(self.worker.now().tick);
        }
    }

    /// It waits for its link, or for the background's rate.
    fn hold_back(&mut self) {
        if let Some(progress) = &mut self.completing {
            progress.hold_back(self.worker.now().tick);
        }
    }

    /// Ends, and is to be completed later, unless a reader was attached meanwhile.
    fn pause(&mut self) {
        if self.in_flight.end_unread(&self.worker, self.id) {
            self.remember();
            self.finish(FetchEnd::Stopped);
        }
    }

    /// The part of it is to be completed later.
    fn remember(&mut self) {
        let Some(target) = self.target.take() else {
            return;
        };
        self.completing = None;
        let shared = &self.worker.shared;
        let (now, key) = (self.worker.now().tick, self.in_flight.key());
        let counters = shared.common_counters();
        shared.paused.pause(counters, now, key, target);
    }

    /// Says what came of the completion of a part, if that is not known yet: what its next hop did
    /// not send is asked for again later.
    fn conclude(&mut self, end: FetchEnd) {
        if self.completing.take().is_none() {
            return;
        }
        let shared = &self.worker.shared;
        let (now, key) = (self.worker.now().tick, self.in_flight.key());
        let (paused, counters) = (&shared.paused, shared.common_counters());
        match end {
            FetchEnd::Cut => paused.fail(counters, now, key, DeltaSeconds::ZERO),
            _ => paused.forget(counters, key),
        }
    }

    /// It has no reader: continues, or stops.
    fn judge(&mut self) {
        let verdict = self.verdict();
        match verdict {
            AbortDecision::Continue(_) => {
                self.count_fate(verdict);
                self.in_flight.go_on(self.id);
            }
            AbortDecision::Stop(why) => self.stop_unread(why),
        }
    }

    /// Stops without a reader, unless one was attached meanwhile.
    fn stop_unread(&mut self, why: StopReason) {
        if self.in_flight.end_unread(&self.worker, self.id) {
            self.count_fate(AbortDecision::Stop(why));
            self.finish(FetchEnd::Stopped);
        }
    }

    fn count_fate(&self, verdict: AbortDecision) {
        if let Some(fate) = Aborted::from_word(verdict.as_str()) {
            self.worker.counters().inc(Metric::FetchesAbandoned(fate));
        }
    }

    /// Whether it has continued without a reader for too long, and no length says when it ends. It
    /// is looked at whenever something comes, and what sends nothing is cut as silent.
    fn is_endless(&mut self) -> bool {
        let now = self.worker.now().tick;
        let since = *self.unread_since.get_or_insert(now);
        now.ms_since(since) >= self.unread_ms_max && self.in_flight.to_come(self.id).is_none()
    }

    /// Takes from the background's budget, if what it took before is used up; waits for it if there
    /// is none.
    fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<u64> {
        let to_come = self.in_flight.to_come(self.id).unwrap_or(u64::MAX);
        let wanted = to_come.clamp(1, SCRATCH_BYTES as u64);
        let worker = &self.worker;
        let budget = &worker.shared.background;
        self.background.poll(budget, || worker.now(), wanted, cx)
    }

    /// Fits the kernel's buffer to the readers.
    fn adjust(&mut self) {
        if !self.is_paced {
            return;
        }
        self.look();
        let Some(hop) = &mut self.hop else {
            return;
        };
        let (window, to_come) = self.in_flight.window(self.id);
        hop.response().set_window(window, to_come);
    }

    /// Looks at the round trip to the next hop, unless that was done lately.
    fn look(&mut self) {
        let Some(hop) = &mut self.hop else {
            return;
        };
        let now = self.worker.now().tick;
        if self
            .looked
            .is_some_and(|at| now.ms_since(at) < flow::LOOK_MS)
        {
            return;
        }
        self.looked = Some(now);
        if let Some(next_hop_us) = hop.response().measure_round_trip() {
            self.in_flight.look_at_next_hop(self.id, next_hop_us);
        }
    }

    /// Counts a failure of the next hop. One that shows before the client was sent anything becomes
    /// an answer of ours, which is counted there.
    fn count_cut(&self) {
        let is_of_next_hop = self.end == Some(FetchEnd::Cut) && !self.in_flight.is_link_spent();
        if self.is_spawned && is_of_next_hop {
            self.worker.counters().inc(Metric::NextHopErrors);
        }
    }

    fn finish(&mut self, end: FetchEnd) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.conclude(end);
        if self.uncounted.get() > 0 {
            self.count_names();
        }
        self.background.end(&self.worker.shared.background);
        let counters = self.worker.counters();
        counters.dec(Metric::FetchesUnderWay);
        self.count_cut();
        let hop = self.hop.take();
        let Some(mut hop) = hop.filter(|_| matches!(end, FetchEnd::Whole | FetchEnd::Met)) else {
            return self.in_flight.end(&self.worker, self.id, end, &[]);
        };
        let response = hop.response();
        self.in_flight
            .end(&self.worker, self.id, end, response.trailers());
        // what the next hop was offered it may send in the next response on the connection
        hop.release(self.worker.net(), self.in_flight.read_ahead.bytes());
    }
}

/// Hands content to the readers, as far as it belongs to the fetch.
fn push(
    in_flight: &InFlightResponse,
    worker: &Worker,
    id: FetchId,
    data: &[u8],
) -> ControlFlow<()> {
    if in_flight.push(worker, id, data) < data.len() {
        return ControlFlow::Break(());
    }
    ControlFlow::Continue(())
}

impl Drop for Fetch {
    /// A panic, or the end of the proxy: readers must not wait for ever.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.worker.counters().inc(Metric::Panics);
        }
        self.finish(FetchEnd::Cut);
    }
}
