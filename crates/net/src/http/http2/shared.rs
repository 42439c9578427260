//! What the streams of a connection share.

mod receive_window;
mod window_turns;

pub(super) use receive_window::{CONNECTION_WINDOW, ReceiveWindow, STREAM_WINDOW};
pub(super) use window_turns::WindowTurns;

use super::frame_reader::{FrameHead, FrameReader};
use super::piece::SendQueue;
use super::send_buffer::SendBuffer;
use crate::client::ClientSocket;
use crate::flow::{tcp_info, unacknowledged_bytes};
use crate::workers::ResetBudget;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_policy::Tick;
use weir_policy::connections::{Flood, FrameBudget, FrameKind, UNPAID_RESETS_MAX};

/// Decoded heads of requests that are under way on a connection, bytes.
const HEADS_BYTES_MAX: usize = 256 * 1024;

/// Heads that `h2` is given at once. It decodes them before the first of them is taken, into memory
/// that it keeps as long as the connection lasts: 250 bytes for each.
const HEADS_DECODED_MAX: usize = 16;

/// Heads that `h2` is given while the socket takes nothing, bytes of their text. It bounds what it
/// holds of content by windows, and of heads not at all: until the client takes what was sent, no
/// further requests of it are read, and heads from next hops wait.
const UNSENT_HEADS_BYTES: usize = 64 * 1024;

/// DATA frames with little in them that may come before the streams which they are for are polled.
/// `h2` permits only so many that are not taken, and cannot know that the streams had no turn.
const SMALL_FRAMES_AT_ONCE: u32 = 64;

/// Bytes below which a frame has little in it, to `h2`.
const SMALL_FRAME_BYTES: u32 = 256;

/// The socket of a connection, what its streams may hold, and what was counted.
pub(super) struct Shared {
    pub(super) socket: ClientSocket,
    pub(super) send_buffer: RefCell<SendBuffer>,
    pub(super) queue: Rc<SendQueue>,
    pub(super) window_turns: WindowTurns,
    pub(super) receive_window: ReceiveWindow,
    /// How long a stream may be stopped by its window.
    pub(super) window_closed: Duration,
    frames: RefCell<Frames>,
    /// The time of the last poll.
    now: Cell<Tick>,
    heads_bytes: Cell<usize>,
    /// Whole heads have come since the last were taken.
    has_heads: Cell<bool>,
    /// DATA frames with little in them that have come since the streams had a turn.
    small_frames: Cell<u32>,
    /// Bytes of heads that `h2` was given since the socket takes nothing.
    unsent_heads: Cell<usize>,
    /// Streams that wait until it takes some.
    waiting_heads: RefCell<Vec<Waker>>,
    /// Nothing was read for that.
    is_read_held: Cell<bool>,
    /// Nothing is sent any more.
    is_over: Cell<bool>,
    /// The client's settings have come.
    has_settings: Cell<bool>,
    /// Streams that were reset as their window stayed closed.
    stalled: Cell<u64>,
    /// It ends with an error, and all of its streams with it.
    has_failed: Cell<bool>,
}

struct Frames {
    received: FrameReader,
    sent: FrameReader,
    counts: FrameCounts,
}

/// What has passed, against what may.
struct FrameCounts {
    budget: FrameBudget,
    /// What the client has left of resets, on all of its connections.
    client: Option<ResetBudget>,
    flood: Option<Http2Flood>,
    /// Streams that were reset beyond what the client had left.
    unpaid_resets: u32,
    heads: HeadSizes,
}

/// Bytes of heads and trailers that have come since the requests were last taken, by stream, in the
/// order they came: no more than `h2` is given at once.
#[derive(Default)]
struct HeadSizes(Vec<(u32, u32)>);

impl HeadSizes {
    fn add(&mut self, frame: FrameHead) {
        match self.0.last_mut() {
            Some((stream, bytes))
                if *stream == frame.stream && frame.kind != FrameHead::HEADERS =>
            {
                *bytes = bytes.saturating_add(frame.length);
            }
            _ => self.0.push((frame.stream, frame.length)),
        }
    }

