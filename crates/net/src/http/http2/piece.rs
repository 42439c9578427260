//! Content that `h2` holds until it is written to the socket, and its bounds.

use bytes::{Buf, Bytes};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

/// Content of one stream that waits for the socket, bytes: two frames of the usual size.
pub(super) const STREAM_BYTES_MAX: usize = 32 * 1024;

/// Content of all streams of a connection that waits for the socket, bytes.
pub(super) const CONNECTION_BYTES_MAX: usize = 128 * 1024;

/// The most bytes of a piece: a frame of the usual size, so that streams take turns by frames.
pub(super) const PIECE_BYTES_MAX: usize = 16 * 1024;

/// Less room than this is not worth a frame.
const WORTH_BYTES: usize = 4096;

/// The content of a connection that waits for its socket.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    bytes: Cell<usize>,
    /// Bytes that were written or dropped.
    left: Cell<u64>,
    /// Tasks of streams that wait for room, in the order in which they came.
    waiting: RefCell<Vec<Waker>>,
}

impl SendQueue {
    /// Bytes that were written, or dropped with their stream.
    pub(super) fn left_bytes(&self) -> u64 {
        self.left.get()
    }

    /// How many of `offered` bytes a stream may add of which `queued` wait, at most `limit`; `None`
    /// if it has to wait for room, and its task is woken.
    pub(super) fn room(
        &self,
        cx: &Context<'_>,
        offered: usize,
        (queued, limit): (usize, usize),
    ) -> Option<usize> {
        let of_stream = limit.saturating_sub(queued);
        let of_connection = CONNECTION_BYTES_MAX.saturating_sub(self.bytes.get());
        let room = of_stream.min(of_connection).min(PIECE_BYTES_MAX);
        if room >= offered.min(limit).min(WORTH_BYTES) {
            return Some(room.min(offered));
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        None
    }

    fn leave(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() - bytes);
        self.left.set(self.left.get() + bytes as u64);
        let woken = std::mem::take(&mut *self.waiting.borrow_mut());
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A piece of content that waits; when it is dropped, it does not any more.
#[derive(Debug)]
pub(super) struct Piece {
    /// What was not written yet.
    bytes: Bytes,
    /// Its length when it began to wait.
    length: usize,
    queue: Rc<SendQueue>,
    /// Bytes of its stream that wait.
    stream: Rc<Cell<usize>>,
}

impl Piece {
    pub(super) fn new(bytes: Bytes, queue: &Rc<SendQueue>, stream: &Rc<Cell<usize>>) -> Self {
        let length = bytes.len();
        queue.bytes.set(queue.bytes.get() + length);
        stream.set(stream.get() + length);
        Self {
            bytes,
            length,
            queue: Rc::clone(queue),
            stream: Rc::clone(stream),
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count.min(self.bytes.len()));
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.stream.set(self.stream.get() - self.length);
        self.queue.leave(self.length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn what_waits_is_bounded_by_stream_and_by_connection() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let mut pieces = Vec::new();
        let mut streams = 0;
        loop {
            let stream = Rc::new(Cell::new(0));
            let first = pieces.len();
            while let Some(room) = queue.room(&cx, 1 << 20, (stream.get(), STREAM_BYTES_MAX)) {
                pieces.push(Piece::new(vec![0; room].into(), &queue, &stream));
            }
            if pieces.len() == first {
                break;
            }
            assert_eq!(stream.get(), STREAM_BYTES_MAX);
            streams += 1;
        }
        assert_eq!(streams, CONNECTION_BYTES_MAX / STREAM_BYTES_MAX);
        assert_eq!(queue.bytes.get(), CONNECTION_BYTES_MAX);
        assert_eq!(queue.room(&cx, 1, (0, STREAM_BYTES_MAX)), None);
        pieces.pop();
        assert_eq!(queue.room(&cx, 1, (0, STREAM_BYTES_MAX)), Some(1));
        assert_eq!(queue.waiting.borrow().len(), 0);
        pieces.clear();
        assert_eq!(queue.bytes.get(), 0);
        assert_eq!(queue.left_bytes(), CONNECTION_BYTES_MAX as u64);
    }

    #[test]
    fn stream_with_a_small_limit_sends_in_its_steps() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let stream = Rc::new(Cell::new(0));
        assert_eq!(queue.room(&cx, 5000, (0, 1000)), Some(1000));
        let piece = Piece::new(vec![0; 1000].into(), &queue, &stream);
        assert_eq!(queue.room(&cx, 5000, (stream.get(), 1000)), None);
        drop(piece);
        assert_eq!(queue.room(&cx, 10, (stream.get(), 1000)), Some(10));
    }
}
