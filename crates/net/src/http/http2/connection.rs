//! A connection of HTTP/2, and the requests that come on it.

use super::content::Http2Content;
use super::head::{self, Http2Form, Malformed};
use super::piece::Piece;
use super::response::Http2Response;
use super::shared::{
    CONNECTION_WINDOW, HeadPlace, Http2Flood, ReceiveWindow, STREAM_WINDOW, Shared,
};
use super::transport::{READ_BYTES_MAX, Transport};
use super::{FRAME_BYTES_MAX, SEND_BYTES_MAX};
use crate::client::ClientSocket;
use crate::workers::{ResetBudget, WindowGrant};
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use weir_policy::connections::{Flood, FrameBudget};
use weir_policy::{Now, Tick};
use weir_semantics::{NamedFields, Urgency};
use weir_wire::{BodyLength, HeadLimits};

/// A window is no wider (RFC 9113 §6.9.1).
const WINDOW_MAX: u32 = 0x7fff_ffff;

/// Streams that `h2` may reset for errors of the client, in all: more than [`FrameBudget`] permits
/// at once, which has MadeYouReset (CVE-2025-8671) and sees a reset once it is sent.
const ERROR_RESETS_MAX: usize = 1000;

/// Streams that the client may reset before they are looked at, at once: Rapid Reset
/// (CVE-2023-44487). More than come in one read, behind which they are looked at: so it is
/// [`FrameBudget`] that says when there are too many, and why the connection ends.
const PENDING_RESETS_MAX: usize = 512;

/// The least that [`Http2Rules::data_frame_budget`] is, bytes: 1860 frames of a byte, for which
/// `h2` holds 440 KiB, or a stream's window of 64 KiB full of frames of 32 bytes.
const DATA_FRAME_BUDGET: usize = 464 * 1024;

/// Bytes of the shortest HEADERS frame, and of RST_STREAM behind it.
const RESET_REQUEST_BYTES: usize = 9 + 13;

const _: () = assert!(READ_BYTES_MAX / RESET_REQUEST_BYTES < PENDING_RESETS_MAX);

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Http2Rules {
    /// In which form the targets of requests are written.
    pub form: Http2Form,
    /// Requests under way at once.
    pub streams_max: u32,
    /// Bytes of a decoded head, with 32 for each field (RFC 7541 §4.1).
    pub head_bytes_max: u32,
    /// How long a stream may be stopped by its window.
    pub window_closed: Duration,
    /// Clients that share the connection, at most: it has the budgets of all of them.
    pub clients: u32,
    /// Its requests say which client they are for: the caller is to have resets count for that one,
    /// too.
    pub names_clients: bool,
}

impl Http2Rules {
    /// The windows of all streams, bytes.
    fn stream_windows(&self) -> u32 {
        let all = self.streams_max.saturating_mul(STREAM_WINDOW);
        all.min(WINDOW_MAX)
    }

    /// What DATA frames that wait may lack to 256 bytes, all of a connection together: `h2` holds
    /// a place for each. A stream that stands still may have its window full of short messages, of
    /// gRPC or a WebSocket.
    fn data_frame_budget(&self) -> usize {
        (self.connection_window() as usize / 2).max(DATA_FRAME_BUDGET)
    }

    /// The window of the connection at first, bytes. On that of a proxy those that one client has
    /// stopped stop no other's, whatever room there is: it is as wide as those of all streams.
    fn connection_window(&self) -> u32 {
        match self.names_clients {
            true => self.stream_windows(),
            false => CONNECTION_WINDOW,
        }
    }
}

/// What became of a connection or its requests without that they were given to the caller; counts
/// since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Notices {
    /// Requests that were malformed.
    pub malformed: u64,
    /// Requests that were refused, as too many heads were under way.
    pub heads: u64,
    /// Responses that were ended as their window stayed closed.
    pub stalled: u64,
    /// Requests whose streams were reset before they were given to the caller, by the client or
    /// for an error of it.
    pub abandoned: u64,
}

