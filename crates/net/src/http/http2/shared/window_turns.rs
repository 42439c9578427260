//! Whose turn it is for the window of a connection, where a client keeps that short.
//!
//! Content that was handed over waits for the socket, and the more urgent leaves first
//! (`weir_policy::connections::SendOrder`). What a stream may hand over its window and that of the
//! connection permit, and `h2` gives the latter to those that ask, in the order in which they came.
//! So none asks for it that has to wait: each is called when it is its turn, the more urgent first,
//! equal ones in the order in which they came.
//!
//! Whether a stream waits for its own window or for that of the connection, `h2` does not tell. It
//! is the connection's if what its client has opened of it is used up, or held by streams that wait
//! for more. A stream that gets nothing although there is some waits for its own, and holds up
//! none.

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
    /// Bytes of it that streams have from `h2` and have handed nothing over for.
    held: Cell<u64>,
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
    /// It was called, and has not come yet.
    is_called: bool,
    task: Waker,
}

impl WindowTurns {
    /// Those of a connection whose content is in `queue`.
    pub(super) fn new(queue: Rc<SendQueue>) -> Self {
        Self {
            opened: Cell::new(0),
            queue,
            held: Cell::new(0),
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

    /// Whether something is left of it.
    pub(in crate::http::http2) fn is_open(&self) -> bool {
        let opened = FIRST_BYTES.saturating_add(self.opened.get());
        opened > self.queue.window_bytes().saturating_add(self.held.get())
    }

    /// A stream has so many bytes of it, and waits for more.
    pub(in crate::http::http2) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes as u64);
    }

    /// A stream that held so many bytes hands them over, or back.
    pub(in crate::http::http2) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes as u64));
    }

    /// Whether all streams are equal: they have no turns then, and ask `h2`.
    pub(in crate::http::http2) fn is_ignored(&self) -> bool {
        self.is_ignored.get()
    }

    /// Whether a stream is to leave the window to others, which are more urgent and wait for it.
    /// One that was called and does not come holds up none.
    pub(in crate::http::http2) fn is_behind(&self, urgency: Urgency) -> bool {
        let waiting = self.waiting.borrow();
        let mut others = waiting.iter().filter(|other| !other.is_called);
        others.any(|other| other.urgency < urgency)
    }

    /// Whether a stream waits for this window.
    pub(in crate::http::http2) fn is_waiting(&self, stream: &Rc<Cell<usize>>) -> bool {
        let waiting = self.waiting.borrow();
        waiting.iter().any(|it| Rc::ptr_eq(&it.stream, stream))
    }

    /// A stream waits until it is called, at its place if it has one. It is not to ask `h2` for
    /// more capacity meanwhile.
    pub(in crate::http::http2) fn wait(
        &self,
        (urgency, stream): (Urgency, &Rc<Cell<usize>>),
        task: &Waker,
    ) {
        let mut waiting = self.waiting.borrow_mut();
        let known = waiting.iter_mut().find(|it| Rc::ptr_eq(&it.stream, stream));
        match known {
            Some(known) => {
                known.is_called = false;
                known.task.clone_from(task);
            }
            None => waiting.push(Waiting {
                urgency,
                stream: Rc::clone(stream),
                is_called: false,
                task: task.clone(),
            }),
        }
    }

    /// A stream has handed something over, or does not wait for this window: it is the next one's.
    pub(in crate::http::http2) fn leave(&self, stream: &Rc<Cell<usize>>) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|it| !Rc::ptr_eq(&it.stream, stream));
        drop(waiting);
        self.call_next();
    }

    /// All streams are equal from now on, as [`SendQueue::ignore_urgency`] has it. What content is
    /// counted for may be less than what `h2` has then, as narrower windows of streams give back
    /// what was assigned to it (RFC 9113 §6.9.2).
    pub(super) fn ignore_urgency(&self) {
        self.is_ignored.set(true);
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        all.into_iter().for_each(|it| it.task.wake());
    }

    /// Calls the stream whose turn it is, if something is left of the window and no content waits
    /// for the socket that is more urgent: to be called again when some has left. The next is
    /// called once this one has handed something over, or has found that it waits for its own
    /// window, and at the end of a pass of the connection.
    pub(in crate::http::http2) fn call_next(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() || !self.is_open() {
            return;
        }
        let uncalled = waiting.iter_mut().filter(|it| !it.is_called);
        let next = uncalled.min_by_key(|it| it.urgency);
        // what a more urgent one has handed over leaves first, and it may have more
        if let Some(next) = next.filter(|next| !self.queue.is_behind(next.urgency)) {
            next.is_called = true;
            next.task.wake_by_ref();
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
            let piece = Piece::new(vec![0; bytes].into(), &turns.queue, self.name());
            turns.leave(&self.bytes);
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
    fn what_a_stream_holds_while_it_waits_for_more_is_left_for_none() {
        let (turns, _used) = closed();
        let (urgent, other) = (Stream::new(b"u=1"), Stream::new(b"u=5"));
        urgent.wait(&turns);
        other.wait(&turns);
        turns.open(500);
        assert_eq!((urgent.calls(), other.calls()), (1, 0));
        turns.hold(500);
        assert!(!turns.is_open());
        urgent.wait(&turns);
        assert!(turns.is_behind(other.urgency));
        turns.open(1);
        assert_eq!((urgent.calls(), other.calls()), (2, 0));
        // it waits for its own window: others have the rest
        turns.release(500);
        turns.hold(10);
        turns.leave(&urgent.bytes);
        assert_eq!((urgent.calls(), other.calls()), (2, 1));
    }

    #[test]
    fn stream_that_is_called_and_finds_nothing_keeps_its_place() {
        let (turns, _used) = closed();
        let [first, second] = [Stream::new(b"u=3"), Stream::new(b"u=3")];
        first.wait(&turns);
        second.wait(&turns);
        for round in 1..=4 {
            turns.open(1000);
            // the end of the pass calls the other
            turns.call_next();
            assert_eq!((first.calls(), second.calls()), (round, round));
            let (served, late) = match round % 2 {
                1 => (&first, &second),
                _ => (&second, &first),
            };
            sent(served.takes(&turns, 1000));
            served.wait(&turns);
            late.wait(&turns);
        }
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
    fn streams_ask_h2_once_urgency_is_ignored() {
        let (turns, _used) = closed();
        let streams = [Stream::new(b"u=1"), Stream::new(b"u=5")];
        streams.iter().for_each(|stream| stream.wait(&turns));
        turns.ignore_urgency();
        assert!(turns.is_ignored());
        assert!(streams.iter().all(|stream| stream.calls() == 1));
        assert_eq!(turns.count(), 0);
    }
}
