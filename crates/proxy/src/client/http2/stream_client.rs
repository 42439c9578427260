//! The requests of one connection, each on its stream.

use crate::client::fast::{self, ContentInStore, HeadTime, Input, InputResult, Receiver};
use crate::client::own_target::OwnAuthority;
use crate::exchange::run::{self, InFlight};
use crate::exchange::state::RequestState;
use crate::log::client::{ClientFacts, ForPeers, ListenerFacts};
use crate::log::served::{self, Interruption, ServedRequest};
use crate::request::who_asked::counted_client;
use crate::send::heads::INLINE_BYTES_MAX;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::time::Instant;
use weir_measure::{Http2Reset, Metric};
use weir_net::Deadline;
use weir_net::http::{ClientStream, Http2Answer, Http2Stream};
use weir_net::next_hops::DistinctPeers;
use weir_net::workers::ResetBudget;
use weir_policy::destination::ClientNetwork;
use weir_policy::route::ConnectionHops;
use weir_wire::{LineBuffer, Progress, parse_request};

/// Copies of stored responses that wait for the windows of one connection, bytes; further ones are
/// not copied before they can be sent.
const COPIED_BYTES_MAX: usize = 8 * 1024;

/// What the requests of a connection have of it.
pub(super) struct StreamClient {
    pub(super) worker: Rc<Worker>,
    pub(super) listener: Rc<ListenerFacts>,
    pub(super) peer: SocketAddr,
    pub(super) number: u64,
    /// What is for the proxy itself, of a forward proxy.
    pub(super) own: Option<OwnAuthority>,
    /// It is a trusted proxy's, with requests of several clients.
    pub(super) has_several_clients: bool,
    /// Next hops that requests were sent to.
    pub(super) next_hops: Cell<DistinctPeers>,
    /// Where requests were sent, by route, once a route looks at that.
    pub(super) hops: RefCell<Option<Rc<RefCell<ConnectionHops>>>>,
    /// Responses that were made at once, and wait for their windows.
    pub(super) copied_bytes: Cell<usize>,
}

/// A request, whose head was received.
pub(super) struct StreamRequest {
    /// Its head as HTTP/1.1 has it.
    pub(super) head: Vec<u8>,
    /// Which request of its connection it is, from 1.
    pub(super) sequence: u32,
    /// When that came.
    pub(super) head_time: HeadTime,
    /// The settings that were in force then.
    pub(super) settings: Arc<Settings>,
}

/// What becomes of a request.
pub(super) enum TakeResult {
    /// A response was made at once.
    Answered(Answered),
    /// The login of the client is being verified.
    Login(Box<oneshot::Receiver<()>>, StreamRequest),
    /// The answer needs more.
    Exchange(Box<RequestState>),
}

/// A response that was made at once: as HTTP/1.1 has it, and what is reported when it is sent.
pub(super) struct Answered {
    request: StreamRequest,
    out: Vec<u8>,
    /// Its content, if that is not in `out`.
    content: Option<Box<ContentInStore>>,
    served: Vec<ServedRequest>,
}

/// The same on its way to the client.
pub(super) struct Sending {
    request: StreamRequest,
    pub(super) answer: Http2Answer,
    content: Option<Box<ContentInStore>>,
    served: Vec<ServedRequest>,
}

/// A response that was made at once and is not sent yet, which counts for its connection until this
/// is dropped.
struct CopiedBytes {
    client: Rc<StreamClient>,
    bytes: usize,
}

impl CopiedBytes {
    fn begin(client: &Rc<StreamClient>, bytes: usize) -> Self {
        client.copied_bytes.set(client.copied_bytes.get() + bytes);
        Self {
            client: Rc::clone(client),
            bytes,
        }
    }
}

impl Drop for CopiedBytes {
    fn drop(&mut self) {
        let all = &self.client.copied_bytes;
        all.set(all.get() - self.bytes);
    }
}

impl Sending {
    pub(super) fn new(answered: Answered, stream: Http2Stream) -> Self {
        let Answered {
            request,
            out,
            content,
            served,
        } = answered;
        let head_bytes = served.last().map_or(0, |served| served.response.end);
        Self {
            request,
            answer: Http2Answer::new(stream, out, head_bytes),
            content,
            served,
        }
    }

    /// Lets go of what is not needed while it waits for a window. Of a head whose content is in the
    /// store the log has what it says of it.
    fn shrink(&mut self) {
        self.request.head.shrink_to_fit();
        if self.content.is_some() {
            self.answer.forget_sent();
        }
    }

    /// Sends what can be sent; ready when that is all, or with an error once the client has no part
    /// in it any more.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Interruption>> {
        let sent = self.answer.poll_sent(cx, self.content.as_deref());
        sent.map_err(|_| Interruption::ClientLeft)
    }
}

