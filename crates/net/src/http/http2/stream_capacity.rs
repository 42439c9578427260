//! How much content a stream of either side can send: what the queue of its connection has room
//! for, and then what the windows permit.

use super::piece::{Offer, Piece, SendQueue};
use bytes::Bytes;
use h2::SendStream;
use std::io;
use std::task::{Context, Poll, ready};

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