    /// The head of this stream was decoded, and its lines are known.
    fn take(&mut self, stream: u32) {
        if let Some(at) = self.0.iter().position(|(of, _)| *of == stream) {
            self.0.remove(at);
        }
    }
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Flood {
    /// On this connection.
    Connection(Flood),
    /// Streams that were reset on all connections of the client.
    ClientResets,
}

impl FrameCounts {
    fn note(&mut self, now: Tick, frame: FrameKind) {
        if let Err(too_many) = self.budget.note(now, frame) {
            self.flood.get_or_insert(Http2Flood::Connection(too_many));
        }
        if frame == FrameKind::Reset
            && let Some(client) = &self.client
            && !client.note(now)
        {
            // a neighbour behind the same address may have used that up
            self.unpaid_resets += 1;
            if self.unpaid_resets > UNPAID_RESETS_MAX {
                self.flood.get_or_insert(Http2Flood::ClientResets);
            }
        }
    }
}

impl Shared {
    pub(super) fn new(
        socket: ClientSocket,
        (receive_window, window_closed): (ReceiveWindow, Duration),
        (budget, client): (FrameBudget, Option<ResetBudget>),
        now: Tick,
    ) -> Self {
        let queue = Rc::<SendQueue>::default();
        Self {
            send_buffer: RefCell::new(SendBuffer::new(&socket)),
            socket,
            window_turns: WindowTurns::new(Rc::clone(&queue)),
            queue,
            receive_window,
            window_closed,
            frames: RefCell::new(Frames {
                received: FrameReader::of_client(),
                sent: FrameReader::of_server(),
                counts: FrameCounts {
                    budget,
                    client,
                    flood: None,
                    heads: HeadSizes::default(),
                    unpaid_resets: 0,
                },
            }),
            now: Cell::new(now),
            heads_bytes: Cell::new(0),
            has_heads: Cell::new(false),
            small_frames: Cell::new(0),
            unsent_heads: Cell::new(0),
            waiting_heads: RefCell::default(),
            is_read_held: Cell::new(false),
            is_over: Cell::new(false),
            has_settings: Cell::new(false),
            stalled: Cell::new(0),
            has_failed: Cell::new(false),
        }
    }

    pub(super) fn set_now(&self, now: Tick) {
        self.now.set(now);
    }

    /// How many of the `bytes` that came from the client are given to `h2` at once.
    pub(super) fn before_head(&self, bytes: &[u8]) -> usize {
        let received = &self.frames.borrow().received;
        received.before_head(bytes, HEADS_DECODED_MAX)
    }

    /// These bytes from the client are given to `h2`.
    pub(super) fn received(&self, bytes: &[u8]) {
        let frames = &mut *self.frames.borrow_mut();
        let counts = &mut frames.counts;
        let now = self.now.get();
        frames.received.follow(bytes, |frame| {
            let kind = match frame.kind {
                FrameHead::HEADERS => FrameKind::Request,
                FrameHead::DATA if frame.length > 0 || frame.ends_stream() => {
                    let is_small = frame.length < SMALL_FRAME_BYTES;
                    let small = self.small_frames.get() + u32::from(is_small);
                    return self.small_frames.set(small);
                }
                FrameHead::RST_STREAM => FrameKind::Reset,
                FrameHead::WINDOW_UPDATE => {
                    if frame.stream == 0 {
                        self.window_turns.open(frame.window_bytes());
                    }
                    FrameKind::WindowUpdate
                }
                _ => FrameKind::Control,
            };
            if kind == FrameKind::Request {
                self.has_heads.set(true);
            }
            if frame.is_of_head() {
                counts.heads.add(frame);
            }
            // content that `h2` has taken may be behind a window that these make smaller
            if frame.is_settings() && self.has_settings.replace(true) {
                self.queue.ignore_urgency();
                self.window_turns.ignore_urgency();
            }
            counts.note(now, kind);
        });
    }

