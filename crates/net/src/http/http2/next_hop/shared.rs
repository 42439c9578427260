//! What the streams of a connection to a next hop share.

use super::protocol_error::HopProtocolError;
use crate::flow::tcp_info;
use crate::http::http2::frame_reader::{FrameHead, FrameReader};
use crate::http::http2::piece::SendQueue;
use crate::next_hops::NextHopSocket;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use weir_policy::Tick;
use weir_policy::connections::{Flood, FrameBudget, FrameKind};

/// Heads that may come before the streams which they are for are polled: what is decoded of them
/// waits there.
const HEADS_AT_ONCE: u32 = 16;

/// The socket of a connection, and what was seen on it.
pub(super) struct Shared {
    pub(super) socket: NextHopSocket,
    pub(super) queue: Rc<SendQueue>,
    frames: RefCell<Frames>,
    /// The time of the last poll.
    now: Cell<Tick>,
    /// Something was received since the last poll.
    has_heard: Cell<bool>,
    /// All that was read is handled.
    is_read_handled: Cell<bool>,
    /// Heads that have come since the streams had a turn.
    heads: Cell<u32>,
    windows: RefCell<Windows>,
    /// The window of a stream at rest, bytes.
    base: u32,
    driver: RefCell<Option<Waker>>,
}

struct Frames {
    received: FrameReader,
    sent: FrameReader,
    budget: FrameBudget,
    flood: Option<Flood>,
    /// The next hop has announced the end of the connection.
    has_goaway: bool,
    /// The next hop has taken settings, and the streams do not know.
    has_settled: bool,
    /// Something was received.
    has_bytes: bool,
    /// A frame was received.
    has_begun: bool,
    /// The first one was not as HTTP/2 has it.
    is_foreign: bool,
}

/// How wide the windows of the streams are to be.
#[derive(Default)]
struct Windows {
    /// `None` where there is no stream.
    streams: Vec<Option<StreamWindow>>,
    /// A need has changed since this was last looked at.
    has_changed: bool,
}

struct StreamWindow {
    /// What it needs, bytes.
    needed: u32,
    /// Its task, if that waits for content.
    waits: Option<Waker>,
}

impl Shared {
    pub(super) fn new(socket: NextHopSocket, base: u32, now: Tick) -> Self {
        Self {
            socket,
            queue: Rc::default(),
            frames: RefCell::new(Frames {
                received: FrameReader::of_server(),
                sent: FrameReader::of_client(),
                budget: FrameBudget::new(now),
                flood: None,
                has_goaway: false,
                has_settled: false,
                has_bytes: false,
                has_begun: false,
                is_foreign: false,
            }),
            now: Cell::new(now),
            has_heard: Cell::new(false),
            is_read_handled: Cell::new(true),
            heads: Cell::new(0),
            windows: RefCell::default(),
            base,
            driver: RefCell::default(),
        }
    }