impl StreamClient {
    /// Its facts, for one request.
    fn facts(&self, sequence: u32) -> ClientFacts<'_> {
        ClientFacts {
            listener: &self.listener,
            peer: self.peer,
            connection: self.number,
            sequence,
        }
    }

    /// Judges a request, and answers it if that can be done at once.
    pub(super) fn take(&self, request: StreamRequest) -> TakeResult {
        let content_place = Cell::new(None);
        let client = self.facts(request.sequence);
        let receiver = Receiver {
            copied_bytes_max: match self.copied_bytes.get() < COPIED_BYTES_MAX {
                true => INLINE_BYTES_MAX,
                // as a larger one: it stays in the store, and is sent from there
                false => 0,
            },
            content_place: self
                .sends_from_store(&request.settings)
                .then_some(&content_place),
            ..Receiver::new(&self.worker, &request.settings, client, request.head_time)
        };
        let (mut out, mut served) = (Vec::new(), Vec::with_capacity(1));
        let input = Input {
            bytes: &request.head,
            at: 0,
        };
        match fast::take(&receiver, input, &mut out, &mut served) {
            InputResult::Login(waiting) => TakeResult::Login(waiting, request),
            InputResult::Exchange { exchange, .. } => TakeResult::Exchange(exchange),
            // the text is whole: it is never partial
            InputResult::Answered { .. } | InputResult::Partial => TakeResult::Answered(Answered {
                request,
                out,
                content: content_place.take(),
                served,
            }),
        }
    }

    /// Whether a large response that is in memory needs no exchange: nodes of a cluster count those
    /// that they are sending, and of a connection with several clients one may have no resets left.
    fn sends_from_store(&self, settings: &Settings) -> bool {
        let is_for_clients = self.listener.peers == ForPeers::No;
        is_for_clients && !self.has_several_clients && settings.cluster().is_none()
    }

    /// Answers a request once its login is verified.
    pub(super) async fn answer_later(
        self: Rc<Self>,
        mut waiting: Box<oneshot::Receiver<()>>,
        mut request: StreamRequest,
        stream: Http2Stream,
    ) {
        loop {
            // or not: what is known by then decides
            let _ = waiting.await;
            request.settings = self.worker.settings();
            request.head_time = HeadTime::Now;
            match self.take(request) {
                TakeResult::Login(further, again) => (waiting, request) = (further, again),
                TakeResult::Answered(answered) => {
                    let mut sending = Box::new(Sending::new(answered, stream));
                    let polled = poll_fn(|cx| Poll::Ready(sending.poll_sent(cx))).await;
                    match polled {
                        Poll::Ready(sent) => self.report(*sending, sent),
                        Poll::Pending => return self.send_rest(sending).await,
                    };
                    return;
                }
                TakeResult::Exchange(exchange) => {
                    return Box::pin(self.exchange(exchange, Box::new(stream))).await;
                }
            }
        }
    }

    /// What a client has left of resets that requests of this connection count for. A proxy that
    /// names no client is none: all those behind it would share that of one.
    fn resets_of(&self, counted: Option<ClientNetwork>) -> Option<ResetBudget> {
        let proxy = ClientNetwork::of(self.peer.ip());
        let client = counted.filter(|client| self.has_several_clients && *client != proxy)?;
        Some(self.worker.net().reset_budget(client))
    }

    /// The same of the client that the head of a request names.
    fn resets_by_head(&self, head: &[u8], settings: &Settings) -> Option<ResetBudget> {
        let mut lines = LineBuffer::new();
        match parse_request(head, &settings.heads, &mut lines) {
            Ok(Progress::Complete { head, .. }) => {
                self.resets_of(counted_client(settings, self.facts(0), head.fields))
            }
            Ok(Progress::Partial) | Err(_) => None,
        }
    }

    /// A request with this head was reset before it was given to this.
    pub(super) fn note_abandoned(&self, head: &[u8]) {
        if let Some(resets) = self.resets_by_head(head, &self.worker.settings()) {
            resets.note(self.worker.now().tick);
        }
    }

    /// Carries out an exchange. Its stream is boxed until this begins: a future holds what it is
    /// given as long as it lasts.
    pub(super) async fn exchange(
        self: Rc<Self>,
        mut exchange: Box<RequestState>,
        mut stream: Box<Http2Stream>,
    ) {
        let counters = self.worker.counters();
        let is_reset = stream.is_reset();
        if self.has_several_clients
            && let Some(resets) = self.resets_of(exchange.counted_client())
        {
            if !is_reset && resets.is_exhausted(self.worker.now().tick) {
                counters.inc(Metric::Http2Resets(Http2Reset::ClientResets));
                return stream.refuse_calmly();
            }
            stream.count_resets_for(resets);
        }
        if is_reset {
            // frames that had come were read before this task began: nothing is forwarded
            counters.inc(Metric::Http2AbandonedRequests);
            return stream.abandon();
        }
        if exchange.settings.remembers_connections {
            let mut hops = self.hops.borrow_mut();
            exchange.client.remember(hops.get_or_insert_default());
        }
        let limits = &exchange.settings.config.limits;
        let mut deadline = Deadline::new(limits.client_silence.as_duration());
        let trailers = (exchange.settings.heads, exchange.named_in_trailers());
        let length = exchange.request.body;
        let mut stream =
            ClientStream::http2(*stream, length, trailers, &mut deadline, &self.next_hops);
        stream.response.leave_out(exchange.left_out());
        run::run(&mut stream, exchange).await;
    }

    /// Sends what is left of a response that was made at once, and waits for its window. It is
    /// boxed: the future would hold it twice.
    pub(super) fn send_rest(self: Rc<Self>, mut sending: Box<Sending>) -> impl Future<Output = ()> {
        sending.shrink();
        let copied = CopiedBytes::begin(&self, sending.answer.text().len());
        let unreported = Unreported {
            client: self,
            sending: Some(sending),
        };
        unreported.send(copied)
    }

    /// Counts and logs a response that was made at once, and was sent as a whole or not; when that
    /// was.
    pub(super) fn report(&self, sending: Sending, sent: Result<(), Interruption>) -> Instant {
        let is_whole = sent.is_ok();
        let Sending {
            request,
            mut answer,
            content,
            mut served,
        } = sending;
        let (worker, settings) = (&self.worker, &request.settings);
        if !is_whole
            && self.has_several_clients
            && let Some(resets) = self.resets_by_head(&request.head, settings)
        {
            answer.count_resets_for(resets);
        }
        let text = answer.text();
        // it may be forgotten
        let text_bytes = served.last().map_or(0, |served| served.end);
        let mut response_bytes = text_bytes as u64;
        if let Some(content) = content {
            response_bytes = answer.sent_bytes();
            let sent = (response_bytes, is_whole);
            let client = self.facts(request.sequence);
            content.ended((worker, settings), client, &request.head, sent, &mut served);
        }
        if self.listener.peers == ForPeers::No && settings.config.admin.top {
            let (requests, bytes) = (served.len() as u64, response_bytes);
            let address = self.peer.ip();
            worker.top.borrow_mut().answered(address, requests, bytes);
        }
        let counters = worker.counters();
        counters.add(Metric::BytesToClients, answer.sent_bytes());
        if sent == Err(Interruption::ClientLeft) {
            counters.inc(Metric::ClientAborts);
        }
        let now = Instant::now();
        served::report(
            &worker.log_sinks(),
            self.facts(request.sequence),
            settings,
            (&request.head, text),
            sent.map(|()| text_bytes),
            now.into_std(),
            &mut served,
        );
        now
    }
}