/// How much of what is to be sent was taken, by this kernel and by that of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2SendProgress {
    left_bytes: u64,
    buffered_bytes: usize,
    unacknowledged_bytes: Option<u32>,
}

/// What a connection has next.
pub enum Http2Accepted {
    /// A request: its head as HTTP/1.1 has it, and its stream.
    Request(Vec<u8>, Http2Stream),
    /// The head of a request that was reset before, of a connection whose requests name clients.
    Abandoned(Vec<u8>),
    /// The end of the connection: nothing more can be sent or received.
    End,
}

/// A stream, whose request head was received.
pub struct Http2Stream {
    content: RecvStream,
    response: SendResponse<Piece>,
    place: HeadPlace,
    /// How urgent its client finds the response.
    urgency: Urgency,
    /// It is to become a WebSocket (RFC 8441).
    opens_websocket: bool,
    /// The client that a reset counts for, beside the connection.
    client: Option<ResetBudget>,
}

impl Http2Stream {
    /// Refuses the request: nothing was done with it, and it may be sent again (RFC 9113 §8.7).
    pub fn refuse(mut self) {
        self.response.send_reset(Reason::REFUSED_STREAM);
    }

    /// Refuses the request: too many streams were reset.
    pub fn refuse_calmly(mut self) {
        self.response.send_reset(Reason::ENHANCE_YOUR_CALM);
    }

    /// Whether the stream was reset: by the client, or for an error of it.
    pub fn is_reset(&mut self) -> bool {
        is_reset(&mut self.response)
    }

    /// A reset of the stream counts for `client`, too: its connection has requests of several.
    pub fn count_resets_for(&mut self, client: ResetBudget) {
        self.client = Some(client);
    }

    /// Drops a request whose stream was reset, which counts.
    pub fn abandon(self) {
        drop(self.into_parts());
    }

    /// The halves of the stream.
    pub(in crate::http) fn split(
        self,
        length: BodyLength,
        trailers: (HeadLimits, NamedFields),
    ) -> (Http2Content, Http2Response) {
        let client = self.client.clone();
        let (content, response) = self.into_parts();
        let shared = (response.shared(), client);
        (
            Http2Content::new(content, length, trailers, shared),
            response,
        )
    }

    /// The content as `h2` has it, and the response.
    pub(super) fn into_parts(self) -> (RecvStream, Http2Response) {
        let mut response = Http2Response::new(self.response, self.place);
        response.set_urgency(self.urgency);
        if self.opens_websocket {
            response.opens_websocket();
        }
        if let Some(client) = self.client {
            response.count_resets_for(client);
        }
        (self.content, response)
    }
}

/// A connection of HTTP/2 from a client. It moves while it is polled, and so do its streams.
pub struct Http2Connection {
    state: State,
    shared: Rc<Shared>,
    form: Http2Form,
    names_clients: bool,
    notices: Http2Notices,
    /// The client has begun as HTTP/2 has it.
    was_open: bool,
    /// GOAWAY was sent, with an error.
    is_abrupt: bool,
    /// GOAWAY was sent.
    has_sent_goaway: bool,
}

enum State {
    Handshake(Handshake<Transport, Piece>),
    Open(Connection<Transport, Piece>),
    Ended,
}

