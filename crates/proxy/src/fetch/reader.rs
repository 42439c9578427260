//! A client that reads an in-flight response, at its own speed.
//!
//! What one write hands to the kernel is bounded by the policy, so that the kernel does not run
//! ahead of the client for us.

use crate::exchange::state::RequestState;
use crate::fetch::continuation;
use crate::fetch::in_flight::{COPY_BYTES_MAX, InFlightResponse, LetGo, ReaderAction};
use crate::fetch::missing_range;
use crate::log::record::ContentTimes;
use crate::send::disk_read::DiskRead;
use crate::worker::core::Worker;
use crate::worker::kept_content::KeptContent;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_measure::{Lost, Metric};
use weir_net::Party;
use weir_net::flow::LOOK_MS;
use weir_net::http::{ClientStream, Disconnect, Governor};
use weir_policy::Tick;
use weir_policy::fetch::{ByteSpan, FetchEnd, FetchId, ReaderId};
use weir_store::Block;

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The client has received its whole span.
    Whole,
    /// The fetch was cut: the client has received less than the head promised.
    Cut,
    /// A module ended the fetch: it failed, or answers by itself.
    Module,
    /// Content that was stored could not be read from disk, nor fetched: the response is cut, too.
    Unreadable,
    /// Content that is not stored was dropped before the reader reached it, and could not be
    /// fetched: the response is cut, too.
    ContentDropped,
    /// The client disconnected, or stopped reading.
    ClientLeft,
}

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) end: ReadEnd,
    /// Content bytes that this client is the first to receive.
    pub(crate) live_bytes: u64,
    /// Content bytes that were there already.
    pub(crate) stored_bytes: u64,
    /// Those of them that were kept from a fetch that had not ended well.
    pub(crate) recovered_bytes: u64,
    /// When content was sent.
    pub(crate) content_times: ContentTimes,
}

/// What a reader begins with.
pub(crate) struct Start {
    pub(crate) handle: ReaderHandle,
    pub(crate) span: ByteSpan,
}

/// A reader under way.
struct Reader<'a, 'c> {
    stream: &'a mut ClientStream<'c>,
    exchange: &'a RequestState,
    handle: ReaderHandle,
    /// How far the fetch is ahead of its client is looked at: not of a small response, which one
    /// window holds.
    is_paced: bool,
    /// When the round trip was looked at.
    looked: Option<Tick>,
    /// The next byte to send to the client.
    at: u64,
    /// One past the last byte of its span.
    to: u64,
    /// Content on its way.
    piece: Piece,
    /// A read from disk, and one past the last byte of the content that may be sent of it.
    reading: Option<(DiskRead, u64)>,
    /// The content is over, with this trailer section.
    end: Option<Box<[u8]>>,
    /// What it reads is fetched for it alone.
    is_continued: bool,
    /// What is kept in memory for it, as a rule has it read slowly.
    kept: Option<KeptContent>,
    head: Head,
    disconnect: Disconnect<'c>,
    silence: Duration,
    sent: Sent,
}

/// Sends the head that is queued, then what `start` says, and what is still to come of it, until
/// there is no more.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &RequestState,
    start: Start,
) -> Sent {
    let config = &exchange.settings.config;
    let head = match start.handle.in_flight.response.facts.is_transformed {
        true => Head::Waits,
        false => Head::JoinsContent,
    };
    let in_flight = &start.handle.in_flight;
    let length = in_flight.response.complete_length();
    let is_paced = !Governor::is_small(in_flight.read_ahead, length);
    let kept = exchange.keep_content(in_flight, 0);
    let mut reader = Reader {
        is_paced,
        looked: None,
        exchange,
        head,
        handle: start.handle,
        at: start.span.from,
        to: start.span.to,
        piece: Piece::default(),
        reading: None,
        end: None,
        is_continued: false,
        kept,
        disconnect: stream
            .response
            .disconnect(config.fetch.half_closed.as_duration()),
        stream,
        silence: config.limits.client_silence.as_duration(),
        sent: Sent {
            end: ReadEnd::Whole,
            live_bytes: 0,
            stored_bytes: 0,
            recovered_bytes: 0,
            content_times: exchange.log.content_times(),
        },
    };
    reader.sent.end = poll_fn(|cx| reader.poll(cx)).await;
    reader.sent
}

/// A reader's place at an in-flight response. Dropping it detaches the reader.
pub(crate) struct ReaderHandle {
    pub(crate) in_flight: Arc<InFlightResponse>,
    worker: Rc<Worker>,
    pub(crate) id: ReaderId,
    /// What is fetched at its request may be joined with what is there.
    pub(crate) completes: bool,
}

