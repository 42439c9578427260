//! Content that `h2` holds until it is written to the socket, and its bounds.

use bytes::{Buf, Bytes};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use weir_policy::connections::SendOrder;
use weir_semantics::Urgency;

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
    /// Bytes that were handed over, but for those of streams that were reset before they were
    /// sent: what is used of the window of the connection, once they are sent.
    window_bytes: Cell<u64>,
    order: Cell<SendOrder>,
    /// Streams that wait for room, in the order in which they came.
    waiting: RefCell<Vec<Waiting>>,
    /// What is taken of pieces is gathered before it is written: they wait until then.
    gathers: Cell<bool>,
    /// Pieces that were gathered.
    gathered: RefCell<Vec<Gathered>>,
}

/// A piece that was taken, and is not written.
#[derive(Debug)]
struct Gathered {
    length: usize,
    urgency: Urgency,
    stream: Rc<Cell<usize>>,
}

/// A stream that waits for room.
#[derive(Debug)]
struct Waiting {
    urgency: Urgency,
    stream: Rc<Cell<usize>>,
    task: Waker,
}

/// A stream that offers content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'s> {
    pub(super) urgency: Urgency,
    /// Bytes of it that wait.
    pub(super) stream: &'s Rc<Cell<usize>>,
    /// How many may wait.
    pub(super) limit: usize,
}

impl<'s> Offer<'s> {
    /// That of a stream as urgent as all, of which at most `limit` bytes may wait.
    pub(super) fn of_equals(stream: &'s Rc<Cell<usize>>, limit: usize) -> Self {
        Self {
            urgency: Urgency::default(),
            stream,
            limit,
        }
    }
}

impl SendQueue {
    /// Bytes that were written, or dropped with their stream.
    pub(super) fn left_bytes(&self) -> u64 {
        self.left.get()
    }

    /// Bytes that were sent, or will be: what the window of the connection has to be open for.
    pub(super) fn window_bytes(&self) -> u64 {
        self.window_bytes.get()
    }

    /// Something is gathered: pieces that are taken wait until [`Self::written`] is called.
    pub(super) fn gather(&self) {
        self.gathers.set(true);
    }

    /// All that was taken is written, or will not be.
    pub(super) fn written(&self) {
        self.gathers.set(false);
        let gathered = std::mem::take(&mut *self.gathered.borrow_mut());
        gathered.into_iter().for_each(|piece| self.leave(&piece));
    }

    /// Whether a stream waits for others that are more urgent.
    pub(super) fn is_behind(&self, urgency: Urgency) -> bool {
        !self.order.get().may_add(urgency)
    }

    /// All streams are equally urgent from now on.
    pub(super) fn ignore_urgency(&self) {
        self.order(SendOrder::ignore);
        self.wake();
    }

    fn order(&self, change: impl FnOnce(&mut SendOrder)) {
        let mut order = self.order.get();
        change(&mut order);
        self.order.set(order);
    }

    /// Whether content waits for the socket.
    pub(super) fn has_waiting(&self) -> bool {
        self.bytes.get() > 0
    }

    /// How many of `offered` bytes a stream may add; `None` if it has to wait for room, and its
    /// task is woken, unless it is forgotten ([`Self::forget`]).
    pub(super) fn room(
        &self,
        cx: &Context<'_>,
        offered: usize,
        stream: Offer<'_>,
    ) -> Option<usize> {
        let Offer {
            urgency,
            stream,
            limit,
        } = stream;
        let of_stream = limit.saturating_sub(stream.get());
        let of_connection = CONNECTION_BYTES_MAX.saturating_sub(self.bytes.get());
        let room = of_stream.min(of_connection).min(PIECE_BYTES_MAX);
        if room >= offered.min(limit).min(WORTH_BYTES) && !self.is_behind(urgency) {
            return Some(room.min(offered));
        }
        let mut waiting = self.waiting.borrow_mut();
        let known = waiting.iter_mut().find(|it| Rc::ptr_eq(&it.stream, stream));
        match known {
            Some(known) => known.task.clone_from(cx.waker()),
            None => waiting.push(Waiting {
                urgency,
                stream: Rc::clone(stream),
                task: cx.waker().clone(),
            }),
        }
        None
    }

