//! Connections of clients that speak HTTP/2.
//!
//! One task has the connection. The text of a request head is taken as one that came by HTTP/1.1
//! ([`StreamClient::take`]). What is answered at once becomes frames again without another task,
//! unless it has to wait for a window; the rest are exchanges as any other, each with a task.

mod stream_client;

#[cfg(test)]
pub(crate) use self::stream_client::size_of_exchange;

use self::stream_client::{Sending, StreamClient, StreamRequest, TakeResult};
use super::connection::AcceptedClient;
use super::fast::HeadTime;
use super::own_target::OwnAuthority;
use super::protocol::DetectedProtocol;
use super::stalled_socket::StalledSocket;
use crate::config::Mode;
use crate::log::client::{ForPeers, HttpVersions, ListenerFacts};
use crate::worker::core::Worker;
use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use weir_measure::{Http2End, Http2Reset, Metric};
use weir_net::Deadline;
use weir_net::http::{
    HTTP2_PREFACE, Http2Accepted, Http2Connection, Http2Flood, Http2Form, Http2Rules, Http2Stream,
};
use weir_net::workers::{Accepted, ClientPlace, ClientStreams, SleeperPlace, Stage, StreamPlace};
use weir_policy::connections::Flood;
use weir_policy::destination::ClientNetwork;

/// Requests under way at once on a connection: what RFC 9113 §6.5.2 recommends at least.
const STREAMS_MAX: u32 = 100;

/// Bytes of a decoded head, with 32 for each field (RFC 9113 §6.5.2).
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// Once a connection is to end and has no request under way, the client has this long to take what
/// was sent, and to close it.
const LINGER: Duration = Duration::from_secs(2);

/// A connection, as its task has it.
struct Http2Client {
    connection: Http2Connection,
    streams: JoinSet<()>,
    shared: Rc<StreamClient>,
    /// The requests of its client, on all of its connections.
    places: Rc<ClientStreams>,
    /// Requests taken on this connection.
    requests: u32,
    /// The limit on waiting for a request.
    deadline: Deadline,
    /// The limit on a head that has begun.
    head: Option<Deadline>,
    /// Its socket, while something waits for that.
    stalled: Option<Box<StalledSocket>>,
    /// Why it ends, once it is to.
    closing: Option<Http2End>,
    /// What was written of content when it was last looked at.
    left_bytes: u64,
    /// When the last request was answered at once, in a pass of the task and with none behind it.
    answered: Option<Instant>,
    /// Place among the connections that a drain wakes.
    sleeper: SleeperPlace,
    /// Given back when all requests have ended.
    _place: ClientPlace,
}

/// What the limits say of a connection on which nothing moves.
enum LimitCheck {
    /// It waits.
    Within,
    /// It has begun to end, and has something to send.
    Closing,
    /// It is to be cut.
    Exceeded,
}

/// Finds out whether a connection in clear that HTTP/2 may be spoken on does so: its first bytes
/// say.
pub(crate) async fn detect_in_clear(
    accepted: Accepted<ListenerFacts>,
    worker: Rc<Worker>,
) -> DetectedProtocol {
    let mut client = AcceptedClient::from(accepted);
    let is_http2 = {
        let mut stage = worker.network().stage();
        let drained = stage.wait_for(|stage| *stage > Stage::Serving);
        tokio::select! {
            biased;
            is_http2 = is_http2(&mut client, &worker) => is_http2,
            _ = drained => None,
        }
    };
    match is_http2 {
        Some(true) => {
            client.listener = Rc::new(ListenerFacts {
                versions: HttpVersions::Http2,
                ..(*client.listener).clone()
            });
            DetectedProtocol::Http2(client)
        }
        Some(false) => {
            let read = client.unread.len() as u64;
            worker.counters().add(Metric::BytesFromClients, read);
            DetectedProtocol::Http1(client)
        }
        None => DetectedProtocol::Ended,
    }
}