    /// Sends what was gathered.
    pub(super) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.send_buffer.borrow_mut().poll_write(&self.socket, cx);
        if sent.is_ready() {
            self.queue.written();
            self.window_turns.call_next();
            self.unsent_heads.set(0);
            self.waiting_heads.take().into_iter().for_each(Waker::wake);
        }
        sent
    }

    /// The connection has ended: no stream waits for it any more.
    pub(super) fn end_sending(&self) {
        self.is_over.set(true);
        self.waiting_heads.take().into_iter().for_each(Waker::wake);
    }

    /// `h2` is given a head, or trailers, of so many bytes.
    pub(super) fn note_sent_head(&self, bytes: usize) {
        if self.send_buffer.borrow().is_full() {
            self.unsent_heads.set(self.unsent_heads.get() + bytes);
        }
    }

    fn has_room_for_heads(&self) -> bool {
        self.unsent_heads.get() < UNSENT_HEADS_BYTES || self.is_over.get()
    }

    /// Ready when `h2` may be given a head.
    pub(super) fn poll_room_for_heads(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_room_for_heads() {
            return Poll::Ready(());
        }
        let waiting = &mut *self.waiting_heads.borrow_mut();
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Holds reading back as long as `h2` has too many heads; whether it does now.
    pub(super) fn hold_reading_for_heads(&self) -> bool {
        let is_held = !self.has_room_for_heads();
        if is_held {
            self.is_read_held.set(true);
        }
        is_held
    }

    /// Whether reading was held back so, and goes on.
    pub(super) fn resumes_reading(&self) -> bool {
        self.has_room_for_heads() && self.is_read_held.replace(false)
    }

    /// These bytes are sent to the client.
    pub(super) fn sent(&self, bytes: &[u8]) {
        let frames = &mut *self.frames.borrow_mut();
        let counts = &mut frames.counts;
        let now = self.now.get();
        frames.sent.follow(bytes, |frame| {
            let kind = match frame.kind {
                FrameHead::RST_STREAM => FrameKind::of_sent_reset(frame.number),
                FrameHead::DATA => Some(FrameKind::SentContent),
                FrameHead::GOAWAY if frame.number != 0 => {
                    self.has_failed.set(true);
                    None
                }
                _ => None,
            };
            if let Some(kind) = kind {
                counts.note(now, kind);
            }
        });
    }

    /// What the client has sent, or brought about, too much of.
    pub(super) fn flood(&self) -> Option<Http2Flood> {
        self.frames.borrow().counts.flood
    }

    /// `h2` ends the connection for frames of which it takes only so many.
    pub(super) fn set_flood(&self, flood: Flood) {
        let counts = &mut self.frames.borrow_mut().counts;
        counts.flood.get_or_insert(Http2Flood::Connection(flood));
    }

    /// The request of a stream was decoded, which has so many field lines.
    pub(super) fn note_field_lines(&self, stream: u32, lines: usize) {
        let counts = &mut self.frames.borrow_mut().counts;
        counts.heads.take(stream);
        if let Err(too_many) = counts.budget.note_field_lines(self.now.get(), lines) {
            counts.flood.get_or_insert(Http2Flood::Connection(too_many));
        }
    }

    /// Whether a frame that a small window has made short may be sent at once.
    pub(super) fn may_send_short(&self) -> bool {
        let budget = &mut self.frames.borrow_mut().counts.budget;
        budget.may_send_short(self.now.get())
    }

    /// So many bytes were sent together, which have waited for their window to be opened further.
    pub(super) fn note_gathered(&self, bytes: usize) {
        self.frames.borrow_mut().counts.budget.note_gathered(bytes);
    }

    /// All requests were taken that have come. What else has come of heads is trailers, or was
    /// refused by `h2`: a line has a byte at least.
    pub(super) fn note_other_heads(&self) {
        let frames = &mut *self.frames.borrow_mut();
        if frames.received.is_in_head() {
            return;
        }
        let counts = &mut frames.counts;
        for (_, bytes) in counts.heads.0.drain(..) {
            let noted = counts
                .budget
                .note_unknown_lines(self.now.get(), bytes as usize);
            if let Err(too_many) = noted {
                counts.flood.get_or_insert(Http2Flood::Connection(too_many));
            }
        }
    }

    /// The connection ends with an error.
    pub(super) fn set_failed(&self) {
        self.has_failed.set(true);
    }

    /// Whether it ends so, or is about to.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.get() || self.flood().is_some()
    }