/// A response that was made at once and is not sent yet. Where the end of a drain cuts it, it is
/// reported, too.
struct Unreported {
    client: Rc<StreamClient>,
    sending: Option<Box<Sending>>,
}

impl Unreported {
    async fn send(mut self, _copied: CopiedBytes) {
        let Some(sending) = &mut self.sending else {
            return;
        };
        let silence = sending.request.settings.config.limits.client_silence;
        let silence = silence.as_duration();
        let mut deadline = Deadline::new(silence);
        let worker = Rc::clone(&self.client.worker);
        let _in_flight = InFlight::begin(&worker);
        let mut sent_bytes = sending.answer.sent_bytes();
        let sent = poll_fn(|cx| {
            let polled = sending.poll_sent(cx);
            if polled.is_pending() {
                // one that waits for more urgent ones, or for the socket, has other limits
                if sending.answer.sent_bytes() != sent_bytes || sending.answer.is_held_back() {
                    sent_bytes = sending.answer.sent_bytes();
                    deadline.set(silence);
                }
                return deadline
                    .poll_passed(cx)
                    .map(|()| Err(Interruption::ClientLeft));
            }
            polled
        });
        let sent = sent.await;
        self.report(sent);
    }

    fn report(&mut self, sent: Result<(), Interruption>) {
        if let Some(sending) = self.sending.take() {
            self.client.report(*sending, sent);
        }
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.report(Err(Interruption::Drained));
        }
    }
}

/// Bytes of what carries out a request that needs more than one pass.
#[cfg(test)]
pub(crate) const fn size_of_exchange() -> usize {
    const fn size_of_made<F>(
        _: fn(Rc<StreamClient>, Box<RequestState>, Box<Http2Stream>) -> F,
    ) -> usize {
        size_of::<F>()
    }
    size_of_made(StreamClient::exchange)
}