    /// A stream offers no more content: it waits no more, and its task is kept by nothing here.
    pub(super) fn forget(&self, stream: &Rc<Cell<usize>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|it| !Rc::ptr_eq(&it.stream, stream));
    }

    fn leave(&self, piece: &Gathered) {
        let Gathered {
            length: bytes,
            urgency,
            ref stream,
        } = *piece;
        stream.set(stream.get() - bytes);
        self.bytes.set(self.bytes.get() - bytes);
        self.left.set(self.left.get() + bytes as u64);
        self.order(|order| order.leave(urgency, bytes));
        self.wake();
    }

    /// Wakes the streams that may add content; the others would only find that they may not. The
    /// most urgent go first: what they add holds back the others, if all that waited has left at
    /// once.
    fn wake(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let least = self.order.get().least();
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        let (woken, others) = waiting.into_iter().partition(|it| it.urgency <= least);
        *self.waiting.borrow_mut() = others;
        let mut woken: Vec<Waiting> = woken;
        woken.sort_by_key(|it| it.urgency);
        woken.into_iter().for_each(|it| it.task.wake());
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
    urgency: Urgency,
    /// Bytes of its stream that wait.
    stream: Rc<Cell<usize>>,
}

impl Piece {
    pub(super) fn new(
        bytes: Bytes,
        queue: &Rc<SendQueue>,
        (urgency, stream): (Urgency, &Rc<Cell<usize>>),
    ) -> Self {
        let length = bytes.len();
        queue.bytes.set(queue.bytes.get() + length);
        queue
            .window_bytes
            .set(queue.window_bytes.get() + length as u64);
        queue.order(|order| order.add(urgency, length));
        stream.set(stream.get() + length);
        Self {
            bytes,
            length,
            queue: Rc::clone(queue),
            urgency,
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
        let unsent = self.bytes.len() as u64;
        let window_bytes = &self.queue.window_bytes;
        window_bytes.set(window_bytes.get() - unsent);
        let piece = Gathered {
            length: self.length,
            urgency: self.urgency,
            stream: Rc::clone(&self.stream),
        };
        if self.bytes.is_empty() && self.queue.gathers.get() {
            self.queue.gathered.borrow_mut().push(piece);
        } else {
            self.queue.leave(&piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn stream(queued: usize) -> Rc<Cell<usize>> {
        Rc::new(Cell::new(queued))
    }

    #[test]
    fn piece_that_is_gathered_waits_until_it_is_written() {
        let queue = Rc::new(SendQueue::default());
        queue.gather();
        let stream = Rc::new(Cell::new(0));
        let urgency = Urgency::default();
        let mut piece = Piece::new(vec![0; 1000].into(), &queue, (urgency, &stream));
        piece.advance(1000);
        drop(piece);
        assert_eq!((stream.get(), queue.bytes.get()), (1000, 1000));
        queue.written();
        assert_eq!((stream.get(), queue.bytes.get()), (0, 0));
        assert_eq!(queue.left_bytes(), 1000);
        assert_eq!(queue.window_bytes(), 1000);
    }

    #[test]
    fn what_is_dropped_unsent_uses_no_window() {
        let queue = Rc::new(SendQueue::default());
        let mut piece = Piece::new(
            vec![0; 1000].into(),
            &queue,
            (Urgency::default(), &stream(0)),
        );
        assert_eq!(queue.window_bytes(), 1000);
        piece.advance(300);
        assert_eq!(queue.window_bytes(), 1000);
        drop(piece);
        assert_eq!(queue.window_bytes(), 300);
    }

    #[test]
    fn what_waits_is_bounded_by_stream_and_by_connection() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let mut pieces = Vec::new();
        let mut streams = 0;
        loop {
            let stream = Rc::new(Cell::new(0));
            let first = pieces.len();
            while let Some(room) =
                queue.room(&cx, 1 << 20, Offer::of_equals(&stream, STREAM_BYTES_MAX))
            {
                pieces.push(Piece::new(
                    vec![0; room].into(),
                    &queue,
                    (Urgency::default(), &stream),
                ));
            }
            if pieces.len() == first {
                break;
            }
            assert_eq!(stream.get(), STREAM_BYTES_MAX);
            streams += 1;
        }
        assert_eq!(streams, CONNECTION_BYTES_MAX / STREAM_BYTES_MAX);
        assert_eq!(queue.bytes.get(), CONNECTION_BYTES_MAX);
        let other = stream(0);
        let offer = Offer::of_equals(&other, STREAM_BYTES_MAX);
        assert_eq!(queue.room(&cx, 1, offer), None);
        pieces.pop();
        assert_eq!(queue.room(&cx, 1, offer), Some(1));
        assert_eq!(queue.waiting.borrow().len(), 0);
        pieces.clear();
        assert_eq!(queue.bytes.get(), 0);
        assert_eq!(queue.left_bytes(), CONNECTION_BYTES_MAX as u64);
    }

    #[test]
    fn stream_that_has_ended_waits_no_more() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let full = stream(0);
        let urgency = Urgency::default();
        let filled = vec![0; CONNECTION_BYTES_MAX].into();
        let _piece = Piece::new(filled, &queue, (urgency, &full));
        let streams: Vec<_> = (0..1000).map(|_| stream(0)).collect();
        for one in streams.iter().chain(&streams) {
            let offer = Offer::of_equals(one, STREAM_BYTES_MAX);
            assert_eq!(queue.room(&cx, 100, offer), None);
        }
        assert_eq!(queue.waiting.borrow().len(), streams.len());
        streams.iter().for_each(|one| queue.forget(one));
        assert_eq!(queue.waiting.borrow().len(), 0);
    }

    #[test]
    fn stream_with_a_small_limit_sends_in_its_steps() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let stream = stream(0);
        let offer = Offer::of_equals(&stream, 1000);
        assert_eq!(queue.room(&cx, 5000, offer), Some(1000));
        let piece = Piece::new(vec![0; 1000].into(), &queue, (Urgency::default(), &stream));
        assert_eq!(queue.room(&cx, 5000, offer), None);
        drop(piece);
        assert_eq!(queue.room(&cx, 10, offer), Some(10));
    }

    #[test]
    fn less_urgent_stream_waits_until_more_urgent_content_has_left() {
        let queue = Rc::new(SendQueue::default());
        let cx = Context::from_waker(Waker::noop());
        let (urgent, other) = (Urgency::of(b"u=1"), Urgency::of(b"u=5"));
        let stream = stream(0);
        let asking = self::stream(0);
        let room = |urgency| {
            let offer = Offer {
                urgency,
                ..Offer::of_equals(&asking, STREAM_BYTES_MAX)
            };
            queue.room(&cx, 100, offer)
        };
        let piece = Piece::new(vec![0; 100].into(), &queue, (urgent, &stream));
        assert_eq!(room(other), None);
        assert_eq!(room(urgent), Some(100));
        assert!(queue.is_behind(other) && !queue.is_behind(urgent));
        // what leaves of others does not wake it
        let more = Piece::new(vec![0; 100].into(), &queue, (urgent, &stream));
        drop(more);
        assert_eq!(queue.waiting.borrow().len(), 1);
        drop(piece);
        assert_eq!(queue.waiting.borrow().len(), 0);
        assert_eq!(room(other), Some(100));
        let _piece = Piece::new(vec![0; 100].into(), &queue, (urgent, &stream));
        queue.ignore_urgency();
        assert_eq!(room(other), Some(100));
    }
}
