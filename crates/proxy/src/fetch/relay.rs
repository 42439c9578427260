//! Content from the next hop to the client, and on its way into the store: one reader, one bounded
//! buffer.
//!
//! Bytes are read into the worker's scratch buffer and written from there. Only what the client
//! does not take at once is copied, and nothing more is read until that is sent. So the proxy holds
//! at most one scratch buffer for a client, however slow. What the kernel holds is bounded by the
//! [`Governor`], where a response is longer than a quarter of the read-ahead: a small response
//! costs nothing more. While the next hop is silent the client is watched.

use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::Sending;
use crate::fetch::held_content::HeldContent;
use crate::fetch::store_writer::StoreWriter;
use crate::log::record::ContentTimes;
use crate::worker::core::{SCRATCH_BYTES, Worker};
use crate::worker::demand::Allowance;
use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_net::http::{
    ContentCut, ContentEnd, ContentForm, DisconnectSource, Governor, ResponseReceiver,
    ResponseSender,
};
use weir_net::{Deadline, Party};
use weir_policy::catalog::Refusal;
use weir_policy::fetch::{LeastProgress, ReadAhead};
use weir_wire::BodyLength;

/// Pieces below this size are copied together and written at once; larger ones are written in
/// place.
const COPY_BYTES_MAX: usize = 8 * 1024;

/// What a relay keeps to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    hop_silence: Duration,
    client_silence: Duration,
    half_closed: Duration,
    read_ahead: ReadAhead,
    /// No client waits for it: it is fetched for the store, within the budget of background bytes.
    is_background: bool,
    /// Nothing has asked for it: its next hop has to send something.
    is_unasked: bool,
    /// The connection may come from a route with another read-ahead: the kernel's buffers are
    /// looked at at once.
    read_aheads_differ: bool,
}

