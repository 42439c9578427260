//! A connection of the origin: one request after the other, in order.
//!
//! A connection that waits owns no buffer: requests are read into the thread's, and content is made
//! in the thread's. Most responses take one read and one write, and nothing is allocated for them.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use weir_wire::{
    Arrival, BodyEvent, BodyReader, HeadLimits, LineBuffer, Progress, RequestHead, parse_request,
};

use super::by_target::fetches::FetchEnd;
use super::impairment;
use super::listen::addressing::ServerChoice;
use super::request_facts::RequestFacts;
use super::response::{self, ConnectionFacts};
use super::response_writer::ResponseWriter;
use super::timer::Timer;
use super::transmission::ConnectionAction;
use super::worker::Worker;

/// How long a response hangs at most; then the connection is closed.
pub(super) const HANG_MAX: Duration = Duration::from_secs(600);

/// After the last response what the peer has sent meanwhile is read for so long: closing a socket
/// with unread bytes resets it, and the response would be lost with it (RFC 9112 §9.6).
const LINGER_MAX: Duration = Duration::from_secs(2);

/// What a request's head, and the trailer section of its content, may cost.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 32 * 1024,
    fields_max: 100,
};

/// RFC 9110 §15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How a connection ends.
enum End {
    /// The peer has closed or reset, or was silent for too long.
    Gone,
    /// As [`ConnectionAction`] has it.
    Ours(ConnectionAction),
}

struct Connection {
    stream: TcpStream,
    choice: ServerChoice,
    worker: Rc<Worker>,
    timer: Timer,
    idle: Duration,
    /// Without a byte until then it is closed.
    idle_until: Instant,
    /// What has arrived and was not read: requests behind the one that is answered, or a head that
    /// is not whole.
    unread: Vec<u8>,
    /// `unread` begins with a head that is not whole.
    in_head: bool,
    arrival: Arrival,
    /// Did the peer mean to send more requests?
    peer_keeps: bool,
    requests: u64,
    requests_max: u64,
    /// Content of the request that is read before its response is sent.
    upload: Option<Box<BodyReader>>,
    writer: Option<Box<ResponseWriter>>,
    /// The newest response in the account of fetches, if there is one.
    fetch: Option<usize>,
}

/// Serves a connection until it ends; `_place` is given back then.
pub(super) async fn serve(
    stream: TcpStream,
    choice: ServerChoice,
    worker: Rc<Worker>,
    _place: OwnedSemaphorePermit,
) {
    let open = Open::new(Rc::clone(&worker));
    let mut connection = Connection::new(stream, choice, worker);
    let end = poll_fn(|cx| connection.poll_end(cx)).await;
    match end {
        End::Gone | End::Ours(ConnectionAction::Keep) => {}
        End::Ours(ConnectionAction::Close) => connection.linger().await,
        End::Ours(ConnectionAction::Hang) => connection.drain(HANG_MAX).await,
        End::Ours(ConnectionAction::Reset) => {
            // unsent bytes are thrown away, and the peer hears of an error
            let _gone_already = SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO));
        }
    }
    // before the socket is closed, so that a peer that sees the end finds it counted
    connection.settle_fetch();
    drop(open);
}

/// A connection in the count of those that are open, until it ends in whatever way.
struct Open(Rc<Worker>);

impl Open {
    fn new(worker: Rc<Worker>) -> Self {
        worker.counts().connections_open += 1;
        Self(worker)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts().connections_open -= 1;
    }
}

impl Connection {
    fn new(stream: TcpStream, choice: ServerChoice, worker: Rc<Worker>) -> Self {
        let shared = &worker.shared;
        let origin = &shared.scenario.origin;
        let requests_max = impairment::requests_max(origin, shared.seed, shared.next_connection());
        let idle = Duration::try_from_secs_f64(origin.idle_timeout_s).unwrap_or(Duration::MAX);
        // a clock does not go on for ever
        let idle = idle.min(Duration::from_secs(1 << 30));
        Self {
            stream,
            choice,
            timer: Timer::default(),
            idle,
            idle_until: Instant::now() + idle,
            unread: Vec::new(),
            in_head: false,
            arrival: Arrival::new(),
            peer_keeps: true,
            requests: 0,
            requests_max,
            upload: None,
            writer: None,
            fetch: None,
            worker,
        }
    }