impl ReaderHandle {
    pub(crate) fn new(
        worker: &Rc<Worker>,
        in_flight: &Arc<InFlightResponse>,
        id: ReaderId,
        completes: bool,
    ) -> Self {
        Self {
            in_flight: Arc::clone(in_flight),
            worker: Rc::clone(worker),
            id,
            completes,
        }
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        self.in_flight.leave(&self.worker, self.id);
    }
}

impl Reader<'_, '_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ReadEnd> {
        loop {
            if self.head == Head::Due {
                match self.poll_flush(cx) {
                    Poll::Pending => {
                        // by a rate it goes on in small steps, each of which would copy it again
                        if !self.exchange.is_rate_limited {
                            self.piece.give_back();
                        }
                        return self.poll_silent(cx);
                    }
                    Poll::Ready(false) => return Poll::Ready(ReadEnd::ClientLeft),
                    Poll::Ready(true) => {}
                }
            }
            if self.end.is_some() {
                return Poll::Ready(ReadEnd::Whole);
            }
            let next = self.next(cx);
            let is_alone = self.head == Head::JoinsContent && !matches!(next, Next::Fetch(..));
            match next {
                Next::Ready => self.head = Head::Due,
                // without content it is sent first: what follows is the same when asked again
                _ if is_alone => self.head = Head::Due,
                Next::Fetch(fetch, span) => {
                    let in_flight = &self.handle.in_flight;
                    missing_range::spawn(self.exchange, in_flight, fetch, span);
                }
                Next::Wait => return self.poll_waiting(cx),
                Next::Cut(end) => return Poll::Ready(end),
                Next::Lost(_, end) if self.is_continued => return Poll::Ready(end),
                Next::Lost(why, end) => {
                    if !self.continue_alone(why) {
                        return Poll::Ready(end);
                    }
                }
            }
        }
    }

    /// The next byte is not here any more: from now on it reads what is fetched for it alone.
    /// `false` if that cannot be.
    fn continue_alone(&mut self, why: Lost) -> bool {
        let response = Arc::clone(&self.handle.in_flight.response);
        let rest = (self.at, self.to);
        let Some(handle) = continuation::begin(self.exchange, &response, rest, why) else {
            return false;
        };
        self.handle = handle;
        self.is_continued = true;
        true
    }

    /// Lets go of what is in memory for this reader alone, if a rule has it read slowly and its
    /// client has as much kept as it may: it is not stored, or what was is not read here any more.
    fn let_go(&mut self) {
        if self.kept.as_ref().is_none_or(KeptContent::is_kept) {
            return;
        }
        let worker = Rc::clone(&self.exchange.worker);
        match self.handle.in_flight.let_go(&worker) {
            LetGo::Shared => return,
            LetGo::Settled if !self.continue_alone(Lost::ContentDropped) => {
                // so it is in memory for the shortest time
                self.stream.response.lift_rate();
                worker.counters().inc(Metric::RuleUnlimited);
            }
            LetGo::Passing | LetGo::Settled => worker.counters().inc(Metric::RuleNotKept),
        }
        self.kept = None;
    }

    /// The client does not take what there is.
    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Poll<ReadEnd> {
        let deadline = &mut self.stream.deadline;
        if self.stream.response.is_held_back() {
            deadline.set(self.silence);
            return self.poll_waiting(cx);
        }
        deadline.wait_for(Party::Client, self.silence);
        deadline.poll_passed(cx).map(|()| ReadEnd::ClientLeft)
    }

    /// There is nothing to send. The fetch has limits of its own; the client may leave meanwhile.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<ReadEnd> {
        let disconnected = self.disconnect.poll(cx);
        disconnected.map(|()| ReadEnd::ClientLeft)
    }

    /// Takes the next piece of content, if there is one.
    fn next(&mut self, cx: &mut Context<'_>) -> Next {
        if self.reading.is_some() {
            return self.next_from_disk(cx);
        }
        self.let_go();
        let now = self.exchange.worker.now();
        let mut copied = Vec::new();
        let handle = &self.handle;
        let reading = handle
            .in_flight
            .read(now, handle.id, self.at, cx.waker(), &mut copied);
        match reading {
            ReaderAction::Wait => return Next::Wait,
            // the response to this request is for its own client: another reader begins the fetch
            // for all
            ReaderAction::Fetch(fetch, _) if !handle.completes => {
                let worker = &self.exchange.worker;
                handle.in_flight.end(worker, fetch, FetchEnd::Stopped, &[]);
                return Next::Lost(Lost::NotShared, ReadEnd::Cut);
            }
            ReaderAction::Fetch(fetch, span) => return Next::Fetch(fetch, span),
            ReaderAction::Cut => return Next::Cut(ReadEnd::Cut),
            ReaderAction::EndedByModule => return Next::Cut(ReadEnd::Module),
            ReaderAction::NotShared => return Next::Lost(Lost::NotShared, ReadEnd::Cut),
            ReaderAction::ContentDropped => {
                return Next::Lost(Lost::ContentDropped, ReadEnd::ContentDropped);
            }
            ReaderAction::Disk { extent, to } => {
                self.reading = Some((DiskRead::new(&extent, self.at), to));
                return self.next_from_disk(cx);
            }
            ReaderAction::Done => self.finish(),
            ReaderAction::Copied => {
                self.piece = Piece::Copied(copied, 0);
            }
            ReaderAction::Block { block, from, to } => {
                self.piece = Piece::Shared(block, from, to);
            }
        }
        Next::Ready
    }

    /// The same where a read from disk is under way.
    fn next_from_disk(&mut self, cx: &mut Context<'_>) -> Next {
        let Some((reading, to)) = &mut self.reading else {
            return Next::Ready;
        };
        let Poll::Ready(read) = reading.poll(cx) else {
            return Next::Wait;
        };
        let most = usize::try_from(*to - self.at).unwrap_or(usize::MAX);
        self.reading = None;
        let Ok(block) = read else {
            return Next::Lost(Lost::Unreadable, ReadEnd::Unreadable);
        };
        let count = block.len().min(most);
        self.piece = Piece::Shared(block, 0, count);
        Next::Ready
    }

    fn finish(&mut self) {
        self.end = Some(self.handle.in_flight.trailers());
    }

    /// Sends until the kernel has accepted everything; `false` if the client has disconnected.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            let response = &mut self.stream.response;
            let is_flushed = match &self.end {
                Some(_) => response.is_complete(),
                None => !response.has_queued(),
            };
            if self.piece.is_empty() && is_flushed {
                return Poll::Ready(true);
            }
            let unsent = self.handle.in_flight.unsent(self.handle.id);
            response.set_unsent_limit(unsent);
            let bytes = self.piece.bytes();
            let bytes = &bytes[..bytes.len().min(COPY_BYTES_MAX)];
            match response.poll_send(cx, &[bytes], self.end.as_deref()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(content)) => {
                    self.stream.deadline.moved();
                    self.disconnect.moved();
                    if content > 0 {
                        self.piece.advance(content);
                        self.deliver(content as u64);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(false),
            }
        }
    }

    fn deliver(&mut self, content: u64) {
        let span = ByteSpan {
            from: self.at,
            to: self.at + content,
        };
        self.at = span.to;
        let now = self.exchange.worker.now();
        let handle = &self.handle;
        let delivered = handle.in_flight.handed_over(now, handle.id, span);
        if let Some(kept) = &mut self.kept {
            kept.grow(handle.in_flight.kept_bytes());
        }
        self.sent.live_bytes += delivered.live;
        self.sent.stored_bytes += delivered.again;
        self.sent.recovered_bytes += delivered.kept;
        let content_bytes = self.sent.live_bytes + self.sent.stored_bytes;
        self.sent.content_times.reach(content_bytes);
        let is_due = |at| now.tick.ms_since(at) >= LOOK_MS;
        if self.is_paced && self.looked.is_none_or(is_due) {
            self.looked = Some(now.tick);
            let client = &self.stream.response;
            let looked = client.round_trip_us().zip(client.unacknowledged_bytes());
            if let Some((round_trip_us, unacknowledged)) = looked {
                let handle = &self.handle;
                let looked =
                    handle
                        .in_flight
                        .look_at_client(handle.id, round_trip_us, unacknowledged);
                if let Some(read_ahead_bytes) = looked {
                    self.exchange
                        .worker
                        .shared
                        .note_read_ahead(read_ahead_bytes);
                }
            }
        }
    }
}