impl Terms {
    /// The terms for the response to a request.
    pub(crate) fn of(exchange: &RequestState) -> Self {
        let settings = &exchange.settings;
        let limits = &settings.config.limits;
        Self {
            hop_silence: limits.next_hop_silence.as_duration(),
            client_silence: limits.client_silence.as_duration(),
            half_closed: settings.config.fetch.half_closed.as_duration(),
            read_ahead: exchange.read_ahead(),
            is_background: exchange.is_for_store_alone(),
            is_unasked: exchange.is_unasked,
            read_aheads_differ: settings.read_aheads_differ(),
        }
    }
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// The response was whole, and the client has it.
    Whole,
    /// The next hop cut it, or broke the framing; the word says how. The client can see that the
    /// content is incomplete.
    Cut(&'static str),
    /// A module failed to change the content, of the request or the response, or answers by itself.
    Ours,
    /// The client disconnected or stopped reading; or there is none, and the store refuses the
    /// content.
    ClientLeft,
}

/// The bytes that a relay moved, and how it ended.
#[derive(Debug)]
pub(crate) struct RelayResult {
    pub(crate) end: RelayEnd,
    pub(crate) from_hop_bytes: u64,
    /// Content bytes that were received.
    pub(crate) body_bytes: u64,
    /// Content bytes among them that the client's kernel took.
    pub(crate) delivered_bytes: u64,
    /// Other bytes that were received: framing, trailers, bytes behind the response.
    pub(crate) overhead_bytes: u64,
    /// The store did not take it, and why.
    pub(crate) refused: Option<Refusal>,
    /// The store has it, whole.
    pub(crate) stored: bool,
    /// When content was sent.
    pub(crate) content_times: ContentTimes,
}

/// The word of the log for what ends with the quota of its link.
pub(crate) const LINK_SPENT: &str = "link-spent";

/// How a relay ends that cannot receive all content.
const fn end_of_cut(cut: ContentCut) -> RelayEnd {
    match cut {
        ContentCut::Reset => RelayEnd::Cut("next-hop-reset"),
        ContentCut::ClosedEarly => RelayEnd::Cut("next-hop-closed-early"),
        ContentCut::LinkSpent => RelayEnd::Cut(LINK_SPENT),
        // the stream's user reports which module failed
        ContentCut::Filter => RelayEnd::Ours,
    }
}

/// A response under way.
pub(crate) struct Relay<'a> {
    worker: &'a Worker,
    /// How far the content of the request is on its way.
    sending: &'a Cell<Sending>,
    deadline: &'a mut Deadline,
    terms: Terms,
    /// How long the content is, if that is known.
    length: Option<u64>,
    /// Content the client has not taken yet.
    out: Vec<u8>,
    sent: usize,
    store_writer: Option<Box<StoreWriter>>,
    /// Content that was received before the relay began.
    held: Option<Box<HeldContent>>,
    /// Its share of the budget of background bytes, if it counts against that.
    background: Option<Allowance>,
    /// What it brings, if nothing has asked for it.
    progress: Option<LeastProgress>,
    /// Bytes that may be written before the kernel's buffers are looked at.
    free_bytes: u64,
    /// Once it is needed, where there is a read-ahead to keep to.
    governor: Option<Box<Governor>>,
    /// It was needed.
    governed: bool,
    finished: bool,
    /// It has waited for content.
    waits: bool,
    ended: RelayResult,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        worker: &'a Worker,
        (sending, deadline): (&'a Cell<Sending>, &'a mut Deadline),
        terms: Terms,
        (body, form): (BodyLength, ContentForm),
        store_writer: Option<Box<StoreWriter>>,
        content_times: ContentTimes,
    ) -> Self {
        let body = if form == ContentForm::None {
            BodyLength::None
        } else {
            body
        };
        let length = match body {
            BodyLength::Exact(length) => Some(length),
            _ => None,
        };
        Self {
            worker,
            sending,
            deadline,
            terms,
            length,
            free_bytes: if terms.read_aheads_differ {
                0
            } else {
                Governor::free_bytes(terms.read_ahead, length)
            },
            out: Vec::new(),
            sent: 0,
            store_writer,
            held: None,
            background: terms.is_background.then(Allowance::default),
            progress: terms
                .is_unasked
                .then(|| LeastProgress::new(worker.now().tick)),
            governor: None,
            governed: false,
            finished: false,
            waits: false,
            ended: RelayResult {
                end: RelayEnd::Whole,
                from_hop_bytes: 0,
                body_bytes: 0,
                delivered_bytes: 0,
                overhead_bytes: 0,
                refused: None,
                stored: false,
                content_times,
            },
        }
    }

    /// Has it begin with `held`.
    pub(crate) fn begin_with(&mut self, held: Option<Box<HeldContent>>) {
        self.held = held;
    }

    /// Relays until the end, beginning with the content received with the head.
    pub(crate) async fn run(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        mut to_client: OptionalClient<'_, '_>,
    ) -> RelayResult {
        let moved = Cell::new(0);
        let source = to_client.as_ref().map(|client| client.disconnect_source());
        let half_closed = self.terms.half_closed;
        // a response that is received and sent at once needs no timer
        let mut client_left = None;
        let watch_client = || Box::pin(watch(source.clone(), half_closed, &moved));
        if self.background.is_some() {
            let budget = &self.worker.shared.background;
            budget.came(self.worker.now(), from_hop.buffered_bytes() as u64);
        }
        let mut is_first = true;
        let end = poll_fn(|cx| {
            if std::mem::take(&mut is_first)
                && let Err(end) = self.take_buffered(from_hop, &mut to_client, cx)
            {
                return Poll::Ready(end);
            }
            let polled = self.poll(from_hop, &mut to_client, cx);
            let sent_bytes = to_client.as_ref().map_or(0, |client| client.sent_bytes());
            moved.set(self.ended.from_hop_bytes + sent_bytes);
            // what a rule holds back is not in the way of a client that leaves
            let is_held_back = to_client.as_ref().is_some_and(|it| it.is_held_back());
            if polled.is_pending() && (self.out.is_empty() || is_held_back) {
                let client_left = client_left.get_or_insert_with(watch_client);
                if client_left.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(RelayEnd::ClientLeft);
                }
            }
            polled
        })
        .await;
        self.ended.end = end;
        if let Some(allowance) = &mut self.background {
            allowance.end(&self.worker.shared.background);
        }
        if self.out.is_empty() && (1..=COPY_BYTES_MAX).contains(&self.out.capacity()) {
            self.worker.spare_content.set(mem::take(&mut self.out));
        }
        if end != RelayEnd::Whole {
            // dropping the writer discards an incomplete response
            self.store_writer = None;
        }
        RelayResult {
            content_times: std::mem::take(&mut self.ended.content_times),
            ..self.ended
        }
    }

    fn poll(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
    ) -> Poll<RelayEnd> {
        loop {
            if self.sending.get() == Sending::ModuleStopped {
                return Poll::Ready(RelayEnd::Ours);
            }
            match self.poll_flush(from_hop, to_client, cx) {
                Poll::Pending => {
                    return match self.deadline.poll_passed(cx) {
                        Poll::Ready(()) => Poll::Ready(RelayEnd::ClientLeft),
                        Poll::Pending => Poll::Pending,
                    };
                }
                Poll::Ready(Err(_)) => return Poll::Ready(RelayEnd::ClientLeft),
                Poll::Ready(Ok(())) => {}
            }
            if self.finished {
                return Poll::Ready(RelayEnd::Whole);
            }
            match self.poll_content(from_hop, to_client, cx) {
                // the client gets the head though no content follows yet; not while a module works
                // on what has come, as it may answer by itself
                Poll::Pending
                    if from_hop.is_filter_idle() && !std::mem::replace(&mut self.waits, true) => {}
                Poll::Pending => {
                    return match self.deadline.poll_passed(cx) {
                        Poll::Ready(()) => Poll::Ready(RelayEnd::Cut("next-hop-silent")),
                        Poll::Pending => Poll::Pending,
                    };
                }
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Ready(Ok(())) => {}
            }
        }
    }

    /// Sends what waits, and the end once it has come.
    fn poll_flush(
        &mut self,
        from_hop: &ResponseReceiver<'_>,
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(client) = to_client else {
            self.out.clear();
            return Poll::Ready(Ok(()));
        };
        // as long as modules have put out nothing of what has come, they may answer by themselves
        let is_begun = self.waits || self.finished || self.ended.body_bytes > 0;
        if !is_begun && from_hop.has_filter() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let waiting = &self.out[self.sent..];
            let end = self.finished.then(|| from_hop.trailers());
            let sent = client.poll_send(cx, &[waiting], end);
            if let Some(governor) = &mut self.governor {
                governor.sent(&sent);
            }
            match sent {
                Poll::Pending => {
                    let silence = self.terms.client_silence;
                    if client.is_held_back() {
                        self.deadline.set(silence);
                    } else {
                        self.deadline.wait_for(Party::Client, silence);
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.delivered(count);
                    let is_flushed = !self.finished || client.is_complete();
                    if self.sent == self.out.len() && is_flushed {
                        break;
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// The client was handed so many bytes of content.
    fn delivered(&mut self, count: usize) {
        if count > 0 {
            let ended = &mut self.ended;
            ended.delivered_bytes += count as u64;
            ended.content_times.reach(ended.delivered_bytes);
            self.deadline.moved();
        }
    }

    /// Reads once from the next hop and forwards the content.
    fn poll_content(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), RelayEnd>> {
        let worker = self.worker;
        let max = match ready!(self.poll_background(cx)) {
            Ok(allowed) => allowed.min(self.govern(from_hop, to_client)),
            Err(end) => return Poll::Ready(Err(end)),
        };
        let mut scratch = worker.scratch();
        let max = max.min(scratch.len());
        let mut emitted = Ok(());
        let read = from_hop.poll_content(cx, &mut scratch[..max], |cx, data| {
            self.accept(data, to_client, cx, &mut emitted)
        });
        match read {
            Poll::Pending => {
                let is_held_back = from_hop.is_held_back();
                if let Some(progress) = &mut self.progress {
                    let now = worker.now().tick;
                    match is_held_back {
                        true => progress.hold_back(now),
                        false => progress.go_on(now),
                    }
                }
                if self.sending.get().is_under_way() || is_held_back {
                    // what is sent has limits of its own, and the wait for a link is no silence
                    self.deadline.set(self.terms.hop_silence);
                } else {
                    self.deadline
                        .wait_for(Party::NextHop, self.terms.hop_silence);
                }
                Poll::Pending
            }
            Poll::Ready(Err(cut)) => Poll::Ready(Err(end_of_cut(cut))),
            Poll::Ready(Ok(read)) => {
                self.deadline.moved();
                self.ended.from_hop_bytes += read.bytes;
                if let Some(allowance) = &mut self.background {
                    allowance.spend(read.bytes);
                }
                self.ended.overhead_bytes += read.bytes - read.content_bytes;
                let settled = self.settle(read.end, emitted);
                if !self.finished && self.is_too_slow(read.bytes) {
                    return Poll::Ready(Err(RelayEnd::Cut("next-hop-slow")));
                }
                Poll::Ready(settled)
            }
        }
    }

    /// Whether nothing has asked for it, and its next hop sends too little, with the `bytes` that
    /// it has just sent. What sends nothing is cut as silent.
    fn is_too_slow(&mut self, bytes: u64) -> bool {
        let Some(progress) = &mut self.progress else {
            return false;
        };
        let now = self.worker.now().tick;
        progress.add(now, bytes);
        progress.is_too_slow(now)
    }

    /// How many bytes the budget of background bytes permits to read; waits for them. The wait does
    /// not count as silence of the next hop.
    fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, RelayEnd>> {
        let Some(allowance) = &mut self.background else {
            return Poll::Ready(Ok(usize::MAX));
        };
        let worker = self.worker;
        let budget = &worker.shared.background;
        // switched off meanwhile
        if budget.is_nothing() {
            return Poll::Ready(Err(RelayEnd::ClientLeft));
        }
        let came = self.ended.body_bytes;
        let to_come = self.length.map_or(u64::MAX, |length| length - came);
        let wanted = to_come.clamp(1, SCRATCH_BYTES as u64);
        let allowed = allowance.poll(budget, || worker.now(), wanted, cx);
        if allowed.is_pending() {
            self.deadline.set(self.terms.hop_silence);
            if let Some(progress) = &mut self.progress {
                progress.hold_back(worker.now().tick);
            }
        }
        allowed.map(|bytes| Ok(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Before a read, when all that was read before is written: adjusts to how fast the client
    /// takes it. How many bytes may be read.
    fn govern(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        to_client: &mut OptionalClient<'_, '_>,
    ) -> usize {
        let Some(client) = to_client else {
            return usize::MAX;
        };
        let written = client.sent_bytes();
        if written < self.free_bytes {
            return usize::MAX;
        }
        let now = self.worker.now();
        if !self.governed {
            self.governed = true;
            let governor = Governor::new(self.terms.read_ahead, now, from_hop, client);
            self.governor = governor.map(Box::new);
        }
        let remaining = self
            .length
            .map(|length| length.saturating_sub(self.ended.body_bytes));
        let Some(governor) = &mut self.governor else {
            // a quota of its link may bound it nevertheless, and by less each time
            from_hop.set_window(None, remaining);
            return usize::MAX;
        };
        governor.before_read(now, from_hop, client, remaining);
        governor.read_max()
    }

    /// Takes the content that was received before: with the head, if it was not held.
    fn take_buffered(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RelayEnd> {
        let mut emitted = Ok(());
        if let Some(held) = self.held.take() {
            let accepted = self.accept(&held.content, to_client, cx, &mut emitted);
            if accepted.is_break() {
                return Err(RelayEnd::ClientLeft);
            }
            self.ended.from_hop_bytes += held.read_bytes;
            self.ended.overhead_bytes += held.overhead_bytes;
            return match held.end {
                Some(Err(cut)) => Err(end_of_cut(cut)),
                Some(Ok(end)) => self.settle(end, emitted),
                None => emitted,
            };
        }
        let read = from_hop.take_buffered(|data| self.accept(data, to_client, cx, &mut emitted));
        self.ended.overhead_bytes += read.bytes - read.content_bytes;
        self.settle(read.end, emitted)
    }

    /// Stores content and forwards it. Content is stored and counted also if the client has
    /// disconnected: other requests may wait for it.
    fn accept(
        &mut self,
        data: &[u8],
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
        emitted: &mut Result<(), RelayEnd>,
    ) -> ControlFlow<()> {
        self.ended.body_bytes += data.len() as u64;
        if self.keep(data, to_client).is_err() {
            return ControlFlow::Break(());
        }
        if emitted.is_ok() {
            *emitted = self.emit(data, to_client, cx);
        }
        ControlFlow::Continue(())
    }

    /// What follows the content that was received is `end`.
    fn settle(&mut self, end: ContentEnd, emitted: Result<(), RelayEnd>) -> Result<(), RelayEnd> {
        match end {
            ContentEnd::More => emitted,
            ContentEnd::Whole => {
                self.finish();
                emitted
            }
            ContentEnd::BrokenFraming => Err(RelayEnd::Cut("next-hop-broke-framing")),
            ContentEnd::Stopped => Err(RelayEnd::ClientLeft),
        }
    }

    /// Content that the store refuses is still sent to the client, if there is one.
    fn keep(
        &mut self,
        data: &[u8],
        to_client: &mut OptionalClient<'_, '_>,
    ) -> Result<(), RelayEnd> {
        if let Some(store_writer) = &mut self.store_writer
            && let Err(refusal) = store_writer.push(self.worker, data)
        {
            self.ended.refused = Some(refusal);
            self.store_writer = None;
            if to_client.is_none() {
                return Err(RelayEnd::ClientLeft);
            }
        }
        Ok(())
    }

    /// Everything has come: make the stored response findable.
    fn finish(&mut self) {
        self.finished = true;
        if let Some(store_writer) = self.store_writer.take() {
            let finished = store_writer.finish(self.worker);
            self.ended.stored = finished.is_ok();
            self.ended.refused = finished.err();
        }
    }

    /// Forwards content: in place if it is large enough, else behind the content that waits.
    fn emit(
        &mut self,
        data: &[u8],
        to_client: &mut OptionalClient<'_, '_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RelayEnd> {
        let Some(client) = to_client else {
            return Ok(());
        };
        if data.len() <= COPY_BYTES_MAX {
            if self.out.capacity() == 0 {
                self.out = self.worker.spare_content.take();
            }
            self.out.extend_from_slice(data);
            return Ok(());
        }
        let waiting = self.out.len() - self.sent;
        let sent = client.poll_send(cx, &[&self.out[self.sent..], data], None);
        if let Some(governor) = &mut self.governor {
            governor.sent(&sent);
        }
        let taken = match sent {
            Poll::Ready(Ok(count)) => count,
            _ => 0,
        };
        self.delivered(taken);
        self.sent += taken.min(waiting);
        self.out
            .extend_from_slice(&data[taken.saturating_sub(waiting)..]);
        match sent {
            Poll::Ready(Err(_)) => Err(RelayEnd::ClientLeft),
            _ => Ok(()),
        }
    }
}

/// The client, if there is one.
type OptionalClient<'a, 'c> = Option<&'a mut ResponseSender<'c>>;

/// Ready when the client has disconnected; never if there is none.
async fn watch(source: Option<DisconnectSource<'_>>, half_closed: Duration, moved: &Cell<u64>) {
    match source {
        Some(source) => {
            source.disconnected(half_closed, moved).await;
        }
        None => pending().await,
    }
}
