//! The response to a request on a stream of HTTP/2.

use super::head;
use super::piece::{Offer, Piece, STREAM_BYTES_MAX};
use super::shared::{HeadPlace, Shared};
use super::stream_capacity::{
    Stop, Turn, WindowWait, copied, io_error, poll_queue_room, poll_wider,
};
use super::websocket;
use crate::http::content_form::ContentForm;
use crate::workers::ResetBudget;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use weir_semantics::Urgency;

/// A wait that another timer of the same limit has ended may be shorter than that by as much.
const TIMER_SLACK: Duration = Duration::from_millis(50);

/// Notices that the client of a stream has disconnected.
#[derive(Clone)]
pub struct Http2Disconnect(Rc<RefCell<SendHalf>>);

impl Http2Disconnect {
    /// Ready when the client has reset the stream, or the connection has ended.
    pub(in crate::http) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_gone(cx)
    }
}

/// The sending half of a stream.
enum SendHalf {
    /// No final head was sent.
    HeadPending(SendResponse<Piece>),
    /// A final head was sent, and content may follow.
    Streaming(SendStream<Piece>),
    /// The response was sent whole.
    Ended,
    /// It was not, and the stream was reset.
    Reset,
}

impl SendHalf {
    /// Ready when the client has reset the stream, or the connection has ended.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::HeadPending(response) => response.poll_reset(cx).map(drop),
            Self::Streaming(stream) => stream.poll_reset(cx).map(drop),
            Self::Ended | Self::Reset => Poll::Pending,
        }
    }

    /// Whether the client has reset the stream, or `h2` has for an error of it; or the connection
    /// ends with an error, which `h2` does not tell from that ([`Shared::has_failed`]).
    fn is_reset_by_client(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        let polled = match self {
            Self::HeadPending(response) => response.poll_reset(cx),
            Self::Streaming(stream) => stream.poll_reset(cx),
            Self::Ended | Self::Reset => return false,
        };
        matches!(polled, Poll::Ready(Ok(_)))
    }

    fn reset(&mut self, reason: Reason) {
        match self {
            Self::HeadPending(response) => response.send_reset(reason),
            Self::Streaming(stream) => stream.send_reset(reason),
            Self::Ended | Self::Reset => return,
        }
        *self = Self::Reset;
    }
}

/// Sends the response to one request on a stream of HTTP/2. It is part of each request under way:
/// what most of them do not have is boxed.
pub(crate) struct Http2Response {
    half: Rc<RefCell<SendHalf>>,
    /// What the streams of its connection share, with the place of the request's head among theirs.
    shared: HeadPlace,
    /// Heads of interim responses that are not sent, if there are any.
    #[expect(clippy::box_collection, reason = "one response in thousands has some")]
    interim: Option<Box<Vec<Vec<u8>>>>,
    /// The final head as HTTP/1.1 has it, until it is sent.
    head: Vec<u8>,
    form: ContentForm,
    /// The final head is not sent.
    is_queued: bool,
    is_begun: bool,
    is_complete: bool,
    urgency: Urgency,
    /// Bytes of content that wait for the socket.
    queued: Rc<Cell<usize>>,
    unsent_limit: Option<u32>,
    sent_bytes: u64,
    stop: Option<Box<Stop>>,
    wait: Option<Box<WindowWait>>,
    /// The window of its stream has permitted more than a little.
    has_wide_window: bool,
    tunnel: Tunnel,
    /// The client that a reset counts for, beside the connection.
    client: Option<Box<ResetBudget>>,
}

/// Whether the stream becomes one of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tunnel {
    /// Its request is for none, or for one to a host.
    Other,
    /// Its request opens a WebSocket: until then, no answer may look as if there were one.
    Requested,
    /// It is one.
    Open,
}