/// When the head is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// With the first content: a module that changes that may answer, or fail, at once.
    Waits,
    /// With content, if some is there already, by one call to the kernel.
    JoinsContent,
    /// It was sent, or is to be sent before anything else.
    Due,
}

/// Content on its way to the client.
#[derive(Debug, Default)]
enum Piece {
    #[default]
    None,
    /// A copy of a block that is still being filled, and how much of it was sent.
    Copied(Vec<u8>, usize),
    /// A block that is shared with the store and with other readers, and the part of it to send.
    Shared(Block, usize, usize),
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Copied(bytes, from) => &bytes[*from..],
            Self::Shared(block, from, to) => &block[*from..*to],
        }
    }

    /// Drops a copy: it is made again once the client takes something, which may never be.
    fn give_back(&mut self) {
        if matches!(self, Self::Copied(..)) {
            *self = Self::None;
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::None => {}
            Self::Copied(_, from) | Self::Shared(_, from, _) => *from += count,
        }
        if self.is_empty() {
            *self = Self::None;
        }
    }
}

enum Next {
    /// There is content to write, or all of it was written.
    Ready,
    Fetch(FetchId, ByteSpan),
    Wait,
    Cut(ReadEnd),
    /// What was here is not any more; and how it ends if that cannot be helped.
    Lost(Lost, ReadEnd),
}
