//! The test double of a multiplexed connection to a next hop.

use crate::http::next_hop_facts::NextHopFacts;
use crate::http::received_content::{ContentCut, ContentEnd, ContentRead};
use crate::http::received_head::{AcceptedHead, ReceivedBytes};
use crate::next_hops::{HopKey, SpentLink, Uses};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_measure::Counters;
use weir_policy::Tick;
use weir_wire::{BodyLength, HeadLimits};

/// A next hop whose connection carries many requests at once; the test answers them.
#[derive(Clone)]
pub struct DoubleNextHop(Rc<Connection>);

struct Connection {
    hop: HopKey,
    address: SocketAddr,
    opened: RefCell<VecDeque<Rc<Exchange>>>,
    wakers: RefCell<Vec<Waker>>,
    /// It takes nothing that is sent to it.
    is_stalled: Cell<bool>,
}

struct Exchange {
    connection: Rc<Connection>,
    uses: Uses,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    request_line: Vec<u8>,
    request_head: Vec<u8>,
    request_content: Vec<u8>,
    request_ended: bool,
    request_sent_bytes: u64,
    /// The next hop takes no more content.
    refuses_content: bool,
    head: Vec<u8>,
    content: VecDeque<u8>,
    ended: bool,
    is_read: bool,
    window: Option<u32>,
    is_cancelled: bool,
}

impl DoubleNextHop {
    /// A next hop that is at `hop`.
    #[must_use]
    pub fn new(hop: HopKey, address: SocketAddr) -> Self {
        Self(Rc::new(Connection {
            hop,
            address,
            opened: RefCell::default(),
            wakers: RefCell::default(),
            is_stalled: Cell::default(),
        }))
    }

    /// From now on it takes nothing that is sent to it.
    pub fn stall(&self) {
        self.0.is_stalled.set(true);
    }

    /// Has the requests of this thread to its address go there.
    pub fn enter(&self) {
        DOUBLES.with_borrow_mut(|doubles| doubles.push(self.clone()));
    }

    pub(in crate::http) fn open(&self) -> DoubleExchange {
        let exchange = Rc::new(Exchange {
            connection: Rc::clone(&self.0),
            uses: Uses::new(0, Tick(0), false),
            state: RefCell::default(),
        });
        self.0.opened.borrow_mut().push_back(Rc::clone(&exchange));
        self.0.wake();
        DoubleExchange {
            exchange,
            _cancel: None,
        }
    }

    /// The next request, once its head has come.
    pub async fn accept(&self) -> DoubleRequest {
        poll_fn(|cx| {
            let mut opened = self.0.opened.borrow_mut();
            let has_head = |it: &Rc<Exchange>| !it.state.borrow().request_head.is_empty();
            let Some(at) = opened.iter().position(has_head) else {
                self.0.wait(cx);
                return Poll::Pending;
            };
            opened.remove(at).map_or(Poll::Pending, |exchange| {
                Poll::Ready(DoubleRequest(exchange))
            })
        })
        .await
    }
}

thread_local! {
    /// The doubles that requests of this thread go to.
    static DOUBLES: RefCell<Vec<DoubleNextHop>> = const { RefCell::new(Vec::new()) };
}

/// The double at `hop`, if there is one.
pub(in crate::http) fn at(hop: &HopKey) -> Option<DoubleNextHop> {
    let is_there = |double: &&DoubleNextHop| double.0.hop == *hop;
    DOUBLES.with_borrow(|doubles| doubles.iter().find(is_there).cloned())
}

impl Connection {
    fn wait(&self, cx: &Context<'_>) {
        self.wakers.borrow_mut().push(cx.waker().clone());
    }

    fn wake(&self) {
        let woken = std::mem::take(&mut *self.wakers.borrow_mut());
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A request as the next hop has it.
pub struct DoubleRequest(Rc<Exchange>);

impl DoubleRequest {
    /// The request line and the fields.
    #[must_use]
    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.0.state.borrow().request_head).into_owned()
    }

    /// Sends a head: a status line and fields, each with CRLF.
    pub fn respond(&self, head: &str) {
        let mut state = self.0.state.borrow_mut();
        state.head = head.as_bytes().to_vec();
        state.head.extend_from_slice(b"\r\n");
        drop(state);
        self.0.connection.wake();
    }

    /// Takes no more content of the request: what is sent from now on is refused.
    pub fn refuse_content(&self) {
        self.0.state.borrow_mut().refuses_content = true;
        self.0.connection.wake();
    }

    /// Sends as much of `content` as the window has room for; how much that was, once it is
    /// something. 0 if the stream was stopped.
    pub async fn send(&self, content: &[u8]) -> usize {
        poll_fn(|cx| {
            let mut state = self.0.state.borrow_mut();
            if state.is_cancelled {
                return Poll::Ready(0);
            }
            let window = state.window.map_or(FIRST_WINDOW, |window| window as usize);
            let room = window.saturating_sub(state.content.len());
            let count = content.len().min(room);
            if count == 0 {
                self.0.connection.wait(cx);
                return Poll::Pending;
            }
            state.content.extend(&content[..count]);
            drop(state);
            self.0.connection.wake();
            Poll::Ready(count)
        })
        .await
    }

    /// Ends the response.
    pub fn end(&self) {
        self.0.state.borrow_mut().ended = true;
        self.0.connection.wake();
    }

    /// Bytes that were sent and not received.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.0.state.borrow().content.len()
    }

    /// Whether the stream was stopped before the response was whole.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.state.borrow().is_cancelled
    }
}

/// The first window of a stream, bytes (RFC 9113 §6.9.2).
const FIRST_WINDOW: usize = 65_535;