impl Http2Connection {
    /// A connection that is to begin with the preface (RFC 9113 §3.4). `first` was read from it.
    /// `client` is what its client has left of resets, on all of its connections, if it is one, and
    /// `room` what its window may become wider by.
    #[must_use]
    pub fn new(
        (socket, first): (ClientSocket, Vec<u8>),
        rules: Http2Rules,
        (client, room): (Option<ResetBudget>, WindowGrant),
        now: Now,
    ) -> Self {
        let budget = FrameBudget::of_clients(now.tick, rules.clients);
        let counts = (budget, client);
        let window = ReceiveWindow::new(rules.connection_window(), rules.stream_windows(), room);
        let windows = (window, rules.window_closed);
        let shared = Shared::new(socket, windows, counts, now.tick);
        let shared = Rc::new(shared);
        let transport = Transport::new(Rc::clone(&shared), first);
        let clients = usize::try_from(rules.clients).unwrap_or(usize::MAX);
        let handshake = Builder::new()
            .max_concurrent_streams(rules.streams_max)
            .max_header_list_size(rules.head_bytes_max)
            .max_frame_size(FRAME_BYTES_MAX)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(rules.connection_window())
            .data_frame_budget(rules.data_frame_budget())
            .max_local_error_reset_streams(Some(ERROR_RESETS_MAX.saturating_mul(clients)))
            .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
            .max_send_buffer_size(SEND_BYTES_MAX)
            .enable_connect_protocol()
            .handshake(transport);
        Self {
            state: State::Handshake(handshake),
            shared,
            form: rules.form,
            names_clients: rules.names_clients,
            notices: Http2Notices::default(),
            was_open: false,
            is_abrupt: false,
            has_sent_goaway: false,
        }
    }

    /// Moves the connection and its streams; ready with a request, one that was reset, or its end.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>, now: Tick) -> Poll<Http2Accepted> {
        self.shared.set_now(now);
        loop {
            let accepted = self.poll_next(cx);
            let is_request = matches!(
                accepted,
                Poll::Ready(Http2Accepted::Request(..) | Http2Accepted::Abandoned(_))
            );
            if is_request {
                return accepted;
            }
            // `h2` has no more frames at the moment: what it has given is sent together
            if let Poll::Ready(Err(_)) = self.shared.poll_sent(cx) {
                self.shared.send_buffer.borrow_mut().clear();
                self.cut();
                return Poll::Ready(Http2Accepted::End);
            }
            if accepted.is_ready() || !self.shared.resumes_reading() {
                return accepted;
            }
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Http2Accepted> {
        loop {
            match &mut self.state {
                State::Handshake(handshake) => {
                    let opened = ready!(Pin::new(handshake).poll(cx));
                    self.was_open = opened.is_ok();
                    self.state = opened.map_or(State::Ended, State::Open);
                }
                State::Open(connection) => {
                    if !self.is_abrupt && self.shared.flood().is_some() {
                        self.is_abrupt = true;
                        self.shared.set_failed();
                        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    }
                    if let Some(bytes) = self.shared.receive_window.widened(cx) {
                        connection.set_target_window_size(bytes);
                    }
                    match connection.poll_accept(cx) {
                        Poll::Ready(Some(Ok((request, mut response)))) => {
                            let stream = response.stream_id().as_u32();
                            self.shared
                                .note_field_lines(stream, request.headers().len());
                            // `h2` gives what it was given: the reset may be there, too
                            if self.shared.flood().is_some() || is_reset(&mut response) {
                                self.notices.abandoned += 1;
                                if let Some(abandoned) = self.abandoned(request) {
                                    return Poll::Ready(abandoned);
                                }
                            } else if let Some(accepted) = self.take(request, response) {
                                return Poll::Ready(accepted);
                            }
                        }
                        Poll::Ready(Some(Err(error))) => {
                            // too many CONTINUATION frames of one head, or DATA with little in it
                            if error.is_library()
                                && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)
                            {
                                self.shared.set_flood(Flood::Control);
                            }
                            self.state = State::Ended;
                        }
                        Poll::Ready(None) => self.state = State::Ended,
                        Poll::Pending => {
                            self.shared.note_other_heads();
                            let is_flooded = !self.is_abrupt && self.shared.flood().is_some();
                            if !self.shared.took_heads() && !is_flooded {
                                return Poll::Pending;
                            }
                        }
                    }
                }
                State::Ended => {
                    self.shared.end_sending();
                    return Poll::Ready(Http2Accepted::End);
                }
            }
        }
    }