/// Reads until it is known whether the connection begins as one of HTTP/2 does; `None`: it has
/// ended before, or takes too long.
async fn is_http2(client: &mut AcceptedClient, worker: &Worker) -> Option<bool> {
    let limits = &worker.settings().config.limits;
    let mut deadline = Deadline::new(limits.client_idle.as_duration());
    loop {
        let socket = client.stream.tcp();
        poll_fn(|cx| {
            if deadline.poll_passed(cx).is_ready() {
                return Poll::Ready(None);
            }
            socket.poll_read_ready(cx).map(Result::ok)
        })
        .await?;
        let mut scratch = worker.scratch();
        let count = match socket.try_read(&mut scratch) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) | Ok(0) => return None,
            Ok(count) => count,
        };
        if client.unread.is_empty() {
            deadline.set(limits.request_head.as_duration());
        }
        client.unread.extend_from_slice(&scratch[..count]);
        let known = client.unread.len().min(HTTP2_PREFACE.len());
        if client.unread[..known] != HTTP2_PREFACE[..known] {
            return Some(false);
        }
        if known == HTTP2_PREFACE.len() {
            return Some(true);
        }
    }
}

/// Serves a connection until it ends. The client is made before the future is, which so holds it
/// once.
pub(crate) fn serve(accepted: AcceptedClient, worker: Rc<Worker>) -> impl Future<Output = ()> {
    let settings = worker.settings();
    let limits = &settings.config.limits;
    let listener = accepted.listener;
    let address = accepted.peer.ip();
    let is_trusted = settings.forwarded(listener.mode).trusts(address);
    // of one that stands for others, or of another node, the clients are not known here
    let is_for_clients = listener.peers == ForPeers::No;
    let is_client = !is_trusted && is_for_clients;
    let has_several_clients = is_trusted && is_for_clients;
    let client = is_client.then(|| ClientNetwork::of(address));
    let rules = Http2Rules {
        form: match listener.mode {
            Mode::Gateway => Http2Form::Origin(listener.scheme),
            Mode::Forward => Http2Form::Absolute,
        },
        streams_max: STREAMS_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        window_closed: limits.client_silence.as_duration(),
        clients: match is_trusted {
            true => settings.config.forwarded.clients_per_connection,
            false => 1,
        },
        names_clients: has_several_clients,
    };
    let (stream, unread) = (accepted.stream, accepted.unread);
    let resets = client.map(|client| worker.net().reset_budget(client));
    let budgets = (resets, worker.net().window_grant());
    let own = OwnAuthority::of(&listener, || stream.tcp().local_addr().ok());
    let mut client = Http2Client {
        connection: Http2Connection::new((stream, unread), rules, budgets, worker.now()),
        streams: JoinSet::new(),
        places: worker.net().client_streams(client),
        requests: 0,
        // the preface and the first settings
        deadline: Deadline::new(limits.request_head.as_duration()),
        head: None,
        stalled: None,
        closing: None,
        left_bytes: 0,
        answered: None,
        sleeper: SleeperPlace::default(),
        _place: accepted.place,
        shared: Rc::new(StreamClient {
            number: worker.net().number(),
            worker,
            listener,
            peer: accepted.peer,
            own,
            has_several_clients,
            next_hops: Cell::default(),
            hops: RefCell::default(),
            copied_bytes: Cell::new(0),
        }),
    };
    async move {
        poll_fn(|cx| client.poll_served(cx)).await;
        client.note();
        let end = client.end();
        let counters = client.shared.worker.counters();
        counters.inc(Metric::Http2Connections(end));
        Box::pin(client.discard()).await;
        client.connection.cut();
        while client.streams.join_next().await.is_some() {}
    }
}

impl Http2Client {
    /// Serves the connection; ready when it has ended, or is to be cut.
    fn poll_served(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let worker = Rc::clone(&self.shared.worker);
        let _pass = worker.net().begin_pass();
        self.answered = None;
        loop {
            self.reap(cx);
            let now = worker.now().tick;
            match self.connection.poll_accept(cx, now) {
                Poll::Ready(Http2Accepted::Request(head, stream)) => self.begin(cx, head, stream),
                Poll::Ready(Http2Accepted::Abandoned(head)) => self.shared.note_abandoned(&head),
                Poll::Ready(Http2Accepted::End) => return Poll::Ready(()),
                Poll::Pending => {
                    self.note();
                    match self.check_limits(cx) {
                        LimitCheck::Within => return Poll::Pending,
                        LimitCheck::Closing => {}
                        LimitCheck::Exceeded => return Poll::Ready(()),
                    }
                }
            }
        }
    }

