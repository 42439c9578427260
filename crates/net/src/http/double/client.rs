//! The test double of a multiplexed connection: HTTP/2 without its bytes.
//!
//! Streams of a connection have windows of their own and share the window of the connection. A
//! stream is opened, fed, read, stopped or reset by the test; the other end of it is served as any
//! stream is. Everything is on one thread.

use crate::http::content_form::ContentForm;
use crate::http::received_content::{ContentError, ReceivedContent};
use crate::tunnel::{TunnelEnd, TunnelReport};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;
use weir_wire::{BodyError, BodyLength};

/// A connection of many streams.
pub struct DoubleConnection {
    /// Bytes of content that all streams together may still send.
    window: Rc<Cell<u64>>,
    wakers: Rc<RefCell<Vec<Waker>>>,
}

impl DoubleConnection {
    /// A connection whose streams together may send `window` bytes before more is granted.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self {
            window: Rc::new(Cell::new(window)),
            wakers: Rc::default(),
        }
    }

    /// Permits all streams together to send so many bytes from now on.
    pub fn set_window(&self, bytes: u64) {
        self.window.set(bytes);
        wake(&self.wakers);
    }

    /// Opens a stream for a request with content of `length`. It may send `window` bytes of content
    /// before more is granted.
    #[must_use]
    pub fn open(&self, length: BodyLength, window: u64) -> DoubleStream {
        DoubleStream(Rc::new(Stream {
            length,
            connection_window: Rc::clone(&self.window),
            wakers: Rc::clone(&self.wakers),
            state: RefCell::new(State {
                window,
                ..State::default()
            }),
        }))
    }
}

struct Stream {
    length: BodyLength,
    connection_window: Rc<Cell<u64>>,
    /// All tasks that wait for anything on the connection.
    wakers: Rc<RefCell<Vec<Waker>>>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    // ---- from the client
    request: Vec<u8>,
    request_ended: bool,
    content_begun: bool,
    received_bytes: u64,
    consumed_bytes: u64,
    is_reset: bool,
    // ---- to the client
    line: Vec<u8>,
    head_begun: bool,
    interim: Vec<u8>,
    head: Vec<u8>,
    unread: Vec<u8>,
    read_bytes: u64,
    sent_bytes: u64,
    window: u64,
    unsent_limit: Option<u32>,
    trailers: Vec<u8>,
    ended: bool,
    aborted: bool,
}

/// One stream of the double, as the test has it.
#[derive(Clone)]
pub struct DoubleStream(Rc<Stream>);

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleEnd {
    /// Whole.
    Whole,
    /// The stream was reset by its server.
    Aborted,
}

impl DoubleStream {
    /// Sends content of the request; `ends` with the last of it.
    pub fn send(&self, content: &[u8], ends: bool) {
        let mut state = self.0.state.borrow_mut();
        state.request.extend_from_slice(content);
        state.request_ended |= ends;
        drop(state);
        wake(&self.0.wakers);
    }

    /// Content of the request that was sent and is not used yet.
    #[must_use]
    pub fn unconsumed_bytes(&self) -> u64 {
        let state = self.0.state.borrow();
        state.received_bytes + state.request.len() as u64 - state.consumed_bytes
    }

    /// Permits the stream to send so many bytes more.
    pub fn grant(&self, bytes: u64) {
        self.0.state.borrow_mut().window += bytes;
        wake(&self.0.wakers);
    }

    /// Resets the stream.
    pub fn reset(&self) {
        self.0.state.borrow_mut().is_reset = true;
        wake(&self.0.wakers);
    }

    /// The final head, once it has come.
    pub async fn head(&self) -> String {
        poll_fn(|cx| {
            let state = self.0.state.borrow();
            if state.head.is_empty() {
                self.0.wait(cx);
                return Poll::Pending;
            }
            Poll::Ready(String::from_utf8_lossy(&state.head).into_owned())
        })
        .await
    }

    /// Interim heads that were received.
    #[must_use]
    pub fn interim(&self) -> String {
        String::from_utf8_lossy(&self.0.state.borrow().interim).into_owned()
    }

    /// Takes the content that has come, once there is some or the response has ended.
    pub async fn read(&self) -> (Vec<u8>, Option<DoubleEnd>) {
        poll_fn(|cx| {
            let mut state = self.0.state.borrow_mut();
            let end = match (state.ended, state.aborted) {
                (true, _) => Some(DoubleEnd::Whole),
                (_, true) => Some(DoubleEnd::Aborted),
                _ => None,
            };
            if state.unread.is_empty() && end.is_none() {
                self.0.wait(cx);
                return Poll::Pending;
            }
            let content = std::mem::take(&mut state.unread);
            state.read_bytes += content.len() as u64;
            drop(state);
            wake(&self.0.wakers);
            Poll::Ready((content, end))
        })
        .await
    }