    /// The head of a request that was reset, if that counts for the client which it names. Of one
    /// that is malformed it is not known; what ends with the connection counts for none.
    fn abandoned(&self, request: Request<RecvStream>) -> Option<Http2Accepted> {
        if !self.names_clients || self.shared.has_failed() {
            return None;
        }
        let (parts, content) = request.into_parts();
        let head = head::request_head(&parts, self.form, content.is_end_stream());
        head.ok().map(Http2Accepted::Abandoned)
    }

    /// Takes a request, unless that is refused here.
    fn take(
        &mut self,
        request: Request<RecvStream>,
        mut response: SendResponse<Piece>,
    ) -> Option<Http2Accepted> {
        let (parts, content) = request.into_parts();
        let ends = content.is_end_stream();
        let (reason, count) = match head::request_head(&parts, self.form, ends) {
            Ok(head) => match HeadPlace::take(&self.shared, head.len()) {
                Some(place) => {
                    let urgency = parts.headers.get("priority");
                    let urgency = urgency.map(|value| Urgency::of(value.as_bytes()));
                    let stream = Http2Stream {
                        client: None,
                        urgency: urgency.unwrap_or_default(),
                        opens_websocket: head::opens_websocket(&parts) == Ok(true),
                        content,
                        response,
                        place,
                    };
                    return Some(Http2Accepted::Request(head, stream));
                }
                None => (Reason::REFUSED_STREAM, &mut self.notices.heads),
            },
            Err(Malformed::Protocol) => {
                let mut answer = Response::new(());
                *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
                self.shared.note_refused();
                // what the client sends meanwhile is dropped with the stream
                let _ = response.send_response(answer, true);
                self.notices.malformed += 1;
                return None;
            }
            Err(_) => (Reason::PROTOCOL_ERROR, &mut self.notices.malformed),
        };
        *count += 1;
        response.send_reset(reason);
        None
    }

    /// Whether the client has begun as HTTP/2 has it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether the client has begun so, and the connection may have ended since.
    #[must_use]
    pub const fn was_open(&self) -> bool {
        self.was_open
    }

    /// Ends the connection and its streams at once.
    pub fn cut(&mut self) {
        self.state = State::Ended;
        self.shared.end_sending();
    }

    /// Whether the head of a request has begun and is not whole.
    #[must_use]
    pub fn is_in_head(&self) -> bool {
        self.shared.is_in_head()
    }

    /// What the client has sent, or brought about, too much of: the connection ends for it.
    #[must_use]
    pub fn flood(&self) -> Option<Http2Flood> {
        self.shared.flood()
    }

    /// Whether a stream was reset though its client may have none reset any more: the connection is
    /// to be closed, and its requests may end.
    #[must_use]
    pub fn has_unpaid_resets(&self) -> bool {
        self.shared.has_unpaid_resets()
    }

    /// What became of requests that were not given to the caller, since the last call.
    pub fn take_notices(&mut self) -> Http2Notices {
        Http2Notices {
            stalled: self.shared.take_stalls(),
            ..std::mem::take(&mut self.notices)
        }
    }