    /// Whether a stream was reset that the client had no budget for.
    pub(super) fn has_unpaid_resets(&self) -> bool {
        self.frames.borrow().counts.unpaid_resets > 0
    }

    /// Whether the head of a request has begun and is not whole.
    pub(super) fn is_in_head(&self) -> bool {
        self.frames.borrow().received.is_in_head()
    }

    /// Whether no more is read before what has come is looked at: heads wait to be taken, or there
    /// was too much of something. So the heads that wait decoded are those that `h2` is given at
    /// once.
    pub(super) fn is_reading_held(&self) -> bool {
        self.has_heads.get() || self.flood().is_some()
    }

    /// Whether the streams are to have a turn before more is read: the next call says no.
    pub(super) fn is_streams_turn(&self) -> bool {
        let is_theirs = self.small_frames.get() >= SMALL_FRAMES_AT_ONCE;
        if is_theirs {
            self.small_frames.set(0);
        }
        is_theirs
    }

    /// All heads were taken; whether reading was held for them.
    pub(super) fn took_heads(&self) -> bool {
        self.has_heads.replace(false) && self.flood().is_none()
    }

    /// A stream ends as what the client has sent on it is malformed, in what `h2` does not check:
    /// the code of the reset does not say so.
    pub(super) fn note_malformed(&self) {
        let counts = &mut self.frames.borrow_mut().counts;
        counts.note(self.now.get(), FrameKind::Reset);
    }

    /// A request is answered here, without that it was judged: it costs little, and is bounded as
    /// frames are that carry nothing.
    pub(super) fn note_refused(&self) {
        let counts = &mut self.frames.borrow_mut().counts;
        counts.note(self.now.get(), FrameKind::Control);
    }

    /// A stream has ended by frames of the connection, which counts for this client among those
    /// that share it. Those that end with the connection count for none.
    pub(super) fn note_reset_for(&self, client: &ResetBudget) {
        if !self.has_failed() {
            client.note(self.now.get());
        }
    }

    /// A stream is reset as its window stays closed.
    pub(super) fn note_stall(&self) {
        self.stalled.set(self.stalled.get() + 1);
    }

    pub(super) fn take_stalls(&self) -> u64 {
        self.stalled.take()
    }

    /// The round trip to the client, microseconds.
    pub(super) fn round_trip_us(&self) -> Option<u32> {
        tcp_info(self.socket.tcp()).map(|info| info.rtt_us)
    }

    /// Bytes that the kernel has and the client has not acknowledged, of all streams.
    pub(super) fn unacknowledged_bytes(&self) -> Option<u32> {
        unacknowledged_bytes(self.socket.tcp())
    }
}

/// The place of a head among those of its connection, and what their streams share.
pub(super) struct HeadPlace {
    shared: Rc<Shared>,
    bytes: usize,
}

impl HeadPlace {
    /// `None`: too many heads are under way.
    pub(super) fn take(shared: &Rc<Shared>, bytes: usize) -> Option<Self> {
        let all = shared.heads_bytes.get() + bytes;
        // one head is always taken
        if all > HEADS_BYTES_MAX && all > bytes {
            return None;
        }
        shared.heads_bytes.set(all);
        Some(Self {
            shared: Rc::clone(shared),
            bytes,
        })
    }

    /// What the streams of the connection share.
    pub(super) fn connection(&self) -> Rc<Shared> {
        Rc::clone(&self.shared)
    }
}

impl Deref for HeadPlace {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for HeadPlace {
    fn drop(&mut self) {
        let all = self.shared.heads_bytes.get();
        self.shared.heads_bytes.set(all - self.bytes);
    }
}