    /// Takes all content up to the end, and says how it ended.
    pub async fn read_all(&self) -> (Vec<u8>, DoubleEnd) {
        let mut all = Vec::new();
        loop {
            let (content, end) = self.read().await;
            all.extend(content);
            if let Some(end) = end {
                return (all, end);
            }
        }
    }

    /// Content that has come and was not read.
    #[must_use]
    pub fn unread_bytes(&self) -> usize {
        self.0.state.borrow().unread.len()
    }

    pub(in crate::http) fn content(&self) -> DoubleContent {
        DoubleContent(Rc::clone(&self.0))
    }

    pub(in crate::http) fn response(&self) -> DoubleResponse {
        DoubleResponse(Rc::clone(&self.0), Vec::new())
    }
}

impl Stream {
    fn wait(&self, cx: &Context<'_>) {
        self.wakers.borrow_mut().push(cx.waker().clone());
    }
}

fn wake(wakers: &RefCell<Vec<Waker>>) {
    let woken = std::mem::take(&mut *wakers.borrow_mut());
    woken.into_iter().for_each(Waker::wake);
}

/// The content of a request on a stream of the double.
pub struct DoubleContent(Rc<Stream>);

impl DoubleContent {
    pub(in crate::http) fn length(&self) -> BodyLength {
        self.0.length
    }

    #[expect(
        clippy::unused_self,
        reason = "a frame of HTTP/2 cannot be framed wrongly within"
    )]
    pub(in crate::http) fn check_received(&self) -> Result<(), BodyError> {
        Ok(())
    }

    pub(in crate::http) fn poll_receive(
        &self,
        cx: &Context<'_>,
        _scratch: &mut [u8],
        into: &mut Vec<u8>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        let mut state = self.0.state.borrow_mut();
        state.content_begun = true;
        if state.is_reset {
            return Poll::Ready(Err(ContentError::Disconnected));
        }
        if state.request.is_empty() && !state.request_ended {
            self.0.wait(cx);
            return Poll::Pending;
        }
        let content = std::mem::take(&mut state.request);
        state.received_bytes += content.len() as u64;
        into.extend_from_slice(&content);
        Poll::Ready(Ok(if state.request_ended {
            ReceivedContent::Whole
        } else {
            ReceivedContent::More
        }))
    }

    pub(in crate::http) fn consumed(&self, bytes: usize) {
        self.0.state.borrow_mut().consumed_bytes += bytes as u64;
        wake(&self.0.wakers);
    }

    #[expect(clippy::unused_self, reason = "the double sends no trailers")]
    pub(in crate::http) fn trailers(&self) -> &[u8] {
        &[]
    }

    pub(in crate::http) fn is_begun(&self) -> bool {
        self.0.state.borrow().content_begun
    }

    pub(in crate::http) fn is_ended(&self) -> bool {
        let state = self.0.state.borrow();
        let is_none = matches!(self.0.length, BodyLength::None | BodyLength::Exact(0));
        is_none || state.request_ended && state.request.is_empty()
    }

    pub(in crate::http) fn read_bytes(&self) -> u64 {
        self.received_bytes()
    }

    pub(in crate::http) fn received_bytes(&self) -> u64 {
        self.0.state.borrow().received_bytes
    }

    pub(in crate::http) fn content_bytes(&self) -> u64 {
        self.received_bytes()
    }

    /// Relays both ways by copying, until either side ends or `drain` is ready.
    pub(in crate::http) async fn tunnel(
        &mut self,
        next_hop: &TcpStream,
        (head, surplus): (&[u8], &[u8]),
        drain: impl Future<Output = ()>,
    ) -> TunnelReport {
        let mut response = DoubleResponse(Rc::clone(&self.0), Vec::new());
        response.begin(head.to_vec(), ContentForm::Unsized);
        let mut first = surplus.to_vec();
        let (to_next_hop, to_client) = (Cell::new(0), Cell::new(0));
        let outbound = async {
            let mut content = Vec::new();
            loop {
                let received = poll_fn(|cx| self.poll_receive(cx, &mut [], &mut content)).await;
                let received = received.ok()?;
                let mut rest = &content[..];
                while !rest.is_empty() {
                    next_hop.writable().await.ok()?;
                    let count = match next_hop.try_write(rest) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                        written => written.ok()?,
                    };
                    rest = &rest[count..];
                    to_next_hop.set(to_next_hop.get() + count as u64);
                }
                self.consumed(content.len());
                content.clear();
                if received == ReceivedContent::Whole {
                    return Some(());
                }
            }
        };
        let inbound = async {
            let mut buffer = [0; 4096];
            poll_fn(|cx| response.poll_send(cx, &[], None)).await.ok()?;
            loop {
                while !first.is_empty() {
                    let sent = poll_fn(|cx| response.poll_send(cx, &[&first], None)).await;
                    first.drain(..sent.ok()?);
                }
                next_hop.readable().await.ok()?;
                let count = match next_hop.try_read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(_) => continue,
                };
                let mut rest = &buffer[..count];
                while !rest.is_empty() {
                    let sent = poll_fn(|cx| response.poll_send(cx, &[rest], None)).await;
                    rest = &rest[sent.ok()?..];
                }
                to_client.set(to_client.get() + count as u64);
            }
            poll_fn(|cx| response.poll_send(cx, &[], Some(&[])))
                .await
                .ok()
        };
        let end = tokio::select! {
            _ = async { tokio::join!(outbound, inbound) } => TunnelEnd::Closed,
            () = drain => TunnelEnd::Drained,
        };
        TunnelReport {
            // its response counts the head
            head_bytes: 0,
            to_client_bytes: to_client.get(),
            to_next_hop_bytes: to_next_hop.get(),
            end,
        }
    }
}