    /// Bytes of content that were written, or dropped with their streams, since the connection
    /// began.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.shared.queue.left_bytes()
    }

    /// Whether frames or content wait for the socket.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.shared.queue.has_waiting() || self.shared.send_buffer.borrow().len() > 0
    }

    /// How far the socket is with what waits for it; takes a call of the kernel.
    #[must_use]
    pub fn send_progress(&self) -> Http2SendProgress {
        Http2SendProgress {
            left_bytes: self.left_bytes(),
            buffered_bytes: self.shared.send_buffer.borrow().len(),
            unacknowledged_bytes: self.shared.unacknowledged_bytes(),
        }
    }

    /// Takes no further requests, finishes those that are under way, and ends (RFC 9113 §6.8).
    pub fn close(&mut self) {
        match &mut self.state {
            State::Open(connection) if !self.has_sent_goaway => {
                self.has_sent_goaway = true;
                connection.graceful_shutdown();
            }
            State::Handshake(_) => self.state = State::Ended,
            _ => {}
        }
    }

    /// Ends with an error, with what is under way.
    pub fn break_off(&mut self) {
        match &mut self.state {
            State::Open(connection) if !self.is_abrupt => {
                self.is_abrupt = true;
                self.shared.set_failed();
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            State::Handshake(_) => self.state = State::Ended,
            _ => {}
        }
    }

    /// Reads and drops once, of a connection that has ended; 0 at its end.
    pub fn poll_discard(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) -> Poll<usize> {
        if let Poll::Ready(Err(_)) = self.shared.poll_sent(cx) {
            return Poll::Ready(0);
        }
        let read = self.shared.socket.poll_receive(cx, scratch);
        read.map(|read| read.unwrap_or(0))
    }
}

