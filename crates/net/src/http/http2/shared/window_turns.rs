//! Whose turn it is for the window of a connection, where a client keeps that short.
//!
//! Content that was handed over waits for the socket, and the more urgent leaves first
//! (`weir_policy::connections::SendOrder`). What a stream may hand over its window and that of the
//! connection permit, and `h2` gives the latter to those that ask, in the order in which they came.
//! So none asks for it that has to wait: each is called when it is its turn, the more urgent first,
//! equal ones in the order in which they came.
//!
//! Whether a stream waits for its own window or for that of the connection, `h2` does not tell. It
//! is the connection's if what its client has opened of it is used up; a stream that gets nothing
//! although there is some waits for its own, and holds up none.

use crate::http::http2::piece::SendQueue;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use weir_semantics::Urgency;

/// The window of a connection at first, bytes (RFC 9113 §6.9.2).
const FIRST_BYTES: u64 = 65_535;

/// The streams that wait for the window of their connection.
#[derive(Debug)]
pub(in crate::http::http2) struct WindowTurns {
    /// What the client has opened it by.
    opened: Cell<u64>,
    /// Has the content that was handed over.
    queue: Rc<SendQueue>,
    /// In the order in which they came; no more than there are streams.
    waiting: RefCell<Vec<Waiting>>,
    /// All streams are equal from now on.
    is_ignored: Cell<bool>,
}

/// A stream that waits.
#[derive(Debug)]
struct Waiting {
    urgency: Urgency,
    /// Which stream it is.
    stream: Rc<Cell<usize>>,
    task: Waker,
}

impl WindowTurns {
    /// Those of a connection whose content is in `queue`.
    pub(super) fn new(queue: Rc<SendQueue>) -> Self {
        Self {
            opened: Cell::new(0),
            queue,
            waiting: RefCell::default(),
            is_ignored: Cell::new(false),
        }
    }

    /// The client opens the window by so many bytes more.
    pub(super) fn open(&self, bytes: u32) {
        self.opened.set(self.opened.get() + u64::from(bytes));
        self.call_next();
    }

    /// Bytes by which the client has opened it, in all.
    pub(in crate::http::http2) fn opened_bytes(&self) -> u64 {
        self.opened.get()
    }

    /// How many streams wait for it.
    pub(in crate::http::http2) fn count(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Bytes that are left of it.
    fn left_bytes(&self) -> u64 {
        let opened = FIRST_BYTES.saturating_add(self.opened.get());
        opened.saturating_sub(self.queue.window_bytes())
    }

    /// Whether something is left of it.
    pub(in crate::http::http2) fn is_open(&self) -> bool {
        self.left_bytes() > 0
    }

    /// Whether a stream is to leave the window to others, which are more urgent and wait for it.
    pub(in crate::http::http2) fn is_behind(&self, urgency: Urgency) -> bool {
        let waiting = self.waiting.borrow();
        !self.is_ignored.get() && waiting.iter().any(|other| other.urgency < urgency)
    }

    /// A stream waits until it is called. It is not to ask `h2` for capacity meanwhile.
    pub(in crate::http::http2) fn wait(
        &self,
        (urgency, stream): (Urgency, &Rc<Cell<usize>>),
        task: &Waker,
    ) {
        let mut waiting = self.waiting.borrow_mut();
        let known = waiting.iter_mut().find(|it| Rc::ptr_eq(&it.stream, stream));
        match known {
            Some(known) => known.task.clone_from(task),
            None => waiting.push(Waiting {
                urgency,
                stream: Rc::clone(stream),
                task: task.clone(),
            }),
        }
    }

    /// A stream takes some of the window. Once that is handed over, the next is to be called.
    pub(in crate::http::http2) fn take(&self, stream: &Rc<Cell<usize>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|it| !Rc::ptr_eq(&it.stream, stream));
    }

    /// A stream that may send `count` bytes waits for more. If that is for its own window, the next
    /// one is called.
    pub(in crate::http::http2) fn wait_for_more(&self, count: usize) {
        if self.left_bytes() > count as u64 {
            self.call_next();
        }
    }

    /// A stream does not wait for this window, and leaves it to the next.
    pub(in crate::http::http2) fn leave(&self, stream: &Rc<Cell<usize>>) {
        self.take(stream);
        self.call_next();
    }

    /// All streams are equal from now on, as [`SendQueue::ignore_urgency`] has it.
    pub(super) fn ignore_urgency(&self) {
        self.is_ignored.set(true);
        self.call_next();
    }