/// The way of a response on a stream of the double.
#[derive(Clone)]
pub struct DoubleResponse(Rc<Stream>, Vec<u8>);

impl DoubleResponse {
    pub(in crate::http) fn push_interim(&self, head: &[u8]) {
        self.0.state.borrow_mut().interim.extend_from_slice(head);
        wake(&self.0.wakers);
    }

    pub(in crate::http) fn begin(&mut self, head: Vec<u8>, _form: ContentForm) -> &[u8] {
        let mut state = self.0.state.borrow_mut();
        state.line.clone_from(&head);
        state.head_begun = true;
        self.1 = head;
        &self.1
    }

    pub(in crate::http) fn poll_send(
        &mut self,
        cx: &Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let stream = &self.0;
        let mut state = stream.state.borrow_mut();
        if state.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let mut has_moved = !state.line.is_empty();
        if has_moved {
            state.head = std::mem::take(&mut state.line);
            state.sent_bytes += state.head.len() as u64;
        }
        let offered = content.concat();
        let unsent = state
            .unsent_limit
            .map_or(usize::MAX, |limit| limit as usize);
        let window = state.window.min(stream.connection_window.get());
        let count = offered
            .len()
            .min(unsent)
            .min(usize::try_from(window).unwrap_or(usize::MAX));
        state.window -= count as u64;
        stream
            .connection_window
            .set(stream.connection_window.get() - count as u64);
        state.unread.extend_from_slice(&offered[..count]);
        state.sent_bytes += count as u64;
        if let (true, Some(trailers)) = (count == offered.len(), end) {
            state.trailers = trailers.to_vec();
            has_moved |= !state.ended;
            state.ended = true;
        }
        drop(state);
        if has_moved || count > 0 {
            wake(&stream.wakers);
        }
        if count == 0 && !offered.is_empty() {
            stream.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }

    pub(in crate::http) fn set_unsent_limit(&self, bytes: Option<u32>) {
        self.0.state.borrow_mut().unsent_limit = bytes;
    }

    #[expect(clippy::unused_self, reason = "the double has no round trip")]
    pub(in crate::http) fn round_trip_us(&self) -> Option<u32> {
        None
    }

    #[expect(clippy::unused_self, reason = "what is taken has left")]
    pub(in crate::http) fn unacknowledged_bytes(&self) -> Option<u32> {
        Some(0)
    }

    pub(in crate::http) fn has_queued(&self) -> bool {
        !self.0.state.borrow().line.is_empty()
    }

    pub(in crate::http) fn is_begun(&self) -> bool {
        self.0.state.borrow().head_begun
    }

    pub(in crate::http) fn is_complete(&self) -> bool {
        self.0.state.borrow().ended
    }

    pub(in crate::http) fn retract(&self) -> bool {
        let mut state = self.0.state.borrow_mut();
        let is_in_line = !state.line.is_empty();
        if is_in_line {
            state.line.clear();
            state.head_begun = false;
        }
        is_in_line
    }

    pub(in crate::http) fn abort(&self) {
        let mut state = self.0.state.borrow_mut();
        state.aborted = !state.ended;
        drop(state);
        wake(&self.0.wakers);
    }

    pub(in crate::http) fn sent_bytes(&self) -> u64 {
        self.0.state.borrow().sent_bytes
    }

    pub(in crate::http) fn poll_disconnect(&self, cx: &Context<'_>) -> Poll<()> {
        if self.0.state.borrow().is_reset {
            return Poll::Ready(());
        }
        self.0.wait(cx);
        Poll::Pending
    }
}