    /// Serves; ready when the connection is to end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if self.upload.is_some() {
                if let Some(end) = ready!(self.poll_upload(cx)) {
                    return Poll::Ready(end);
                }
            } else if let Some(writer) = self.writer.take() {
                if let Some(end) = ready!(self.poll_writer(writer, cx)) {
                    return Poll::Ready(end);
                }
            } else if self.unread.is_empty() || self.in_head {
                if let Some(end) = ready!(self.poll_requests(cx)) {
                    return Poll::Ready(end);
                }
            } else {
                let unread = std::mem::take(&mut self.unread);
                if let Some(end) = self.consume(&unread, cx) {
                    return Poll::Ready(end);
                }
            }
        }
    }

    /// Reads once, and answers what was read.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let worker = Rc::clone(&self.worker);
        let mut input = worker.input.borrow_mut();
        let Some(length) = ready!(self.poll_read(&mut input, cx)) else {
            return Poll::Ready(Some(End::Gone));
        };
        if self.unread.is_empty() {
            return Poll::Ready(self.consume(&input[..length], cx));
        }
        self.unread.extend_from_slice(&input[..length]);
        if !self.arrival.is_worth_reading(&self.unread, &HEAD_LIMITS) {
            return Poll::Ready(None);
        }
        let unread = std::mem::take(&mut self.unread);
        Poll::Ready(self.consume(&unread, cx))
    }

    /// Some bytes; `None` when the peer has disconnected or was silent for too long.
    fn poll_read(&mut self, into: &mut [u8], cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let mut buffer = ReadBuf::new(into);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) => {
                let length = buffer.filled().len();
                Poll::Ready((length > 0).then_some(length))
            }
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Pending => self.timer.poll_at(self.idle_until, cx).map(|()| None),
        }
    }

    /// Answers the requests in `bytes` until one needs more than a write; keeps the bytes behind
    /// it.
    fn consume(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Option<End> {
        let mut at = 0;
        self.in_head = false;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let mut lines = LineBuffer::new();
            match parse_request(rest, &HEAD_LIMITS, &mut lines) {
                Ok(Progress::Complete { head, consumed }) => {
                    at += consumed;
                    let end = self.answer(&head, cx);
                    if end.is_some() || self.writer.is_some() {
                        self.unread = bytes[at..].to_vec();
                        return end;
                    }
                }
                Ok(Progress::Partial) => {
                    self.in_head = true;
                    self.unread = rest.to_vec();
                    self.arrival = Arrival::new();
                    self.arrival.is_worth_reading(rest, &HEAD_LIMITS);
                    return None;
                }
                Err(error) => {
                    let text = format!("cannot read the request: {error}\n");
                    self.writer = Some(Box::new(response::refuse(&self.worker, 400, &text)));
                    return None;
                }
            }
        }
        None
    }

    /// Answers one request; leaves `writer` (and `upload`) where that takes more than one write.
    fn answer(&mut self, head: &RequestHead<'_, '_>, cx: &mut Context<'_>) -> Option<End> {
        let request = match RequestFacts::read(head) {
            Ok(request) => request,
            Err(error) => {
                let text = format!("cannot tell where the request ends: {error}\n");
                let refusal = response::refuse(&self.worker, error.status(), &text);
                self.writer = Some(Box::new(refusal));
                return None;
            }
        };
        self.peer_keeps = request.keeps;
        self.requests += 1;
        let made = ConnectionFacts {
            choice: self.choice,
            requests: self.requests,
            is_last: self.requests >= self.requests_max,
            socket: self.stream.as_raw_fd(),
            fetch: self.fetch,
        };
        let mut writer = response::make(&self.worker, &request, head, made);
        self.fetch = writer.fetch;
        let reader = BodyReader::new(request.content, HEAD_LIMITS);
        if !reader.is_ended() {
            self.upload = Some(Box::new(reader));
            self.writer = Some(Box::new(writer));
            return self.invite(&request);
        }
        match writer.poll(&mut self.stream, &self.worker, &mut self.timer, cx) {
            Poll::Pending => {
                self.writer = Some(Box::new(writer));
                None
            }
            Poll::Ready(result) => self.finish(writer, result),
        }
    }

    /// Sends 100 (Continue) to a peer that waits for it.
    fn invite(&mut self, request: &RequestFacts) -> Option<End> {
        if !request.expects_continue {
            return None;
        }
        // nothing else is on its way, so there is room for a line
        match self.stream.try_write(CONTINUE) {
            Ok(written) if written == CONTINUE.len() => None,
            _ => Some(End::Gone),
        }
    }

    /// Reads the content of a request, and forgets it.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let Some(mut reader) = self.upload.take() else {
            return Poll::Ready(None);
        };
        if !self.unread.is_empty() {
            let mut unread = std::mem::take(&mut self.unread);
            let Some(consumed) = self.receive(&mut reader, &unread) else {
                return Poll::Ready(Some(End::Gone));
            };
            unread.drain(..consumed);
            self.unread = unread;
        }
        let worker = Rc::clone(&self.worker);
        while !reader.is_ended() {
            let mut input = worker.input.borrow_mut();
            match self.poll_read(&mut input, cx) {
                Poll::Pending => {
                    self.upload = Some(reader);
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(Some(End::Gone)),
                Poll::Ready(Some(length)) => {
                    self.idle_until = Instant::now() + self.idle;
                    let Some(consumed) = self.receive(&mut reader, &input[..length]) else {
                        return Poll::Ready(Some(End::Gone));
                    };
                    self.unread = input[consumed..length].to_vec();
                }
            }
        }
        Poll::Ready(None)
    }

    /// Takes content out of its framing and counts it; says how many bytes are done with. `None` if
    /// the framing is broken.
    fn receive(&self, reader: &mut BodyReader, bytes: &[u8]) -> Option<usize> {
        let phase = self.writer.as_ref().map_or(0, |writer| writer.phase);
        let (mut consumed, mut content_bytes) = (0, 0);
        loop {
            let step = reader.step(&bytes[consumed..]).ok()?;
            consumed += step.consumed;
            match step.event {
                BodyEvent::Data(data) => content_bytes += data.len() as u64,
                BodyEvent::NeedMore | BodyEvent::End => break,
            }
        }
        self.worker.counts().phase(phase).received_content_bytes += content_bytes;
        Some(consumed)
    }

    fn poll_writer(
        &mut self,
        mut writer: Box<ResponseWriter>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<End>> {
        match writer.poll(&mut self.stream, &self.worker, &mut self.timer, cx) {
            Poll::Pending => {
                self.writer = Some(writer);
                Poll::Pending
            }
            Poll::Ready(result) => Poll::Ready(self.finish(*writer, result)),
        }
    }

    /// A response is over.
    fn finish(&mut self, writer: ResponseWriter, result: io::Result<()>) -> Option<End> {
        if result.is_err() {
            self.worker.counts().phase(writer.phase).left += 1;
            return Some(End::Gone);
        }
        if let (Some(fetch_log), Some(fetch)) = (&self.worker.shared.fetch_log, writer.fetch) {
            fetch_log.with(|fetches| fetches.end(fetch, FetchEnd::Whole));
        }
        // memory for the next head
        self.worker.head.set(writer.head);
        if writer.then != ConnectionAction::Keep {
            return Some(End::Ours(writer.then));
        }
        self.idle_until = Instant::now() + self.idle;
        None
    }

    /// The connection is over, and so is its newest fetch.
    fn settle_fetch(&self) {
        if let (Some(fetch_log), Some(fetch)) = (&self.worker.shared.fetch_log, self.fetch) {
            fetch_log.with(|fetches| {
                fetches.settle(fetch, fetch_log.options.unacknowledged_bytes);
                fetches.end(fetch, FetchEnd::Cut);
            });
        }
    }

    /// Says that nothing more comes, and lets what the peer has sent pass. A peer whose request has
    /// `Connection: close` has sent everything.
    async fn linger(&mut self) {
        if !self.peer_keeps && self.unread.is_empty() {
            return;
        }
        if poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx))
            .await
            .is_ok()
        {
            self.drain(LINGER_MAX).await;
        }
    }

    /// Reads what comes until the peer closes, at most for so long.
    async fn drain(&mut self, limit: Duration) {
        self.idle_until = Instant::now() + limit;
        let worker = Rc::clone(&self.worker);
        poll_fn(|cx| {
            let mut input = worker.input.borrow_mut();
            while ready!(self.poll_read(&mut input, cx)).is_some() {}
            Poll::Ready(())
        })
        .await;
    }
}
