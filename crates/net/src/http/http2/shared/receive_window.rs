//! The window of a connection for the content of its requests (RFC 9113 §5.2).
//!
//! A stream has a window of its own, and all have that of the connection. What next hops do not
//! take fills both. So that of the connection becomes wider by as much as streams may hold whose
//! content waits: those that move always have the rest.

use crate::workers::{STEP_BYTES, WindowGrant};
use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Content of a request that is received and not used, bytes: the window of a stream.
pub(in crate::http::http2) const STREAM_WINDOW: u32 = 64 * 1024 - 1;

/// The same of all requests of a connection of one client at first, bytes.
pub(in crate::http::http2) const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Streams beside those whose content waits have room for so many windows.
const MOVING_STREAMS: u32 = 2;

/// The window of one connection.
pub(in crate::http::http2) struct ReceiveWindow {
    /// Streams whose content waits, or may.
    waiting: Cell<u32>,
    /// Its width, bytes.
    bytes: Cell<u32>,
    /// That of all streams, bytes.
    most: u32,
    room: WindowGrant,
    /// Polls the connection.
    waker: RefCell<Option<Waker>>,
}

impl ReceiveWindow {
    /// A window that is `bytes` wide, at most `most`, and wider as there is `room`.
    pub(in crate::http::http2) fn new(bytes: u32, most: u32, room: WindowGrant) -> Self {
        Self {
            waiting: Cell::new(0),
            bytes: Cell::new(bytes),
            most,
            room,
            waker: RefCell::default(),
        }
    }

    /// Content of one more stream may wait.
    pub(in crate::http::http2) fn begin_wait(&self) {
        self.waiting.set(self.waiting.get() + 1);
        if self.lacks_room()
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Content of one of them does not wait any more.
    pub(in crate::http::http2) fn end_wait(&self) {
        self.waiting.set(self.waiting.get() - 1);
    }

    fn lacks_room(&self) -> bool {
        let streams = self.waiting.get().saturating_add(MOVING_STREAMS);
        let needed = streams.saturating_mul(STREAM_WINDOW).min(self.most);
        needed > self.bytes.get()
    }

    /// How wide it is to be from now on, if that changes: for the connection, which is polled by
    /// `cx`.
    pub(in crate::http::http2) fn widened(&self, cx: &Context<'_>) -> Option<u32> {
        let waker = &mut *self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|it| it.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        let before = self.bytes.get();
        while self.lacks_room() && self.room.widen() {
            let wider = self.bytes.get().saturating_add(STEP_BYTES);
            self.bytes.set(wider.min(self.most));
        }
        let bytes = self.bytes.get();
        (bytes != before).then_some(bytes)
    }
}
