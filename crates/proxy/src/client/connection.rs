//! A client's connection: reads requests, answers hits at once, and hands everything else to an
//! exchange.
//!
//! The future of an idle connection is what each of many thousand open connections costs, so it
//! holds no buffer and no state of an exchange: bytes are read into the worker's scratch memory,
//! and an exchange lives in a box while it lasts, as does what only some connections need
//! ([`Active`]). A hit on a small response is one read, one look-up and one write, without an
//! allocation.

mod active;

use self::active::{Active, PartialHead};
use crate::client::fast::{self, HeadTime, Input, InputResult, Receiver};
use crate::client::hand_off::{self, NodeConnection};
use crate::client::outgoing::Outgoing;
use crate::cluster::Maker;
use crate::exchange::run;
use crate::exchange::state::RequestState;
use crate::log::client::{ClientFacts, ForPeers, ListenerFacts};
use crate::log::served::{self, Interruption};
use crate::settings::Settings;
use crate::worker::core::Worker;
use crate::worker::in_box;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::sync::oneshot;
use tokio::time::Instant;
use weir_measure::Metric;
use weir_net::Deadline;
use weir_net::client::ClientSocket;
use weir_net::http::{ClientStream, Http1Client};
use weir_net::next_hops;
use weir_net::workers::Accepted;
use weir_net::workers::{ClientPlace, SleeperPlace};
use weir_wire::Arrival;

/// Pipelined responses are gathered up to this many bytes before they are written.
const GATHER_BYTES_MAX: usize = 64 * 1024;

/// Before closing on a client that may still be sending, this long is read and dropped, so that the
/// reset does not overtake our last answer.
const LINGER: Duration = Duration::from_secs(2);

/// A connection from a client.
pub(crate) struct ClientConnection {
    /// Given back before the connection is closed.
    _place: ClientPlace,
    stream: ClientSocket,
    peer: SocketAddr,
    /// Which connection it is, of all that the process had.
    number: u64,
    listener: Rc<ListenerFacts>,
    worker: Rc<Worker>,
    deadline: Deadline,
    /// Requests taken on this connection.
    requests: u32,
    /// Place among the connections that a drain wakes, and the end of a listener.
    sleeper: SleeperPlace,
    /// What an idle connection does without.
    active: Option<Box<Active>>,
}

/// A connection that is to be served.
pub(crate) struct AcceptedClient {
    /// The connection.
    pub(crate) stream: ClientSocket,
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// The listener that accepted it.
    pub(crate) listener: Rc<ListenerFacts>,
    /// Its place among the client connections.
    pub(crate) place: ClientPlace,
    /// What was read from it.
    pub(crate) unread: Vec<u8>,
}

impl From<Accepted<ListenerFacts>> for AcceptedClient {
    /// A connection in clear.
    fn from(accepted: Accepted<ListenerFacts>) -> Self {
        Self {
            stream: ClientSocket::Clear(accepted.stream),
            peer: accepted.peer,
            listener: accepted.listener,
            place: accepted.place,
            unread: Vec::new(),
        }
    }
}

/// Why the fast loop stopped.
pub(crate) enum Turn {
    /// The connection is done.
    Close,
    /// A request that needs more than one pass.
    Exchange(Box<RequestState>),
    /// A request that is to be taken again once a login is verified.
    Login(Box<oneshot::Receiver<()>>),
}

/// A connection that is served until it ends. While no request takes more than one pass, its client
/// is here and in no other future: an async function would need room for both.
pub(crate) enum ServedConnection {
    /// Requests are waited for, and answered at once.
    Waiting(ClientConnection),
    /// One takes more than one pass; gives the client back if the connection may be used further.
    Turn(
        Pin<Box<dyn Future<Output = Option<ClientConnection>>>>,
        Rc<Worker>,
    ),
    /// It has ended.
    Ended,
}