/// Whether a stream without a response was reset.
fn is_reset(response: &mut SendResponse<Piece>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(response.poll_reset(&mut context), Poll::Ready(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::content_form::ContentForm;
    use crate::http::http2::{FurtherContent, HTTP2_PREFACE, Http2Answer};
    use crate::http::received_content::ContentError;
    use bytes::Bytes;
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use weir_policy::connections::ClientResets;
    use weir_policy::destination::ClientNetwork;
    use weir_semantics::{Scheme, Timestamp};

    const RULES: Http2Rules = Http2Rules {
        form: Http2Form::Origin(Scheme::Http),
        streams_max: 100,
        head_bytes_max: 64 * 1024,
        window_closed: Duration::from_mins(1),
        clients: 100,
        names_clients: true,
    };

    const NOW: Now = Now {
        wall: Timestamp(0),
        tick: Tick(0),
    };

    /// SETTINGS with windows of no bytes.
    const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";

    /// A request on stream 1 of a client that may have one stream reset.
    struct NamedClient {
        socket: TcpStream,
        connection: Http2Connection,
        stream: Http2Stream,
        client: ClientNetwork,
        clients: Rc<RefCell<ClientResets>>,
    }

    impl NamedClient {
        /// What it sends behind its settings begins with the head of a request.
        async fn send(frames: &[u8]) -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut socket = TcpStream::connect(address).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            let bytes = [HTTP2_PREFACE, SETTINGS, frames].concat();
            socket.write_all(&bytes).await.unwrap();
            let client = ClientNetwork::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
            let mut full = ClientResets::default();
            let most = (0..).take_while(|_| full.note(NOW.tick, client)).count();
            let mut resets = ClientResets::default();
            for _ in 1..most {
                assert!(resets.note(NOW.tick, client));
            }
            let accepted = (ClientSocket::Clear(accepted), Vec::new());
            let mut connection = Http2Connection::new(accepted, RULES, Default::default(), NOW);
            let accepted = poll_fn(|cx| connection.poll_accept(cx, NOW.tick)).await;
            let Http2Accepted::Request(_, stream) = accepted else {
                panic!("no request");
            };
            Self {
                socket,
                connection,
                stream,
                client,
                clients: Rc::new(RefCell::new(resets)),
            }
        }
    }

    #[tokio::test]
    async fn malformed_trailers_count_for_the_client_that_a_proxy_names() {
        // a POST, and trailers with outer white space (RFC 9113 §8.2.1)
        let mut named = NamedClient::send(
            b"\0\0\x0b\x01\x04\0\0\0\x01\x83\x86\x84\x01\x06a.test\
            \0\0\x09\x01\x05\0\0\0\x01\0\x03x-a\x03 b ",
        )
        .await;
        let resets = ResetBudget::new(named.client, &named.clients);
        named.stream.count_resets_for(resets);
        let limits = (HeadLimits::default(), NamedFields::NONE);
        let (mut content, response) = named.stream.split(BodyLength::Chunked, limits);
        let received = poll_fn(|cx| {
            let _ = named.connection.poll_accept(cx, NOW.tick);
            content.poll_receive(cx, &mut [], &mut Vec::new())
        });
        assert!(matches!(received.await, Err(ContentError::Disconnected)));
        let is_exhausted = named.clients.borrow().is_exhausted(NOW.tick, named.client);
        assert!(is_exhausted);
        drop((content, response, named.socket));
    }

    #[tokio::test]
    async fn all_heads_that_come_together_are_taken_in_their_order() {
        let ids = (1..200_u32).step_by(2);
        let get = |id: u32| {
            let head = b"\x82\x86\x84\x01\x06a.test";
            [b"\0\0\x0b\x01\x05", &id.to_be_bytes()[..], head].concat()
        };
        let frames: Vec<u8> = ids.clone().flat_map(get).collect();
        let mut named = NamedClient::send(&frames).await;
        let mut streams = vec![named.stream];
        while streams.len() < ids.len() {
            let accepted = poll_fn(|cx| named.connection.poll_accept(cx, NOW.tick)).await;
            let Http2Accepted::Request(_, stream) = accepted else {
                panic!("{} requests", streams.len());
            };
            streams.push(stream);
        }
        let taken = streams.iter().map(|it| it.response.stream_id().as_u32());
        assert!(taken.eq(ids));
        drop((streams, named.socket));
    }

    #[tokio::test]
    async fn head_that_was_sent_is_not_held() {
        let get = b"\0\0\x0b\x01\x05\0\0\0\x01\x82\x86\x84\x01\x06a.test";
        let named = NamedClient::send(get).await;
        let limits = (HeadLimits::default(), NamedFields::NONE);
        let (content, mut response) = named.stream.split(BodyLength::None, limits);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n".to_vec();
        response.begin(head, ContentForm::Sized);
        assert!(response.head_bytes() > 0);
        let sent = poll_fn(|cx| Poll::Ready(response.poll_send(cx, &[b"a"], Some(&[]))));
        assert!(sent.await.is_pending(), "its window is closed");
        assert_eq!(response.head_bytes(), 0);
        drop((content, response, named.socket, named.connection));
    }

    /// The content of an answer that has all of it in its text.
    enum Never {}

    impl FurtherContent for Never {
        fn bytes_at(&self, _: u64) -> &[u8] {
            match *self {}
        }

        fn share(&self, _: u64, _: usize) -> Bytes {
            match *self {}
        }
    }

    #[tokio::test]
    async fn answer_that_is_reset_before_it_is_sent_counts_and_one_that_is_broken_off_does_not() {
        for is_broken_off in [false, true] {
            let get = b"\0\0\x0b\x01\x05\0\0\0\x01\x82\x86\x84\x01\x06a.test";
            let mut named = NamedClient::send(get).await;
            let text = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec();
            let head_bytes = text.len() - 1;
            let mut answer = Http2Answer::new(named.stream, text, head_bytes);
            let is_pending =
                poll_fn(|cx| Poll::Ready(answer.poll_sent(cx, None::<&Never>).is_pending()));
            assert!(is_pending.await, "its window is closed");
            if is_broken_off {
                named.connection.break_off();
            } else {
                let reset = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
                named.socket.write_all(reset).await.unwrap();
            }
            let sent = poll_fn(|cx| {
                let _ = named.connection.poll_accept(cx, NOW.tick);
                answer.poll_sent(cx, None::<&Never>)
            });
            assert!(sent.await.is_err());
            answer.count_resets_for(ResetBudget::new(named.client, &named.clients));
            drop(answer);
            let is_exhausted = named.clients.borrow().is_exhausted(NOW.tick, named.client);
            assert_eq!(is_exhausted, !is_broken_off);
        }
    }
}