    /// Takes note of requests that have ended.
    fn reap(&mut self, cx: &mut Context<'_>) {
        let mut has_ended = false;
        while let Poll::Ready(Some(ended)) = self.streams.poll_join_next(cx) {
            has_ended = true;
            if ended.is_err_and(|error| error.is_panic()) {
                self.shared.worker.counters().inc(Metric::Panics);
            }
        }
        if has_ended && self.streams.is_empty() {
            self.rest();
        }
    }

    /// No request is under way: the limit runs.
    fn rest(&mut self) {
        self.rest_at(Instant::now());
    }

    fn rest_at(&mut self, now: Instant) {
        let limits = &self.shared.worker.settings().config.limits;
        let limit = match self.closing {
            None => limits.client_idle.as_duration(),
            Some(_) => LINGER,
        };
        self.deadline.rest(now, limit);
    }

    /// Begins a request. What is answered at once is sent as far as there is room, so that it has
    /// no task.
    fn begin(&mut self, cx: &mut Context<'_>, mut head: Vec<u8>, stream: Http2Stream) {
        self.requests = self.requests.saturating_add(1);
        let counters = self.shared.worker.counters();
        let under_way = self.streams.len();
        let most = self.shared.worker.net().streams_max();
        let Some(place) = self.places.take(under_way, most) else {
            counters.inc(Metric::Http2Resets(Http2Reset::Streams));
            return stream.refuse();
        };
        counters.add(Metric::BytesFromClients, head.len() as u64);
        let shared = Rc::clone(&self.shared);
        if let Some(own) = &shared.own {
            own.take_off(&mut head);
        }
        let request = StreamRequest {
            head,
            sequence: self.requests,
            // the moment is that of the request right before: what needs more may take its time
            head_time: match self.answered.take() {
                None => HeadTime::Now,
                Some(answered) => HeadTime::Read(answered.into_std()),
            },
            settings: shared.worker.settings(),
        };
        match shared.take(request) {
            TakeResult::Answered(answered) => {
                let mut sending = Sending::new(answered, stream);
                match sending.poll_sent(cx) {
                    Poll::Ready(sent) => {
                        self.answered = Some(shared.report(sending, sent));
                    }
                    Poll::Pending => {
                        self.spawn(place, shared.send_rest(Box::new(sending)));
                    }
                }
            }
            TakeResult::Login(waiting, request) => {
                self.spawn(place, shared.answer_later(waiting, request, stream));
            }
            TakeResult::Exchange(exchange) => {
                self.spawn(place, shared.exchange(exchange, Box::new(stream)));
            }
        }
    }

    /// Goes on with a request in a task that has its place.
    fn spawn(&mut self, place: StreamPlace, request: impl Future<Output = ()> + 'static) {
        self.streams.spawn_local(RequestTask {
            request,
            _place: place,
        });
    }

    /// Counts what was refused without a request.
    fn note(&mut self) {
        let notices = self.connection.take_notices();
        let counters = self.shared.worker.counters();
        if notices.abandoned > 0 {
            counters.add(Metric::Http2AbandonedRequests, notices.abandoned);
        }
        for (cause, count) in [
            (Http2Reset::Malformed, notices.malformed),
            (Http2Reset::Heads, notices.heads),
            (Http2Reset::Window, notices.stalled),
        ] {
            if count > 0 {
                counters.add(Metric::Http2Resets(cause), count);
            }
        }
    }