impl Future for ServedConnection {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let worker = match &*self {
            Self::Ended => return Poll::Ready(()),
            Self::Waiting(client) => Rc::clone(&client.worker),
            Self::Turn(_, worker) => Rc::clone(worker),
        };
        let _pass = worker.net().begin_pass();
        loop {
            let next = match &mut *self {
                Self::Ended => return Poll::Ready(()),
                Self::Waiting(client) => {
                    let turn = ready!(client.poll_turn(cx));
                    let Self::Waiting(client) = std::mem::replace(&mut *self, Self::Ended) else {
                        return Poll::Ready(());
                    };
                    let turn = in_box::pinned(|| client.take_turn(turn));
                    Self::Turn(turn, Rc::clone(&worker))
                }
                Self::Turn(turn, _) => match ready!(turn.as_mut().poll(cx)) {
                    Some(client) => Self::Waiting(client),
                    None => Self::Ended,
                },
            };
            *self = next;
        }
    }
}

/// Serves a connection until it ends.
pub(crate) fn serve(
    accepted: AcceptedClient,
    worker: Rc<Worker>,
    handed: Option<Rc<NodeConnection>>,
) -> ServedConnection {
    let idle = worker.settings().config.limits.client_idle.as_duration();
    let mut active = Active {
        unread: accepted.unread,
        handed,
        ..Active::default()
    };
    let is_empty = active.is_empty();
    ServedConnection::Waiting(ClientConnection {
        stream: accepted.stream,
        peer: accepted.peer,
        listener: accepted.listener,
        _place: accepted.place,
        deadline: Deadline::at_rest(Instant::now(), idle),
        number: worker.net().number(),
        worker,
        requests: 0,
        sleeper: SleeperPlace::default(),
        active: (!is_empty).then(|| Box::new(active)),
    })
}