    /// Calls the stream whose turn it is, if something is left of the window and no content waits
    /// for the socket that is more urgent: to be called again when some has left. The next is
    /// called once this one has taken some, or has found that it waits for its own window: so
    /// however many wait, each is called once for what there is.
    pub(in crate::http::http2) fn call_next(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() || !self.is_open() {
            return;
        }
        let next = match self.is_ignored.get() {
            true => Some(0),
            false => (0..waiting.len()).min_by_key(|at| waiting[*at].urgency),
        };
        // what a more urgent one has handed over leaves first, and it may have more
        let next = next.filter(|next| !self.queue.is_behind(waiting[*next].urgency));
        if let Some(next) = next {
            // one that is called and does not come holds up none
            let next = waiting.remove(next);
            drop(waiting);
            next.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http2::piece::Piece;
    use bytes::Buf as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    /// A stream, and how often it was called.
    struct Stream {
        urgency: Urgency,
        bytes: Rc<Cell<usize>>,
        calls: Arc<Calls>,
    }

    #[derive(Default)]
    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Stream {
        fn new(urgency: &[u8]) -> Self {
            Self {
                urgency: Urgency::of(urgency),
                bytes: Rc::default(),
                calls: Arc::default(),
            }
        }

        fn wait(&self, turns: &WindowTurns) {
            turns.wait(self.name(), &Arc::clone(&self.calls).into());
        }

        fn name(&self) -> (Urgency, &Rc<Cell<usize>>) {
            (self.urgency, &self.bytes)
        }

        fn calls(&self) -> usize {
            self.calls.0.load(Ordering::Relaxed)
        }

        /// Hands over so many bytes.
        fn takes(&self, turns: &WindowTurns, bytes: usize) -> Piece {
            turns.take(&self.bytes);
            let piece = Piece::new(vec![0; bytes].into(), &turns.queue, self.name());
            turns.call_next();
            piece
        }
    }

    /// Those of a connection whose window is used up.
    fn closed() -> (WindowTurns, Piece) {
        let turns = WindowTurns::new(Rc::default());
        let piece = Stream::new(b"u=7").takes(&turns, 65_535);
        (turns, piece)
    }

    /// It has left for the socket.
    fn sent(mut piece: Piece) {
        piece.advance(piece.remaining());
    }

    #[test]
    fn more_urgent_stream_has_the_window_first_and_the_others_what_it_leaves() {
        let (turns, _used) = closed();
        let (urgent, other) = (Stream::new(b"u=1"), Stream::new(b"u=5"));
        other.wait(&turns);
        assert!(!turns.is_behind(urgent.urgency));
        urgent.wait(&turns);
        assert!(turns.is_behind(other.urgency));
        turns.open(20_000);
        assert_eq!((urgent.calls(), other.calls()), (1, 0));
        sent(urgent.takes(&turns, 20_000));
        assert!(!turns.is_open());
        urgent.wait(&turns);
        turns.open(500);
        assert_eq!((urgent.calls(), other.calls()), (2, 0));
        let piece = urgent.takes(&turns, 400);
        assert!(!turns.is_behind(other.urgency));
        // it may have more, once this has left
        assert_eq!((urgent.calls(), other.calls()), (2, 0));
        sent(piece);
        turns.call_next();
        assert_eq!((urgent.calls(), other.calls()), (2, 1));
    }

    #[test]
    fn stream_whose_own_window_is_closed_holds_up_none() {
        let (turns, _used) = closed();
        let (urgent, other) = (Stream::new(b"u=1"), Stream::new(b"u=5"));
        urgent.wait(&turns);
        other.wait(&turns);
        turns.open(5000);
        assert_eq!((urgent.calls(), other.calls()), (1, 0));
        // there is some, and it got nothing
        assert!(turns.is_open());
        turns.leave(&urgent.bytes);
        assert!(!turns.is_behind(other.urgency));
        assert_eq!((urgent.calls(), other.calls()), (1, 1));
    }

    #[test]
    fn stream_whose_own_window_is_narrow_does_not_have_the_next_wait_with_it() {
        let (turns, _used) = closed();
        let (urgent, other) = (Stream::new(b"u=1"), Stream::new(b"u=5"));
        urgent.wait(&turns);
        other.wait(&turns);
        turns.open(500);
        turns.take(&urgent.bytes);
        // all that there is, it has
        turns.wait_for_more(500);
        assert_eq!((urgent.calls(), other.calls()), (1, 0));
        turns.wait_for_more(10);
        assert_eq!((urgent.calls(), other.calls()), (1, 1));
    }

    #[test]
    fn stream_that_ends_calls_the_next_even_if_it_was_called_itself() {
        let (turns, used) = closed();
        let streams = [b"u=1", b"u=3", b"u=5"].map(|urgency| Stream::new(urgency));
        for stream in &streams {
            stream.wait(&turns);
        }
        let calls = || streams.each_ref().map(Stream::calls);
        // what was not sent of a stream that was reset may be sent of others
        drop(used);
        turns.leave(&Rc::default());
        assert_eq!(calls(), [1, 0, 0]);
        turns.leave(&streams[0].bytes);
        assert_eq!(calls(), [1, 1, 0]);
        turns.leave(&streams[2].bytes);
        turns.leave(&streams[1].bytes);
        assert_eq!(calls(), [1, 1, 0]);
        assert_eq!(turns.count(), 0);
    }

    #[test]
    fn equal_streams_are_called_in_turn_one_for_what_each_takes() {
        let (turns, _used) = closed();
        let streams: Vec<_> = (0..100).map(|_| Stream::new(b"u=5")).collect();
        for stream in &streams {
            stream.wait(&turns);
        }
        let calls = || streams.iter().map(Stream::calls).sum::<usize>();
        turns.open(3000);
        assert_eq!(calls(), 1);
        for (stream, called) in streams[..3].iter().zip([2, 3, 3]) {
            assert_eq!(stream.calls(), 1);
            sent(stream.takes(&turns, 1000));
            stream.wait(&turns);
            assert_eq!(calls(), called);
        }
        assert_eq!(turns.count(), streams.len());
        turns.open(1);
        assert_eq!(streams[3].calls(), 1);
    }

    #[test]
    fn streams_are_equal_once_urgency_is_ignored() {
        let (turns, _used) = closed();
        let (urgent, other) = (Stream::new(b"u=1"), Stream::new(b"u=5"));
        other.wait(&turns);
        urgent.wait(&turns);
        turns.ignore_urgency();
        assert!(!turns.is_behind(other.urgency));
        turns.open(1000);
        assert_eq!((urgent.calls(), other.calls()), (0, 1));
    }
}
