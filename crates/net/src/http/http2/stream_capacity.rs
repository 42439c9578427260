//! How much content a stream of either side can send: what the queue of its connection has room
//! for, and then what the windows permit.

mod stop;

pub(super) use stop::Stop;

use super::piece::{Offer, Piece, SendQueue};
use super::shared::WindowTurns;
use crate::deadline::Deadline;
use bytes::Bytes;
use h2::SendStream;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_semantics::Urgency;

/// A frame of so many bytes is sent whenever the windows permit it.
const SHORT_BYTES: usize = 1024;

/// How long content waits for a window that permits less: TCP has 0.1 s to 1 s for the same wait
/// (RFC 9293 §3.8.6.2.1).
const WINDOW_WAIT: Duration = Duration::from_millis(250);

/// How long, where the connection may have a short frame: a client that reads opens the window for
/// what it has sooner, and one that opens it only once all of it was used does not wait for long.
const WINDOW_WAIT_FIRST: Duration = Duration::from_millis(20);

/// How many of `offered` bytes the queue has room for; ready with an error once the stream was
/// reset.
pub(super) fn poll_queue_room(
    queue: &SendQueue,
    cx: &mut Context<'_>,
    stream: &mut SendStream<Piece>,
    offered: usize,
    offer: Offer<'_>,
) -> Poll<io::Result<usize>> {
    if let Some(room) = queue.room(cx, offered, offer) {
        return Poll::Ready(Ok(room));
    }
    poll_reset(cx, stream)
}

/// Ready with an error once the stream was reset, or its connection has ended.
fn poll_reset<T>(cx: &mut Context<'_>, stream: &mut SendStream<Piece>) -> Poll<io::Result<T>> {
    ready!(stream.poll_reset(cx)).map_err(io_error)?;
    Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
}

/// How many of `room` bytes the windows of the stream and of its connection permit, at least one.
pub(super) fn poll_window(
    cx: &mut Context<'_>,
    stream: &mut SendStream<Piece>,
    room: usize,
) -> Poll<io::Result<usize>> {
    stream.reserve_capacity(room);
    let mut open = stream.capacity();
    while open == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(capacity) => open = capacity.map_err(io_error)?,
            None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
    Poll::Ready(Ok(open.min(room)))
}

/// A stream to a client, which has its turn at the window of the connection.
#[derive(Clone, Copy)]
pub(super) struct Turn<'t> {
    pub(super) turns: &'t WindowTurns,
    pub(super) urgency: Urgency,
    /// Which stream it is.
    pub(super) stream: &'t Rc<Cell<usize>>,
}

impl Turn<'_> {
    /// How many of `room` bytes the windows permit, once it is its turn; at least one.
    pub(super) fn poll(
        self,
        cx: &mut Context<'_>,
        stream: &mut SendStream<Piece>,
        room: usize,
    ) -> Poll<io::Result<usize>> {
        let turns = self.turns;
        if turns.is_ignored() {
            return poll_window(cx, stream, room);
        }
        if !turns.is_behind(self.urgency) {
            match poll_window(cx, stream, room) {
                Poll::Ready(Ok(count)) => {
                    if count < room {
                        // for the rest it asks when it is its turn again
                        stream.reserve_capacity(count);
                    }
                    return Poll::Ready(Ok(count));
                }
                Poll::Ready(Err(error)) => {
                    turns.leave(self.stream);
                    return Poll::Ready(Err(error));
                }
                Poll::Pending if turns.is_open() => {
                    // it waits for its own window. `h2` wakes it by one byte of that: more would
                    // not be for whose turn it is then
                    stream.reserve_capacity(1);
                    turns.leave(self.stream);
                    return Poll::Pending;
                }
                Poll::Pending => {}
            }
        }
        stream.reserve_capacity(0);
        let reset = poll_reset(cx, stream);
        match reset {
            Poll::Ready(_) => turns.leave(self.stream),
            Poll::Pending => {
                turns.wait((self.urgency, self.stream), cx.waker());
                // what it held is for others
                turns.call_next();
            }
        }
        reset
    }

    /// A stream that may send `count` bytes waits for more, until [`WindowWait::release`].
    fn wait_for_more(self, cx: &Context<'_>, stream: &mut SendStream<Piece>, count: usize) {
        let turns = self.turns;
        turns.hold(count);
        if turns.is_ignored() {
            return;
        }
        if turns.is_open() {
            // its own window is what is short
            stream.reserve_capacity(count + 1);
            turns.leave(self.stream);
        } else {
            turns.wait((self.urgency, self.stream), cx.waker());
        }
    }
}