    /// Looks at the limits while nothing moves. The task is woken when the next one has passed.
    fn check_limits(&mut self, cx: &mut Context<'_>) -> LimitCheck {
        let worker = Rc::clone(&self.shared.worker);
        if self.closing.is_none() && worker.shared.has_closed(&self.shared.listener) {
            self.close(Http2End::Drained);
            return LimitCheck::Closing;
        }
        if self.closing.is_none() && self.connection.flood().is_some() {
            // GOAWAY is on its way
            self.closing = Some(self.end());
            self.rest();
        }
        if self.closing.is_none() && self.connection.has_unpaid_resets() {
            // others behind its address may have done that
            self.close(Http2End::ClientResets);
            return LimitCheck::Closing;
        }
        let silence = worker.settings().config.limits.client_silence;
        let silence = match self.connection.flood() {
            None => silence.as_duration(),
            Some(_) => LINGER,
        };
        let connection = &self.connection;
        if StalledSocket::poll(&mut self.stalled, cx, connection, silence).is_ready() {
            self.closing = Some(Http2End::Silent);
            return LimitCheck::Exceeded;
        }
        let left_bytes = self.connection.left_bytes();
        let answered = self.answered.take();
        if self.left_bytes != left_bytes || answered.is_some() {
            // the client still takes what was sent, or asks for more
            self.left_bytes = left_bytes;
            self.rest_at(answered.unwrap_or_else(Instant::now));
        }
        let coarse = match self.streams.is_empty() {
            true => self.deadline.coarse(),
            false => None,
        };
        let net = worker.net();
        let has_passed = net.remember_sleeper(&mut self.sleeper, cx.waker(), coarse);
        if self.connection.is_in_head() && self.closing != Some(Http2End::Head) {
            let limit = worker.settings().config.limits.request_head.as_duration();
            let deadline = self.head.get_or_insert_with(|| Deadline::new(limit));
            if deadline.poll_passed(cx).is_ready() {
                self.closing = Some(Http2End::Head);
                self.connection.break_off();
                self.rest();
                return LimitCheck::Closing;
            }
        } else {
            self.head = None;
        }
        if !self.streams.is_empty() {
            return LimitCheck::Within;
        }
        let is_over = match coarse {
            Some(_) => has_passed,
            None => self.deadline.poll_passed(cx).is_ready(),
        };
        if !is_over {
            return LimitCheck::Within;
        }
        if self.closing.is_some() {
            return LimitCheck::Exceeded;
        }
        let is_open = self.connection.is_open();
        self.close(match is_open {
            true => Http2End::Idle,
            false => Http2End::Preface,
        });
        LimitCheck::Closing
    }

    fn close(&mut self, end: Http2End) {
        self.closing = Some(end);
        self.connection.close();
        self.rest();
    }

    /// Why it has ended.
    fn end(&self) -> Http2End {
        match self.connection.flood() {
            Some(Http2Flood::Connection(Flood::Resets)) => Http2End::Resets,
            Some(Http2Flood::ClientResets) => Http2End::ClientResets,
            Some(Http2Flood::Connection(Flood::Control)) => Http2End::Control,
            Some(Http2Flood::Connection(Flood::WindowUpdates)) => Http2End::WindowUpdates,
            Some(Http2Flood::Connection(Flood::FieldLines)) => Http2End::FieldLines,
            None if !self.connection.was_open() => Http2End::Preface,
            None => self.closing.unwrap_or(Http2End::Client),
        }
    }

    /// Reads and drops for a moment what the client still sends, so that a reset does not overtake
    /// what was sent last.
    async fn discard(&mut self) {
        let worker = &self.shared.worker;
        let drain = worker.settings().config.limits.request_body_drain;
        let mut left = drain.as_usize();
        let connection = &mut self.connection;
        let discarded = timeout(LINGER, async {
            while left > 0 {
                let read = poll_fn(|cx| connection.poll_discard(cx, &mut worker.scratch()));
                match read.await {
                    0 => return,
                    read => left = left.saturating_sub(read),
                }
            }
        });
        // past the limit the connection is cut: that is what the limit is for
        let _ = discarded.await;
    }
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        let net = self.shared.worker.net();
        net.forget_sleeper(&mut self.sleeper);
    }
}

pin_project! {
    /// The rest of a request, with its place among those of its worker.
    struct RequestTask<F> {
        #[pin]
        request: F,
        _place: StreamPlace,
    }
}

impl<F: Future<Output = ()>> Future for RequestTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().request.poll(cx)
    }
}