    /// A poll of the connection begins.
    pub(super) fn begin_poll(&self, now: Tick, driver: &Waker) {
        self.now.set(now);
        let mut known = self.driver.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(driver)) {
            *known = Some(driver.clone());
        }
    }

    /// Has the connection be polled.
    pub(super) fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// These bytes came from the next hop.
    pub(super) fn received(&self, bytes: &[u8]) {
        self.has_heard.set(true);
        let frames = &mut *self.frames.borrow_mut();
        frames.has_bytes |= !bytes.is_empty();
        let Frames {
            budget,
            flood,
            has_goaway,
            has_settled,
            has_begun,
            is_foreign,
            ..
        } = frames;
        let now = self.now.get();
        frames.received.follow(bytes, |frame| {
            if !std::mem::replace(has_begun, true) {
                *is_foreign = frame.kind != FrameHead::SETTINGS;
            }
            let kind = match frame.kind {
                FrameHead::DATA if frame.length > 0 || frame.ends_stream() => return,
                FrameHead::RST_STREAM => FrameKind::Reset,
                FrameHead::WINDOW_UPDATE => FrameKind::WindowUpdate,
                _ => FrameKind::Control,
            };
            match frame.kind {
                FrameHead::HEADERS => self.heads.set(self.heads.get() + 1),
                FrameHead::GOAWAY => *has_goaway = true,
                FrameHead::SETTINGS => *has_settled |= frame.acknowledges_settings(),
                _ => {}
            }
            if let Err(too_many) = budget.note(now, kind) {
                flood.get_or_insert(too_many);
            }
        });
    }

    /// These bytes were written to the next hop.
    pub(super) fn sent(&self, bytes: &[u8]) {
        let frames = &mut *self.frames.borrow_mut();
        let (budget, flood) = (&mut frames.budget, &mut frames.flood);
        let now = self.now.get();
        frames.sent.follow(bytes, |frame| {
            let kind = match frame.kind {
                FrameHead::HEADERS => FrameKind::SentRequest,
                FrameHead::DATA => FrameKind::SentContent,
                FrameHead::RST_STREAM => FrameKind::Reset,
                _ => return,
            };
            if let Err(too_many) = budget.note(now, kind) {
                flood.get_or_insert(too_many);
            }
        });
    }

    /// What the next hop has sent, or brought about, too much of.
    pub(super) fn flood(&self) -> Option<Flood> {
        self.frames.borrow().flood
    }

    /// Whether the next hop has announced the end of the connection.
    pub(super) fn has_goaway(&self) -> bool {
        self.frames.borrow().has_goaway
    }

    /// Whether what the next hop has sent first is not of HTTP/2. To be asked once the connection
    /// has failed: then less than the head of a frame is none either, such as an alert of TLS.
    pub(super) fn is_foreign(&self) -> bool {
        let frames = self.frames.borrow();
        frames.is_foreign || frames.has_bytes && !frames.has_begun
    }

    /// How the next hop has broken the protocol: on the whole connection, or else on a stream of
    /// it, as `of_stream` says.
    pub(super) fn protocol_error(
        &self,
        of_stream: Option<HopProtocolError>,
    ) -> Option<HopProtocolError> {
        if self.is_foreign() {
            return Some(HopProtocolError::Foreign);
        }
        of_stream.or_else(|| self.flood().map(HopProtocolError::Flood))
    }

    /// Whether something was received since this was last asked.
    pub(super) fn take_heard(&self) -> bool {
        self.has_heard.take()
    }

    /// Whether the streams are to have a turn before more is read: the next call says no.
    pub(super) fn is_streams_turn(&self) -> bool {
        let is_theirs = self.heads.get() >= HEADS_AT_ONCE || self.flood().is_some();
        if is_theirs {
            self.heads.set(0);
        }
        is_theirs
    }

    /// Whether all that was read is handled: nothing more could be read, after that was.
    pub(super) fn set_read_handled(&self, is_handled: bool) {
        self.is_read_handled.set(is_handled);
    }

    /// Has the streams look at their windows if the next hop has taken settings, once that is
    /// handled. Where a window becomes smaller, `h2` may owe the next hop an update that it sends
    /// when it is asked to next: content may come no sooner.
    pub(super) fn settle_windows(&self) {
        let has_settled = &mut self.frames.borrow_mut().has_settled;
        if !*has_settled || !self.is_read_handled.get() {
            return;
        }
        *has_settled = false;
        let streams = &mut self.windows.borrow_mut().streams;
        let waiting = streams.iter_mut().flatten().map(|stream| &mut stream.waits);
        waiting.filter_map(Option::take).for_each(Waker::wake);
    }

    /// A place for what a stream needs.
    pub(super) fn take_window(&self) -> usize {
        let streams = &mut self.windows.borrow_mut().streams;
        let free = streams.iter().position(Option::is_none);
        let place = free.unwrap_or(streams.len());
        if place == streams.len() {
            streams.push(None);
        }
        streams[place] = Some(StreamWindow {
            needed: self.base,
            waits: None,
        });
        place
    }

    /// A stream needs a window of so many bytes.
    pub(super) fn need_window(&self, place: usize, bytes: u32) {
        let windows = &mut *self.windows.borrow_mut();
        if let Some(Some(known)) = windows.streams.get_mut(place) {
            known.needed = bytes;
            windows.has_changed = true;
        }
        self.wake_driver();
    }

    /// The task of a stream waits for content.
    pub(super) fn waits(&self, place: usize, task: &Waker) {
        let windows = &mut *self.windows.borrow_mut();
        if let Some(Some(known)) = windows.streams.get_mut(place)
            && !known
                .waits
                .as_ref()
                .is_some_and(|known| known.will_wake(task))
        {
            known.waits = Some(task.clone());
        }
    }

    /// The stream has ended.
    pub(super) fn give_window(&self, place: usize) {
        let windows = &mut *self.windows.borrow_mut();
        if let Some(known) = windows.streams.get_mut(place) {
            *known = None;
            windows.has_changed = true;
        }
    }

    /// What the stream needs that needs most, if that may have changed since this was last asked.
    pub(super) fn take_needed_window(&self) -> Option<u32> {
        let windows = &mut *self.windows.borrow_mut();
        let has_changed = std::mem::take(&mut windows.has_changed);
        let needed = windows.streams.iter().flatten().map(|it| it.needed);
        has_changed.then(|| needed.max().unwrap_or(self.base))
    }

    /// The round trip to the next hop, microseconds.
    pub(super) fn round_trip_us(&self) -> Option<u32> {
        tcp_info(self.socket.tcp()).map(|info| info.rtt_us)
    }
}