impl Http2Response {
    pub(super) fn new(response: SendResponse<Piece>, shared: HeadPlace) -> Self {
        Self {
            half: Rc::new(RefCell::new(SendHalf::HeadPending(response))),
            shared,
            interim: None,
            head: Vec::new(),
            form: ContentForm::Sized,
            is_queued: false,
            is_begun: false,
            is_complete: false,
            urgency: Urgency::default(),
            queued: Rc::default(),
            unsent_limit: None,
            sent_bytes: 0,
            stop: None,
            wait: None,
            has_wide_window: false,
            tunnel: Tunnel::Other,
            client: None,
        }
    }

    /// Its request opens a WebSocket: a 2xx says that it is open (RFC 8441 §5).
    pub(super) fn opens_websocket(&mut self) {
        self.tunnel = Tunnel::Requested;
    }

    /// The head that begins a tunnel, complete, of one that is `received`.
    pub(super) fn become_tunnel(&mut self, received: &[u8]) -> Vec<u8> {
        match self.tunnel {
            Tunnel::Other => received.to_vec(),
            Tunnel::Requested | Tunnel::Open => {
                self.tunnel = Tunnel::Open;
                websocket::established(received)
            }
        }
    }

    /// A reset of the stream counts for `client`, too.
    pub(super) fn count_resets_for(&mut self, client: ResetBudget) {
        self.client = Some(Box::new(client));
    }

    /// What the streams of its connection share.
    pub(super) fn shared(&self) -> Rc<Shared> {
        self.shared.connection()
    }

    /// How urgent its client finds it.
    pub(super) fn set_urgency(&mut self, urgency: Urgency) {
        self.urgency = urgency;
    }

    /// Whether its content waits for that of others, which are more urgent, or for the socket: the
    /// connection sees whether the client takes anything. What was handed over may wait for its
    /// window once the client has made that narrower: then it is not known.
    pub(crate) fn is_held_back(&self) -> bool {
        let Shared {
            queue,
            window_turns: turns,
            ..
        } = &*self.shared;
        queue.is_behind(self.urgency)
            || turns.is_behind(self.urgency)
            || (self.queued.get() > 0 && !turns.is_ignored())
    }

    pub(crate) fn disconnect(&self) -> Http2Disconnect {
        Http2Disconnect(Rc::clone(&self.half))
    }

    pub(crate) fn push_interim(&mut self, head: &[u8]) {
        let mut text = head.to_vec();
        if !text.ends_with(b"\r\n\r\n") {
            text.extend_from_slice(b"\r\n");
        }
        self.interim.get_or_insert_default().push(text);
    }