impl ClientConnection {
    /// Its facts, for the current request.
    pub(crate) fn facts(&self) -> ClientFacts<'_> {
        ClientFacts {
            listener: &self.listener,
            peer: self.peer,
            connection: self.number,
            sequence: self.requests,
        }
    }

    /// Does what takes more than one pass; `None` if the connection is done.
    async fn take_turn(mut self, turn: Turn) -> Option<Self> {
        let is_done = match turn {
            Turn::Close => true,
            Turn::Login(verified) => {
                // or not: what is known by then decides
                let _ = verified.await;
                false
            }
            Turn::Exchange(mut exchange) => {
                if let Some(head) = self.active.as_mut().and_then(|it| it.head.take())
                    && self.hand_over(&mut exchange, &head).await
                {
                    return None;
                }
                let alive = self.answer(exchange).await;
                if alive {
                    self.rest(Instant::now());
                }
                !alive
            }
        };
        if is_done && self.is_closing() {
            Box::pin(self.linger()).await;
        }
        (!is_done).then_some(self)
    }

    /// Hands the connection over to the node that answers the request; `false` if it stays.
    async fn hand_over(&self, exchange: &mut RequestState, head: &[u8]) -> bool {
        let active = self.active.as_deref();
        let read = [head, active.map_or(&[], |it| &it.unread)].concat();
        let handed = active.and_then(|it| it.handed.as_deref());
        hand_off::hand_over(exchange, handed, self.stream.tcp(), &read).await
    }

    /// Carries out an exchange; `true` if the connection may be used further.
    async fn answer(&mut self, exchange: Box<RequestState>) -> bool {
        let active = self.active.get_or_insert_default();
        let mut stream = ClientStream::http1(Http1Client {
            socket: &self.stream,
            unread: &mut active.unread,
            length: exchange.request.body,
            trailers: exchange.settings.heads,
            named: exchange.named_in_trailers(),
            http11: exchange.request.is_http11(),
            is_persistent: exchange.request.is_persistent,
            deadline: &mut self.deadline,
            next_hops: &active.next_hops,
        });
        if let Some(lines) = exchange.peer_lines(Maker::Origin) {
            stream.response.set_hop_lines(lines);
        }
        stream.response.leave_out(exchange.left_out());
        let alive = run::run(&mut stream, exchange).await;
        // what the client still sends must not bring about a reset that overtakes the response
        active.is_closing = stream.response.is_complete() && !stream.is_persistent();
        alive
    }

    /// Between two requests: the idle limit runs, or the drain or the end of the listener closes.
    fn rest(&mut self, now: Instant) {
        let settings = self.worker.settings();
        self.deadline
            .rest(now, settings.config.limits.client_idle.as_duration());
        self.forget_partial();
    }

    /// The head that began is whole, or there is none.
    fn forget_partial(&mut self) {
        if let Some(active) = &mut self.active {
            active.partial = None;
        }
    }

    /// The connection ends once nothing waits to be sent.
    fn close(&mut self) {
        self.active.get_or_insert_default().is_closing = true;
    }

    fn is_closing(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.is_closing)
    }

    /// Bytes that were read and are not yet used.
    fn unread(&self) -> &[u8] {
        self.active.as_ref().map_or(&[], |active| &active.unread)
    }

    /// Serves what can be served at once; ready when that is over.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        loop {
            if let Some(active) = &mut self.active
                && !active.outgoing.is_empty()
            {
                match active.outgoing.poll_send(&mut self.stream, cx) {
                    Poll::Pending => return self.poll_silent(cx),
                    Poll::Ready(Err(_)) => {
                        self.worker.counters().inc(Metric::ClientAborts);
                        self.report_unsent(Some(Interruption::ClientLeft));
                        return Poll::Ready(Turn::Close);
                    }
                    Poll::Ready(Ok(_)) => {
                        self.report_unsent(None);
                        self.rest(Instant::now());
                    }
                }
            }
            if self.is_closing() {
                return Poll::Ready(Turn::Close);
            }
            let mut unread = None;
            if let Some(active) = &mut self.active {
                if let Some(exchange) = active.exchange.take() {
                    return Poll::Ready(Turn::Exchange(exchange));
                }
                if let Some(login) = active.login.take() {
                    return Poll::Ready(Turn::Login(login));
                }
                if active.partial.is_none() && !active.unread.is_empty() {
                    unread = Some(std::mem::take(&mut active.unread));
                }
            }
            match unread {
                Some(unread) => self.consume(&unread, cx),
                None => match self.poll_read_more(cx) {
                    Poll::Pending => return self.poll_idle(cx),
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => {
                        self.stream.announce_end();
                        return Poll::Ready(Turn::Close);
                    }
                },
            }
        }
    }

    /// Reads into the worker's scratch and serves what it holds; `false` at the end of the
    /// connection.
    fn poll_read_more(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch();
        let mut buffer = ReadBuf::new(&mut scratch);
        let read = ready!(self.stream.poll_read(cx, &mut buffer));
        let bytes = buffer.filled();
        if read.is_err() || bytes.is_empty() {
            return Poll::Ready(false);
        }
        worker
            .counters()
            .add(Metric::BytesFromClients, bytes.len() as u64);
        match &mut self.active {
            Some(active) if !active.unread.is_empty() => {
                active.unread.extend_from_slice(bytes);
                let heads = worker.settings().heads;
                let partial = active.partial.as_mut();
                if partial.is_none_or(|it| it.arrival.is_worth_reading(&active.unread, &heads)) {
                    let unread = std::mem::take(&mut active.unread);
                    self.consume(&unread, cx);
                }
            }
            _ => self.consume(bytes, cx),
        }
        Poll::Ready(true)
    }

    /// Serves the requests at the front of `input`, writes the answers, keeps the rest.
    fn consume(&mut self, input: &[u8], cx: &mut Context<'_>) {
        let worker = Rc::clone(&self.worker);
        let settings = worker.settings();
        let mut out = worker.output.borrow_mut();
        out.clear();
        let mut rest = input;
        let (mut partial, mut closing) = (false, false);
        let mut served = worker.served.take();
        while !rest.is_empty() && !closing && out.len() < GATHER_BYTES_MAX {
            let input = Input {
                bytes: rest,
                at: input.len() - rest.len(),
            };
            let receiver = self.receiver(&worker, &settings);
            match fast::take(&receiver, input, &mut out, &mut served) {
                InputResult::Answered { consumed } => {
                    rest = &rest[consumed..];
                    self.requests = self.requests.saturating_add(1);
                    closing = served.last().is_some_and(|last| !last.is_persistent);
                    self.forget_partial();
                }
                InputResult::Partial => {
                    partial = true;
                    break;
                }
                InputResult::Login(waiting) => {
                    self.forget_partial();
                    self.active.get_or_insert_default().login = Some(waiting);
                    break;
                }
                InputResult::Exchange { consumed, exchange } => {
                    self.begin_exchange(&settings, exchange, &rest[..consumed]);
                    rest = &rest[consumed..];
                    break;
                }
            }
        }
        if closing {
            self.close();
        } else if !rest.is_empty() {
            // what was unread before is part of the input
            self.active.get_or_insert_default().unread = rest.to_vec();
            if partial {
                self.begin_head(&settings);
            }
        }
        if out.is_empty() && served.is_empty() {
            // the head is not whole, or its request needs more than one pass
            worker.served.replace(served);
            return;
        }
        self.count_answered(&settings, served.len() as u64, out.len() as u64);
        let written = self.send(&out, cx);
        // one look at the clock for all that follows the write
        let now = Instant::now();
        if written == Some(out.len()) && !out.is_empty() && self.unread().is_empty() {
            self.rest(now);
        }
        let unsent = served::report(
            &worker.log_sinks(),
            self.facts(),
            &settings,
            (input, &out),
            written.ok_or(Interruption::ClientLeft),
            now.into_std(),
            &mut served,
        );
        if unsent.is_some() {
            self.active.get_or_insert_default().unsent = unsent;
        }
        worker.served.replace(served);
        shrink(&mut out);
    }

    /// What is known of the request that comes next before its head is read.
    #[inline]
    fn receiver<'a>(&'a self, worker: &'a Rc<Worker>, settings: &'a Arc<Settings>) -> Receiver<'a> {
        let mut client = self.facts();
        client.sequence = client.sequence.saturating_add(1);
        Receiver::new(worker, settings, client, self.head_time())
    }

    /// Counts requests that were answered at once among those of its client.
    #[inline]
    fn count_answered(&self, settings: &Settings, requests: u64, bytes: u64) {
        if self.listener.peers == ForPeers::No && requests > 0 && settings.config.admin.top {
            let mut top = self.worker.top.borrow_mut();
            top.answered(self.peer.ip(), requests, bytes);
        }
    }

    /// A request with this head needs more than one pass.
    fn begin_exchange(
        &mut self,
        settings: &Settings,
        mut exchange: Box<RequestState>,
        head: &[u8],
    ) {
        let active = self.active.get_or_insert_default();
        if settings.remembers_connections && self.listener.peers == ForPeers::No {
            let hops = active.hops.get_or_insert_default();
            exchange.client.remember(hops);
        }
        let connection = (active.handed.as_deref(), self.requests == 0);
        if hand_off::is_tried(&self.worker.shared.hand_offs, settings, connection) {
            active.head = Some(head.into());
        }
        self.requests = self.requests.saturating_add(1);
        active.partial = None;
        active.exchange = Some(exchange);
    }

    /// When the head came that is read next: of one that was not whole, its first byte.
    #[inline]
    fn head_time(&self) -> HeadTime {
        let partial = self.active.as_ref().and_then(|it| it.partial.as_ref());
        partial.map_or(HeadTime::Now, |it| HeadTime::Began(it.began.into_std()))
    }

    /// The unread bytes begin with a head that is not whole: its time limit runs from its first
    /// byte on.
    fn begin_head(&mut self, settings: &Settings) {
        let active = self.active.get_or_insert_default();
        let partial = active.partial.get_or_insert_with(|| {
            self.deadline
                .set(settings.config.limits.request_head.as_duration());
            Box::new(PartialHead {
                began: Instant::now(),
                arrival: Arrival::new(),
            })
        });
        // counts as read up to here
        let _ = partial
            .arrival
            .is_worth_reading(&active.unread, &settings.heads);
    }

    /// Reports that the kernel has accepted all of `outgoing`, or that the client has disconnected
    /// (`left`).
    fn report_unsent(&mut self, interruption: Option<Interruption>) {
        if let Some(unsent) = self.active.as_mut().and_then(|it| it.unsent.take()) {
            unsent.report(&self.worker.log_sinks(), self.facts(), interruption);
        }
    }

    /// Writes `bytes`; what the kernel does not accept waits in `outgoing`. Returns how many it
    /// accepted; `None` if the client has disconnected.
    fn send(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Option<usize> {
        if bytes.is_empty() {
            return Some(0);
        }
        self.worker
            .counters()
            .add(Metric::BytesToClients, bytes.len() as u64);
        let mut written = 0;
        let active = self.active.as_deref();
        if active.is_none_or(|active| active.outgoing.is_empty()) {
            match self.stream.poll_write_once(cx, bytes) {
                Poll::Ready(Ok(count)) => written = count,
                Poll::Ready(Err(_)) => {
                    self.close();
                    return None;
                }
                Poll::Pending => {}
            }
        }
        if written < bytes.len() {
            let active = self.active.get_or_insert_default();
            active.outgoing.push(&bytes[written..]);
            let limits = &self.worker.settings().config.limits;
            self.deadline.set(limits.client_silence.as_duration());
        }
        Some(written)
    }

    /// Waiting for the client to take bytes.
    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        ready!(self.deadline.poll_passed(cx));
        self.worker.counters().inc(Metric::ClientAborts);
        self.report_unsent(Some(Interruption::ClientLeft));
        if let Some(active) = &mut self.active {
            active.outgoing = Outgoing::default();
        }
        Poll::Ready(Turn::Close)
    }

    /// Waiting for a request, or for the rest of one.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if self.active.as_mut().is_some_and(|it| it.is_empty()) {
            self.active = None;
        }
        let idle = self.unread().is_empty();
        // a request that the kernel has received already is served: the reactor reports it in a
        // moment
        let is_quiet = || !self.stream.has_received() && next_hops::is_quiet(self.stream.tcp());
        if idle && self.worker.shared.has_closed(&self.listener) && is_quiet() {
            self.stream.announce_end();
            return Poll::Ready(Turn::Close);
        }
        let coarse = self.deadline.coarse();
        let net = self.worker.net();
        let has_passed = net.remember_sleeper(&mut self.sleeper, cx.waker(), coarse);
        match coarse {
            Some(_) if !has_passed => return Poll::Pending,
            Some(_) => {}
            None => ready!(self.deadline.poll_passed(cx)),
        }
        if !idle {
            self.refuse_late_head(cx);
        } else {
            self.stream.announce_end();
        }
        Poll::Ready(Turn::Close)
    }

    /// The head of a request did not arrive in time: answers, and reports that as a request.
    fn refuse_late_head(&mut self, cx: &mut Context<'_>) {
        let (worker, settings) = (Rc::clone(&self.worker), self.worker.settings());
        let (mut out, mut served) = (Vec::new(), worker.served.take());
        let receiver = self.receiver(&worker, &settings);
        fast::refuse_late_head(&receiver, self.unread().len(), &mut out, &mut served);
        self.requests = self.requests.saturating_add(1);
        self.close();
        let written = self.send(&out, cx);
        let unsent = served::report(
            &worker.log_sinks(),
            self.facts(),
            &settings,
            (&[], &out),
            written.ok_or(Interruption::ClientLeft),
            std::time::Instant::now(),
            &mut served,
        );
        if unsent.is_some() {
            self.active.get_or_insert_default().unsent = unsent;
        }
        worker.served.replace(served);
    }

    /// Says that nothing more will come, then reads and drops for a moment what the client still
    /// sends.
    async fn linger(&mut self) {
        let limits = self.worker.settings();
        let mut left = limits.config.limits.request_body_drain.as_usize();
        let drained = tokio::time::timeout(LINGER, async {
            if poll_fn(|cx| self.stream.poll_close(cx)).await.is_err() {
                return;
            }
            while left > 0 {
                let read = poll_fn(|cx| self.poll_discard(cx)).await;
                if read == 0 {
                    return;
                }
                left = left.saturating_sub(read);
            }
        });
        // past the limit the connection is cut: that is what the limit is for
        let _ = drained.await;
    }

    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let mut scratch = self.worker.scratch();
        let mut buffer = ReadBuf::new(&mut scratch);
        match ready!(self.stream.poll_read(cx, &mut buffer)) {
            Ok(()) => Poll::Ready(buffer.filled().len()),
            Err(_) => Poll::Ready(0),
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.report_unsent(Some(Interruption::Drained));
        let in_queues = &self.worker.content_in_queues;
        let limits = &self.worker.settings().config.limits;
        let silence = limits.client_silence.as_duration();
        in_queues.close(self.number, self.stream.tcp(), silence);
        self.worker.net().forget_sleeper(&mut self.sleeper);
    }
}

/// A gathering of large answers must not stay the worker's for ever.
fn shrink(out: &mut Vec<u8>) {
    if out.capacity() > 4 * GATHER_BYTES_MAX {
        *out = Vec::with_capacity(GATHER_BYTES_MAX);
    }
}
