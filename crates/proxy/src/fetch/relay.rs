//! Content from the next hop to the client, and on its way into the store: one reader, one bounded
//! buffer.
//!
//! Bytes are read into the worker's scratch and written from there; only what the client does not
//! take at once is copied, and nothing more is read until it is gone. So the proxy holds at most
//! one scratch buffer for a client, however slow. What the kernel holds is bounded by the
//! [`Governor`], where a response is longer than a quarter of the read-ahead: a small response
//! costs nothing more. While the next hop is silent the client is watched.

use crate::exchange::state::RequestState;
use crate::fetch::store_writer::StoreWriter;
use crate::log::record::ContentTimes;
use crate::send::framing::Framing;
use crate::send::sink::Sink;
use crate::send::unsent::Unsent;
use crate::worker::core::{SCRATCH_BYTES, Worker};
use crate::worker::demand::Allowance;
use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::ReadHalf;
use weir_net::client::disconnected;
use weir_net::flow::Governor;
use weir_net::{Deadline, Party};
use weir_policy::catalog::Refusal;
use weir_policy::fetch::ReadAhead;
use weir_wire::{BodyEvent, BodyLength, BodyReader, HeadLimits, write};

/// Pieces below this size are copied together and written at once; larger ones are written in
/// place.
const COPY_BYTES_MAX: usize = 8 * 1024;

/// What a relay keeps to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    hop_silence: Duration,
    client_silence: Duration,
    half_closed: Duration,
    trailers: HeadLimits,
    read_ahead: ReadAhead,
    /// Nobody waits for it: it is fetched for the store, within the budget of background bytes.
    is_background: bool,
    /// The connection may come from a route with another read-ahead: the kernel's buffers are
    /// looked at at once.
    read_aheads_differ: bool,
}

impl Terms {
    /// The terms for the response to a request.
    pub(crate) fn of(exchange: &RequestState) -> Self {
        let settings = &exchange.settings;
        let limits = &settings.config.limits;
        let read_ahead = settings.read_ahead_for(
            exchange.request.mode,
            exchange.request.host.as_str(),
            exchange.request.path_and_query(),
        );
        Self {
            hop_silence: limits.next_hop_silence.as_duration(),
            client_silence: limits.client_silence.as_duration(),
            half_closed: settings.config.fetch.half_closed.as_duration(),
            trailers: settings.response_heads,
            read_ahead,
            is_background: exchange.is_for_store_alone(),
            read_aheads_differ: settings.read_aheads_differ(),
        }
    }
}

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// The response was whole, and the client has it.
    Whole,
    /// The next hop cut it, or broke the framing; the word says how. The client is not told a lie.
    Cut(&'static str),
    /// The client went away or stopped reading; or there is none, and the store does not take it.
    ClientLeft,
}

/// What a relay moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) end: RelayEnd,
    /// The next hop's connection can carry another response: nothing was left behind this one, and
    /// the next hop may not send more of the next one than a read-ahead before it is read.
    pub(crate) hop_clean: bool,
    pub(crate) from_hop_bytes: u64,
    pub(crate) to_client_bytes: u64,
    /// Content bytes that came.
    pub(crate) body_bytes: u64,
    /// Content bytes among them that the client's kernel took.
    pub(crate) delivered_bytes: u64,
    /// All else that came: framing, trailers, bytes behind the response.
    pub(crate) overhead_bytes: u64,
    /// The store did not take it, and why.
    pub(crate) refused: Option<Refusal>,
    /// The store has it, whole.
    pub(crate) stored: bool,
    /// When content left.
    pub(crate) content_times: ContentTimes,
}

/// A response under way.
pub(crate) struct Relay<'a> {
    from_hop: ReadHalf<'a>,
    worker: &'a Worker,
    deadline: &'a mut Deadline,
    terms: Terms,
    /// How long the content is, if that is known.
    length: Option<u64>,
    reader: BodyReader,
    framing: Framing,
    /// Bytes the client has not taken yet; begins with the head.
    out: Vec<u8>,
    sent: usize,
    unsent: Unsent,
    store_writer: Option<StoreWriter>,
    /// Its share of the budget of background bytes, if it is to be paid from that.
    background: Option<Allowance>,
    /// Bytes that may be written before the kernel's buffers are looked at.
    free_bytes: u64,
    /// Once it is needed, where there is a read-ahead to keep to.
    governor: Option<Governor>,
    /// It was needed.
    governed: bool,
    finished: bool,
    ended: Ended,
}