    pub(crate) fn begin(&mut self, head: Vec<u8>, form: ContentForm) -> &[u8] {
        self.head = head;
        self.head.extend_from_slice(b"\r\n");
        self.form = form;
        (self.is_begun, self.is_queued) = (true, true);
        &self.head
    }

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let offered: usize = content.iter().map(|piece| piece.len()).sum();
        if self.interim.is_some() || self.is_queued {
            ready!(self.shared.poll_room_for_heads(cx));
        }
        self.send_interim()?;
        if self.is_queued {
            let is_last = offered == 0 && end.is_some_and(<[u8]>::is_empty);
            self.send_head(is_last || self.form == ContentForm::None)?;
        }
        if self.has_ended() {
            self.is_complete |= self.is_begun && end.is_some();
            return Poll::Ready(Ok(offered));
        }
        let count = match offered {
            0 => 0,
            offered => ready!(self.poll_room(cx, offered))?,
        };
        let end = end.filter(|_| count == offered);
        let ends = end.is_some_and(<[u8]>::is_empty);
        if count > 0 || ends {
            self.send_content(content, count, ends)?;
        }
        match end {
            Some(trailers) if !trailers.is_empty() => self.send_trailers(trailers)?,
            _ => {}
        }
        self.is_complete |= end.is_some();
        Poll::Ready(Ok(count))
    }

    fn has_ended(&self) -> bool {
        matches!(*self.half.borrow(), SendHalf::Ended)
    }

    fn send_interim(&mut self) -> io::Result<()> {
        for text in self.interim.take().into_iter().flat_map(|all| *all) {
            let SendHalf::HeadPending(sender) = &mut *self.half.borrow_mut() else {
                return Ok(());
            };
            // one that HTTP/2 does not have (101) is left out: they are optional
            let text = Bytes::from(text);
            let interim = head::response(&text).map(|(response, _)| response);
            if let Some(response) = interim.filter(|it| it.status() != 101) {
                sender.send_informational(response).map_err(io_error)?;
                self.shared.note_sent_head(text.len());
                self.sent_bytes += text.len() as u64;
            }
        }
        Ok(())
    }

    fn send_head(&mut self, is_last: bool) -> io::Result<()> {
        // of its length alone, as its values may be held for longer; a response whose client stops
        // holds no head
        let head = std::mem::take(&mut self.head).into_boxed_slice();
        let read = head::response(&head.into());
        self.send_final(read, |_| is_last)?;
        self.is_queued = false;
        Ok(())
    }

    /// Sends the final head that was `read` with its length, if there was one; `is_last` says
    /// whether nothing follows one of that length. Returns the length.
    pub(super) fn send_final(
        &mut self,
        read: Option<(Response<()>, usize)>,
        is_last: impl FnOnce(usize) -> bool,
    ) -> io::Result<usize> {
        let half = &mut *self.half.borrow_mut();
        let SendHalf::HeadPending(sender) = half else {
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        let Some((response, length)) = read else {
            half.reset(Reason::INTERNAL_ERROR);
            return Err(io::Error::other("a head that HTTP/2 does not have"));
        };
        if self.tunnel == Tunnel::Requested && response.status().is_success() {
            half.reset(Reason::CONNECT_ERROR);
            return Err(io::Error::other(
                "content would be taken for that of a WebSocket",
            ));
        }
        let is_last = is_last(length);
        let stream = sender.send_response(response, is_last).map_err(io_error)?;
        *half = match is_last {
            true => SendHalf::Ended,
            false => SendHalf::Streaming(stream),
        };
        self.shared.note_sent_head(length);
        self.sent_bytes += length as u64;
        Ok(length)
    }

    /// How many of `offered` bytes can be sent.
    pub(super) fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        offered: usize,
    ) -> Poll<io::Result<usize>> {
        let half = &mut *self.half.borrow_mut();
        let SendHalf::Streaming(stream) = half else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        let limit = self.unsent_limit.map_or(STREAM_BYTES_MAX, |limit| {
            usize::try_from(limit).map_or(STREAM_BYTES_MAX, |limit| limit.min(STREAM_BYTES_MAX))
        });
        let stream_offer = Offer {
            urgency: self.urgency,
            stream: &self.queued,
            limit: limit.max(1),
        };
        let queue = &self.shared.queue;
        let room = ready!(poll_queue_room(queue, cx, stream, offered, stream_offer))?;
        let turn = Turn {
            turns: &self.shared.window_turns,
            urgency: self.urgency,
            stream: &self.queued,
        };
        let count = loop {
            if let Some(wait) = &mut self.wait {
                wait.release(turn.turns);
            }
            let Poll::Ready(count) = turn.poll(cx, stream, room) else {
                let limit = self.shared.window_closed;
                ready!(Stop::poll_passed(&mut self.stop, cx, turn, limit));
                self.stop = None;
                turn.turns.leave(&self.queued);
                half.reset(Reason::CANCEL);
                self.shared.note_stall();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            };
            let count = count?;
            if !WindowWait::is_short(count, room) {
                self.has_wide_window |= WindowWait::is_wide(count);
                break count;
            }
            let Some(wait) = &mut self.wait else {
                // of a window that was wide the client has what it is to open it for
                if !self.has_wide_window && self.shared.may_send_short() {
                    break count;
                }
                self.wait = Some(WindowWait::begin(self.has_wide_window));
                continue;
            };
            let may_send_short = || self.shared.may_send_short();
            if wait.poll_passed(cx, may_send_short).is_ready() {
                break count;
            }
            wait.hold(cx, stream, (turn, count));
            ready!(poll_wider(cx, stream))?;
        };
        if self.wait.take().is_some() {
            self.shared.note_gathered(count);
        }
        let stop = &mut self.stop;
        stop.take_if(|stop| stop.is_over(count, offered));
        Poll::Ready(Ok(count))
    }

    /// Sends the first `count` bytes of `content`.
    fn send_content(&mut self, content: &[&[u8]], count: usize, ends: bool) -> io::Result<()> {
        self.send_piece(copied(content, count), ends)
    }

    /// Sends content for which there is room.
    pub(super) fn send_piece(&mut self, bytes: Bytes, ends: bool) -> io::Result<()> {
        let count = bytes.len() as u64;
        let half = &mut *self.half.borrow_mut();
        let SendHalf::Streaming(stream) = half else {
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        let piece = Piece::new(bytes, &self.shared.queue, (self.urgency, &self.queued));
        stream.send_data(piece, ends).map_err(io_error)?;
        self.shared.window_turns.leave(&self.queued);
        if ends {
            *half = SendHalf::Ended;
        }
        self.sent_bytes += count;
        Ok(())
    }

    fn send_trailers(&mut self, section: &[u8]) -> io::Result<()> {
        let half = &mut *self.half.borrow_mut();
        let SendHalf::Streaming(stream) = half else {
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        let fields = head::trailer_fields(section).unwrap_or_default();
        stream.send_trailers(fields).map_err(io_error)?;
        self.shared.note_sent_head(section.len());
        *half = SendHalf::Ended;
        self.sent_bytes += section.len() as u64;
        Ok(())
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        self.shared.socket.tcp()
    }

    pub(crate) fn set_unsent_limit(&mut self, bytes: Option<u32>) {
        self.unsent_limit = bytes;
    }

    pub(crate) fn round_trip_us(&self) -> Option<u32> {
        self.shared.round_trip_us()
    }

    /// Of what the kernel has of all streams, no more than this one has sent; and what waits for
    /// the socket.
    pub(crate) fn unacknowledged_bytes(&self) -> Option<u32> {
        let of_all = self.shared.unacknowledged_bytes()?;
        let sent = u32::try_from(self.sent_bytes).unwrap_or(u32::MAX);
        let queued = u32::try_from(self.queued.get()).unwrap_or(u32::MAX);
        Some(
            of_all
                .min(sent.saturating_sub(queued))
                .saturating_add(queued),
        )
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.is_queued || self.interim.is_some()
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// All of it was sent.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn retract(&mut self) -> bool {
        let is_in_line = self.is_queued;
        if is_in_line {
            self.head.clear();
            (self.is_begun, self.is_queued) = (false, false);
        }
        is_in_line
    }

    pub(crate) fn abort(&mut self) {
        self.reset(Reason::INTERNAL_ERROR);
    }

    /// Ends a response that is not whole, for this reason.
    pub(super) fn reset(&mut self, reason: Reason) {
        if self.is_complete {
            return;
        }
        let limit = self.shared.window_closed.saturating_sub(TIMER_SLACK);
        let stop = self.stop.take();
        if stop.is_some_and(|stop| stop.elapsed() >= limit) {
            self.shared.note_stall();
        }
        let mut half = self.half.borrow_mut();
        if let Some(client) = self.client.take_if(|_| half.is_reset_by_client()) {
            self.shared.note_reset_for(&client);
        }
        half.reset(reason);
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// What else was sent is not of the response.
    pub(super) fn set_sent_bytes(&mut self, bytes: u64) {
        self.sent_bytes = bytes;
    }

    /// Bytes that it holds memory for of its final head.
    #[cfg(test)]
    pub(super) fn head_bytes(&self) -> usize {
        self.head.capacity()
    }
}

impl Drop for Http2Response {
    /// A response that is not whole must not look whole, however it ends.
    fn drop(&mut self) {
        self.abort();
        self.shared.queue.forget(&self.queued);
        let turns = &self.shared.window_turns;
        if let Some(wait) = &mut self.wait {
            wait.release(turns);
        }
        turns.leave(&self.queued);
    }
}