/// Ready once the windows permit more than they did, or an error once the stream was reset.
pub(super) fn poll_wider(
    cx: &mut Context<'_>,
    stream: &mut SendStream<Piece>,
) -> Poll<io::Result<()>> {
    match ready!(stream.poll_capacity(cx)) {
        Some(capacity) => Poll::Ready(capacity.map(drop).map_err(io_error)),
        None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
    }
}

/// Content waits for a window that permits a little of it: to send that at once would be a frame
/// for each byte by which a client opens the window, or one for the rest of each window. It is the
/// wait that TCP has for the same reason (RFC 9293 §3.8.6.2.1), and ends as soon as the window is
/// wide enough; RFC 9113 does not say when content is to be sent.
pub(super) struct WindowWait {
    deadline: Deadline,
    /// A short frame is sent sooner if the connection may have one.
    is_first: bool,
    /// Bytes that the windows permit meanwhile, and which no other stream has.
    held: usize,
}

impl WindowWait {
    /// Whether `count` bytes, which the windows permit of `room`, are few.
    pub(super) fn is_short(count: usize, room: usize) -> bool {
        count < room.min(SHORT_BYTES)
    }

    /// Whether a window that permits `count` bytes permits more than a little.
    pub(super) fn is_wide(count: usize) -> bool {
        count >= SHORT_BYTES
    }

    /// Begins to wait; with `is_first` not for long, if the connection may have a short frame then.
    pub(super) fn begin(is_first: bool) -> Box<Self> {
        let wait = if is_first {
            WINDOW_WAIT_FIRST
        } else {
            WINDOW_WAIT
        };
        Box::new(Self {
            deadline: Deadline::new(wait),
            is_first,
            held: 0,
        })
    }

    /// Holds the `count` bytes that a stream may send, until [`Self::release`].
    pub(super) fn hold(
        &mut self,
        cx: &Context<'_>,
        stream: &mut SendStream<Piece>,
        (turn, count): (Turn<'_>, usize),
    ) {
        self.held = count;
        turn.wait_for_more(cx, stream, count);
    }

    /// What was held is sent, or others may have it.
    pub(super) fn release(&mut self, turns: &WindowTurns) {
        turns.release(std::mem::take(&mut self.held));
    }

    /// Ready once it has waited long enough.
    pub(super) fn poll_passed(
        &mut self,
        cx: &mut Context<'_>,
        may_send_short: impl FnOnce() -> bool,
    ) -> Poll<()> {
        ready!(self.deadline.poll_passed(cx));
        if !self.is_first || may_send_short() {
            return Poll::Ready(());
        }
        self.is_first = false;
        self.deadline.set(WINDOW_WAIT - WINDOW_WAIT_FIRST);
        self.deadline.poll_passed(cx)
    }
}

/// The first `count` bytes of `content`.
pub(super) fn copied(content: &[&[u8]], count: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(count);
    for piece in content {
        let taken = piece.len().min(count - bytes.len());
        bytes.extend_from_slice(&piece[..taken]);
    }
    bytes.into()
}

/// An error of `h2` as one of a connection.
pub(super) fn io_error(error: h2::Error) -> io::Error {
    match error.into_io() {
        Some(error) => error,
        None => io::ErrorKind::ConnectionReset.into(),
    }
}