impl<'a> Relay<'a> {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, every part of the exchange meets here"
    )]
    pub(crate) fn new(
        from_hop: ReadHalf<'a>,
        worker: &'a Worker,
        deadline: &'a mut Deadline,
        terms: Terms,
        body: BodyLength,
        framing: Framing,
        head: Vec<u8>,
        store_writer: Option<StoreWriter>,
        content_times: ContentTimes,
    ) -> Self {
        let body = if framing == Framing::None {
            BodyLength::None
        } else {
            body
        };
        let length = match body {
            BodyLength::Exact(length) => Some(length),
            _ => None,
        };
        Self {
            from_hop,
            worker,
            deadline,
            terms,
            length,
            free_bytes: if terms.read_aheads_differ {
                0
            } else {
                Governor::free_bytes(terms.read_ahead, length)
            },
            reader: BodyReader::lenient(body, terms.trailers),
            framing,
            out: head,
            sent: 0,
            unsent: Unsent::new(framing),
            store_writer,
            background: terms.is_background.then(Allowance::default),
            governor: None,
            governed: false,
            finished: false,
            ended: Ended {
                end: RelayEnd::Whole,
                hop_clean: true,
                from_hop_bytes: 0,
                to_client_bytes: 0,
                body_bytes: 0,
                delivered_bytes: 0,
                overhead_bytes: 0,
                refused: None,
                stored: false,
                content_times,
            },
        }
    }

    /// Relays until the end; `first` are the bytes that came with the head.
    pub(crate) async fn run(mut self, to_client: Sink<'_>, first: &[u8]) -> Ended {
        let moved = Cell::new(0);
        let mut client_left = pin!(watch(&to_client, self.terms.half_closed, &moved));
        if self.background.is_some() {
            let budget = &self.worker.shared.background;
            budget.came(self.worker.now(), first.len() as u64);
        }
        let mut first = Some(first);
        let end = poll_fn(|cx| {
            if let Some(first) = first.take()
                && let Err(end) = self.take(first, &to_client, cx)
            {
                return Poll::Ready(end);
            }
            let polled = self.poll(&to_client, cx);
            moved.set(self.ended.from_hop_bytes + self.ended.to_client_bytes);
            if polled.is_pending()
                && self.out.is_empty()
                && client_left.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(RelayEnd::ClientLeft);
            }
            polled
        })
        .await;
        self.ended.end = end;
        if let Some(allowance) = &mut self.background {
            allowance.end(&self.worker.shared.background);
        }
        self.ended.delivered_bytes = match to_client.client() {
            Some(_) => self.ended.delivered_bytes - self.unsent.content(self.out.len() - self.sent),
            None => 0,
        };
        if end != RelayEnd::Whole {
            // what is half kept is let go by dropping it
            self.store_writer = None;
            self.signal_cut(end, &to_client);
        } else if let (Some(governor), Some(client)) = (&mut self.governor, to_client.client()) {
            let small = governor.end(self.terms.read_ahead, self.from_hop.as_ref(), client);
            self.ended.hop_clean &= small;
        }
        self.ended
    }

    /// A body that ends with the connection can only be told from a cut one by a reset. Where
    /// nothing was sent yet, an error can still be.
    fn signal_cut(&self, end: RelayEnd, to_client: &Sink<'_>) {
        let cut = matches!(end, RelayEnd::Cut(_)) && self.ended.to_client_bytes > 0;
        if cut && self.framing == Framing::Close {
            to_client.end_by_reset();
        }
    }

    fn poll(&mut self, to_client: &Sink<'_>, cx: &mut Context<'_>) -> Poll<RelayEnd> {
        loop {
            match self.poll_flush(to_client, cx) {
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
            match self.poll_more(to_client, cx) {
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

    fn poll_flush(&mut self, to_client: &Sink<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            let waiting = [&self.out[self.sent..], &[], &[], &[]];
            match poll_write(&mut self.governor, to_client, waiting, cx) {
                Poll::Pending => {
                    self.deadline
                        .wait_for(Party::Client, self.terms.client_silence);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.ended.to_client_bytes += count as u64;
                    self.note_content();
                    self.deadline.moved();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        self.out.clear();
        self.unsent.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Reads once from the next hop and passes on what came.
    fn poll_more(
        &mut self,
        to_client: &Sink<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), RelayEnd>> {
        let worker = self.worker;
        let max = match ready!(self.poll_background(cx)) {
            Ok(allowed) => allowed.min(self.govern(to_client)),
            Err(end) => return Poll::Ready(Err(end)),
        };
        let mut scratch = worker.scratch();
        let max = max.min(scratch.len());
        let mut buffer = ReadBuf::new(&mut scratch[..max]);
        match Pin::new(&mut self.from_hop).poll_read(cx, &mut buffer) {
            Poll::Pending => {
                self.deadline
                    .wait_for(Party::NextHop, self.terms.hop_silence);
                Poll::Pending
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(RelayEnd::Cut("next-hop-reset"))),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Poll::Ready(self.at_eof()),
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled();
                self.deadline.moved();
                self.ended.from_hop_bytes += bytes.len() as u64;
                if let Some(allowance) = &mut self.background {
                    allowance.spend(bytes.len() as u64);
                }
                Poll::Ready(self.take(bytes, to_client, cx))
            }
        }
    }

    /// How many bytes the budget of the background lets it read; waits for them. That is not the
    /// next hop's silence.
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
        }
        allowed.map(|bytes| Ok(usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Before a read, when all that was read before is written: adjusts to how fast the client
    /// takes it. How many bytes may be read.
    fn govern(&mut self, to_client: &Sink<'_>) -> usize {
        let Some(client) = to_client.client() else {
            return usize::MAX;
        };
        let written = self.ended.to_client_bytes;
        if written < self.free_bytes {
            return usize::MAX;
        }
        let now = self.worker.now();
        let next_hop = self.from_hop.as_ref();
        if !self.governed {
            self.governed = true;
            self.governor = Governor::new(self.terms.read_ahead, now, next_hop, client, written);
        }
        let Some(governor) = &mut self.governor else {
            return usize::MAX;
        };
        let remaining = self
            .length
            .map(|length| length.saturating_sub(self.ended.body_bytes));
        governor.before_read(now, next_hop, client, remaining);
        governor.read_max()
    }

    fn at_eof(&mut self) -> Result<(), RelayEnd> {
        self.ended.hop_clean = false;
        if self.reader.at_eof().is_err() {
            return Err(RelayEnd::Cut("next-hop-closed-early"));
        }
        self.finish();
        Ok(())
    }

    /// Decodes bytes from the next hop, keeps and frames them, and enters them into the account.
    fn take(
        &mut self,
        input: &[u8],
        to_client: &Sink<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RelayEnd> {
        let before = self.ended.body_bytes;
        let taken = self.decode(input, to_client, cx);
        let content = self.ended.body_bytes - before;
        self.ended.overhead_bytes += input.len() as u64 - content;
        taken
    }

    /// What is there is kept and counted also if the client has gone: others may wait for it.
    fn decode(
        &mut self,
        input: &[u8],
        to_client: &Sink<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RelayEnd> {
        let mut rest = input;
        let mut emitted = Ok(());
        loop {
            let Ok(step) = self.reader.step(rest) else {
                return Err(RelayEnd::Cut("next-hop-broke-framing"));
            };
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => return emitted,
                BodyEvent::Data(data) => {
                    self.ended.body_bytes += data.len() as u64;
                    self.keep(data, to_client)?;
                    if emitted.is_ok() {
                        emitted = self.emit(data, to_client, cx);
                    }
                }
                BodyEvent::End => {
                    // bytes behind the response belong to nothing we asked for, and after a repair
                    // its end may be another for the next hop
                    self.ended.hop_clean = rest.is_empty() && !self.reader.is_repaired();
                    self.finish();
                    return emitted;
                }
            }
        }
    }

    /// What the store does not take goes on for the client, if there is one.
    fn keep(&mut self, data: &[u8], to_client: &Sink<'_>) -> Result<(), RelayEnd> {
        if let Some(store_writer) = &mut self.store_writer
            && let Err(refusal) = store_writer.push(self.worker, data)
        {
            self.ended.refused = Some(refusal);
            self.store_writer = None;
            if to_client.client().is_none() {
                return Err(RelayEnd::ClientLeft);
            }
        }
        Ok(())
    }

    /// Everything has come: close the framing, make the stored response findable.
    fn finish(&mut self) {
        self.finished = true;
        if self.framing == Framing::Chunked {
            let before = self.out.len();
            write::last_chunk(&mut self.out, self.reader.trailers());
            self.unsent.end(self.out.len() - before);
        }
        if let Some(store_writer) = self.store_writer.take() {
            let finished = store_writer.finish(self.worker);
            self.ended.stored = finished.is_ok();
            self.ended.refused = finished.err();
        }
    }

    /// Passes content on: in place if it is worth it, else behind what waits.
    fn emit(
        &mut self,
        data: &[u8],
        to_client: &Sink<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RelayEnd> {
        let mut header = Vec::new();
        if self.framing == Framing::Chunked {
            write::chunk_header(&mut header, data.len());
        }
        let tail: &[u8] = if self.framing == Framing::Chunked {
            b"\r\n"
        } else {
            b""
        };
        self.unsent.push(data.len());
        self.ended.delivered_bytes += data.len() as u64;
        let mut written = 0;
        let mut left = false;
        if data.len() > COPY_BYTES_MAX {
            let pieces = [&self.out[self.sent..], &header, data, tail];
            match poll_write(&mut self.governor, to_client, pieces, cx) {
                Poll::Ready(Ok(count)) => {
                    written = count;
                    self.ended.to_client_bytes += count as u64;
                    self.deadline.moved();
                }
                Poll::Ready(Err(_)) => left = true,
                Poll::Pending => {}
            }
        }
        self.keep_unwritten(&[&header, data, tail], written);
        self.note_content();
        if left {
            return Err(RelayEnd::ClientLeft);
        }
        Ok(())
    }

    /// Some was written: whoever wants to know when content left looks how much that was.
    fn note_content(&mut self) {
        let ended = &mut self.ended;
        if ended.content_times.are_wanted() {
            let waiting = self.unsent.content(self.out.len() - self.sent);
            ended.content_times.reach(ended.delivered_bytes - waiting);
        }
    }

    /// Copies behind `out` what of `pieces` was not written; `written` counts from the front of
    /// what waited.
    fn keep_unwritten(&mut self, pieces: &[&[u8]], written: usize) {
        let waiting = self.out.len() - self.sent;
        let mut skip = written.saturating_sub(waiting);
        self.sent += written.min(waiting);
        for piece in pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            self.out.extend_from_slice(&piece[skipped..]);
        }
    }
}

/// Ready when the client has left; never if there is none.
async fn watch(to_client: &Sink<'_>, half_closed: Duration, moved: &Cell<u64>) {
    match to_client.client() {
        Some(client) => {
            disconnected(client, half_closed, moved).await;
        }
        None => pending().await,
    }
}

/// Writes once, as much of `pieces` as the governor allows.
fn poll_write(
    governor: &mut Option<Governor>,
    to_client: &Sink<'_>,
    pieces: [&[u8]; 4],
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let (Some(governor), Some(client)) = (governor, to_client.client()) else {
        return to_client.poll_send(cx, &pieces.map(IoSlice::new));
    };
    let mut room = ready!(governor.poll_room(client, cx))?;
    let pieces = pieces.map(|piece| {
        let within = &piece[..piece.len().min(room)];
        room -= within.len();
        IoSlice::new(within)
    });
    let sent = to_client.poll_send(cx, &pieces);
    match &sent {
        Poll::Ready(Ok(count)) => governor.wrote(*count),
        _ => governor.wrote(0),
    }
    sent
}