/// One stream to the double.
pub struct DoubleExchange {
    exchange: Rc<Exchange>,
    /// With the owner of the stream alone: its halves do not stop it.
    _cancel: Option<Cancel>,
}

struct Cancel(Rc<Exchange>);

impl Drop for Cancel {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        state.is_cancelled = !state.is_read;
        drop(state);
        self.0.connection.wake();
    }
}

impl DoubleExchange {
    /// The same for the owner: dropping it stops the response.
    pub(in crate::http) fn owned(mut self) -> Self {
        self._cancel = Some(Cancel(Rc::clone(&self.exchange)));
        self
    }

    pub(in crate::http) fn half(&self) -> Self {
        Self {
            exchange: Rc::clone(&self.exchange),
            _cancel: None,
        }
    }

    pub(in crate::http) fn facts(&self) -> NextHopFacts<'_> {
        NextHopFacts {
            address: self.exchange.connection.address,
            hop: &self.exchange.connection.hop,
            reused: false,
            is_http2: false,
            uses: &self.exchange.uses,
            link: None,
        }
    }

    #[expect(clippy::unused_self, reason = "nothing is counted of the double")]
    pub(in crate::http) fn count_request(&self, _counters: &Counters, _client: IpAddr) {}

    // ---- the request

    pub(in crate::http) fn begin(&self, head: Vec<u8>, _content: BodyLength, _upgrade: bool) {
        self.exchange.state.borrow_mut().request_line = head;
    }

    pub(in crate::http) fn poll_send(
        &self,
        cx: &Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        if self.exchange.connection.is_stalled.get() {
            self.exchange.connection.wait(cx);
            return Poll::Pending;
        }
        let mut state = self.exchange.state.borrow_mut();
        if state.refuses_content {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let content = content.concat();
        let moves = !state.request_line.is_empty() || !content.is_empty();
        if !state.request_line.is_empty() {
            state.request_head = std::mem::take(&mut state.request_line);
            state.request_sent_bytes += state.request_head.len() as u64;
        }
        state.request_content.extend_from_slice(&content);
        state.request_sent_bytes += content.len() as u64;
        state.request_ended |= end.is_some();
        drop(state);
        if moves {
            self.exchange.connection.wake();
        }
        Poll::Ready(Ok(content.len()))
    }

    pub(in crate::http) fn is_complete(&self) -> bool {
        self.exchange.state.borrow().request_ended
    }

    pub(in crate::http) fn sent_bytes(&self) -> u64 {
        self.exchange.state.borrow().request_sent_bytes
    }

    // ---- the response

    pub(in crate::http) fn poll_receive_head(
        &self,
        cx: &Context<'_>,
        _scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let state = self.exchange.state.borrow();
        if state.head.is_empty() {
            self.exchange.connection.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(state.head.len()))
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(in crate::http) const fn link_spent(&self) -> Option<SpentLink> {
        None
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(in crate::http) const fn is_held_back(&self) -> bool {
        false
    }

    pub(in crate::http) fn has_received(&self) -> bool {
        !self.exchange.state.borrow().head.is_empty()
    }

    pub(in crate::http) fn is_worth_reading(&self, _limits: &HeadLimits) -> bool {
        self.has_received()
    }

    pub(in crate::http) fn take_received(&self) -> ReceivedBytes {
        ReceivedBytes(self.exchange.state.borrow().head.clone())
    }

    pub(in crate::http) fn return_received(
        &self,
        received: ReceivedBytes,
        _accepted: Option<AcceptedHead>,
    ) {
        self.exchange.state.borrow_mut().head = received.0;
    }

    #[expect(clippy::unused_self, reason = "content comes in frames of its own")]
    pub(in crate::http) fn buffered_bytes(&self) -> usize {
        0
    }

    pub(in crate::http) fn take_buffered(
        &self,
        _take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ContentRead {
        let mut state = self.exchange.state.borrow_mut();
        let is_whole = state.ended && state.content.is_empty();
        state.is_read = is_whole;
        ContentRead {
            bytes: 0,
            content_bytes: 0,
            end: if is_whole {
                ContentEnd::Whole
            } else {
                ContentEnd::More
            },
        }
    }

    pub(in crate::http) fn poll_content(
        &self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        mut take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        let mut state = self.exchange.state.borrow_mut();
        if state.content.is_empty() && !state.ended {
            self.exchange.connection.wait(cx);
            return Poll::Pending;
        }
        let count = state.content.len().min(scratch.len());
        let content: Vec<u8> = state.content.drain(..count).collect();
        let is_whole = state.ended && state.content.is_empty();
        state.is_read = is_whole;
        drop(state);
        self.exchange.connection.wake();
        let is_stopped = !content.is_empty() && take(cx, &content).is_break();
        Poll::Ready(Ok(ContentRead {
            bytes: count as u64,
            content_bytes: count as u64,
            end: match (is_stopped, is_whole) {
                (true, _) => ContentEnd::Stopped,
                (_, true) => ContentEnd::Whole,
                _ => ContentEnd::More,
            },
        }))
    }

    #[expect(clippy::unused_self, reason = "the double sends no trailers")]
    pub(in crate::http) fn trailers(&self) -> &[u8] {
        &[]
    }

    pub(in crate::http) fn begin_window(&self, base: u32) -> u32 {
        self.set_window(Some(base), None);
        0
    }

    pub(in crate::http) fn set_window(&self, window: Option<u32>, _remaining: Option<u64>) {
        let mut state = self.exchange.state.borrow_mut();
        if state.window != window {
            state.window = window;
            drop(state);
            self.exchange.connection.wake();
        }
    }

    #[expect(clippy::unused_self, reason = "the double has no round trip")]
    pub(in crate::http) fn measure_round_trip(&self) -> Option<u32> {
        Some(0)
    }
}
