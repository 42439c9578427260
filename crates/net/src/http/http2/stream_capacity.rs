//! How much content a stream of either side can send: what the queue of its connection has room
//! for, and then what the windows permit.

use super::piece::{Offer, Piece, SendQueue};
use crate::deadline::Deadline;
use bytes::Bytes;
use h2::SendStream;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A frame of so many bytes is sent whenever the windows permit it.
const SHORT_BYTES: usize = 1024;

/// How long content waits for a window that permits less: TCP has 0.1 s to 1 s for the same wait
/// (RFC 9293 §3.8.6.2.1).
const WINDOW_WAIT: Duration = Duration::from_millis(250);

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

/// Content waits for a window that was opened by a little: to send it at once would be a frame for
/// each byte by which a client opens it. It is the wait that TCP has for the same reason (RFC 9293
/// §3.8.6.2.1); RFC 9113 does not say when content is to be sent.
pub(super) struct WindowWait(Deadline);

impl WindowWait {
    /// Whether `count` bytes, which the windows permit of `room`, are few.
    pub(super) fn is_short(count: usize, room: usize) -> bool {
        count < room.min(SHORT_BYTES)
    }

    /// Begins to wait.
    pub(super) fn begin(stream: &mut SendStream<Piece>) -> Box<Self> {
        // what the client opens meanwhile wakes no task
        stream.reserve_capacity(0);
        Box::new(Self(Deadline::new(WINDOW_WAIT)))
    }

    /// Ready once it has waited long enough; with an error once the stream was reset.
    pub(super) fn poll_passed(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut SendStream<Piece>,
    ) -> Poll<io::Result<()>> {
        match self.0.poll_passed(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => poll_reset(cx, stream),
        }
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
