//! Receives the response of the next hop: interim responses, the final head, then its content.
//!
//! The next hop is trusted no more than the client: bytes that are not unambiguously one response
//! to this request are refused. Deviations that the RFCs say how to read are accepted
//! (`wire::parse_response_leniently`), and the head is serialised again for the client. In both
//! cases the connection is not used again.

use crate::cache::freshen::{self, Merging};
use crate::cache::invalidate;
use crate::exchange::heads::inbound;
use crate::exchange::module_calls::{self, ModuleAnswer};
use crate::exchange::respond;
use crate::exchange::response_outcome::silent;
pub(crate) use crate::exchange::response_outcome::{
    FetchStart, HopFailure, ResponseOutcome, broken,
};
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::Sending;
use crate::fetch::arrival::{self, Response, Storing};
use crate::fetch::collapse::Leader;
use crate::fetch::missing_range;
use crate::fetch::relay::{Relay, RelayEnd, Terms};
use crate::fetch::store_writer::StoreWriter;
use crate::log::record::End;
use crate::log::report;
use crate::log::request_log::ContentSource;
use crate::request::answer::AnswerReason;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_measure::Metric;
use weir_net::Deadline;
use weir_net::http::{
    ContentForm, Disconnect, FormerHead, ReceivedHead, ResponseReceiver, ResponseSender,
};
use weir_policy::fetch::AbortPolicy;
use weir_policy::transaction::says_about_target;
use weir_policy::{Command, Commands, Event};
use weir_semantics::{Fits, Method, ProxyError, ResponseFacts};
use weir_store::{Purge, StoredResponse};
use weir_wire::{BodyLength, LineBuffer};

/// Interim responses passed on for one request. RFC 9110 §15.2 sets no limit; an endless row of
/// them is an attack.
const INTERIM_MAX: u32 = 32;

/// The two sides of the exchange, and what belongs to it.
pub(crate) struct Parties<'a, 'c> {
    pub(crate) sending: &'a Cell<Sending>,
    pub(crate) from_hop: ResponseReceiver<'a>,
    /// The client, if there is one.
    pub(crate) to_client: Option<&'a mut ResponseSender<'c>>,
    pub(crate) exchange: &'a mut RequestState,
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) deadline: &'a mut Deadline,
    pub(crate) stored: Option<&'a Arc<StoredResponse>>,
}

/// Receives the response.
pub(crate) async fn run(parties: Parties<'_, '_>) -> ResponseOutcome {
    let config = &parties.exchange.settings.config;
    let limits = &config.limits;
    let half_closed = config.fetch.half_closed.as_duration();
    let mut download = Download {
        interim: 0,
        silence: limits.next_hop_silence.as_duration(),
        disconnect: parties
            .to_client
            .as_ref()
            .map(|client| client.disconnect(half_closed)),
        purges: Vec::new(),
        former: None,
        has_client_closed: false,
        parties,
    };
    loop {
        let step = match download.next_head().await {
            Ok(step) => step,
            Err(failure) => return ResponseOutcome::Failed(failure),
        };
        if !download.purges.is_empty() {
            let purges = std::mem::take(&mut download.purges);
            invalidate::durable(download.parties.worker, purges).await;
        }
        match step {
            Step::Interim { head } => {
                let is_continue = head.starts_with(b"HTTP/1.1 100 ");
                if is_continue && download.parties.sending.get() == Sending::Expected {
                    // it is the client's turn
                    download.parties.sending.set(Sending::NotBegun);
                }
                let passed = download.pass_interim(&head).await;
                if passed == InterimResult::Stuck
                    || passed == InterimResult::ClientClosed && !download.continues_without_client()
                {
                    return ResponseOutcome::ClientLeft;
                }
            }
            Step::Final(outcome) => return outcome,
            Step::Relay(plan) => return download.relay(plan).await,
        }
    }
}

struct Download<'a, 'c> {
    parties: Parties<'a, 'c>,
    interim: u32,
    /// How long the next hop may say nothing.
    silence: Duration,
    disconnect: Option<Disconnect<'c>>,
    /// What the response invalidates: it is passed on once that is durable.
    purges: Vec<Purge>,
    /// The head as it was before modules changed it; `None` until they have seen it.
    former: Option<FormerHead>,
    /// The client had closed its connection when an interim response was sent.
    has_client_closed: bool,
}

enum Step {
    Interim { head: Vec<u8> },
    Final(ResponseOutcome),
    Relay(RelayPlan),
}

struct RelayPlan {
    status: u16,
    head: Vec<u8>,
    body: BodyLength,
    form: ContentForm,
    store_writer: Option<Box<StoreWriter>>,
}

/// The result of forwarding an interim response.
#[derive(PartialEq, Eq)]
enum InterimResult {
    Sent,
    /// The client has closed its connection.
    ClientClosed,
    /// The client took only some of it, in all the time it had.
    Stuck,
}

/// The result of one read.
enum ReadResult {
    Bytes,
    /// Nothing yet: meanwhile all content of the request was sent.
    ContentSent,
    End,
    Failed,
    Silent,
    /// No client waits for it any more.
    NotAwaited,
}

impl Download<'_, '_> {
    /// Reads until a whole head is there, and decides on it.
    async fn next_head(&mut self) -> Result<Step, HopFailure> {
        let heads = self.parties.exchange.settings.response_heads;
        let silence = self
            .parties
            .exchange
            .settings
            .config
            .limits
            .next_hop_silence;
        self.parties.deadline.set(silence.as_duration());
        loop {
            if self.parties.from_hop.is_worth_reading(&heads) {
                if self.parties.exchange.modules.is_some()
                    && self.former.is_none()
                    && let Err(answer) = Box::pin(self.pass_modules()).await
                {
                    return Ok(Step::Final(ResponseOutcome::Module(Box::new(answer))));
                }
                if let Some(step) = self.try_step().map_err(HopFailure::Broken)? {
                    return Ok(step);
                }
            }
            match poll_fn(|cx| self.poll_read(cx)).await {
                ReadResult::Bytes => {}
                ReadResult::ContentSent => {
                    if self.parties.exchange.is_hooked() {
                        self.parties.exchange.run_hooks().await;
                    }
                }
                ReadResult::Silent => return Err(silent(silence)),
                ReadResult::NotAwaited => return Ok(Step::Final(ResponseOutcome::ClientLeft)),
                ReadResult::End | ReadResult::Failed
                    if !self.parties.from_hop.has_received() && self.interim == 0 =>
                {
                    return Err(HopFailure::Unanswered(AnswerReason::new(
                        ProxyError::ConnectionTerminated,
                        "the next hop closed the connection without a response",
                    )));
                }
                ReadResult::End | ReadResult::Failed => {
                    return Err(HopFailure::Broken(AnswerReason::new(
                        ProxyError::HttpResponseIncomplete,
                        "the next hop closed the connection within the response head",
                    )));
                }
            }
        }
    }

    /// Has modules see the final head at the front of what was received, if all of it is there.
    async fn pass_modules(&mut self) -> Result<(), ModuleAnswer> {
        let Parties {
            exchange, from_hop, ..
        } = &mut self.parties;
        let received = from_hop.take_received();
        let mut lines = LineBuffer::new();
        let (method, heads) = (exchange.request.method, exchange.settings.response_heads);
        let parsed = received.head(method, &heads, &mut lines);
        let Ok(Some(found)) = parsed else {
            from_hop.return_received(received, None);
            return Ok(());
        };
        let head = &found.head;
        if head.status < 200 {
            from_hop.return_received(received, None);
            return Ok(());
        }
        self.former = Some(found.former());
        let start = (head.version, head.status, head.reason);
        let changed = module_calls::response_received(exchange, start, head.fields).await;
        let received = match changed {
            Ok(Some(changed)) => received.with_head(found.bytes(), changed),
            Ok(None) => received,
            Err(answer) => return Err(answer),
        };
        from_hop.return_received(received, None);
        Ok(())
    }

    /// Receives once.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadResult> {
        if self.parties.sending.get() == Sending::ClientStopped {
            return Poll::Ready(ReadResult::NotAwaited);
        }
        if self.parties.sending.get() == Sending::Done && self.parties.exchange.content_sent() {
            return Poll::Ready(ReadResult::ContentSent);
        }
        let mut scratch = self.parties.worker.scratch();
        match self.parties.from_hop.poll_receive_head(cx, &mut scratch) {
            Poll::Pending => {
                if self.poll_not_awaited(cx).is_ready() {
                    return Poll::Ready(ReadResult::NotAwaited);
                }
                // while request content is sent, its own limits hold; the response is due from its
                // end on
                if self.parties.sending.get().is_under_way() {
                    self.parties.deadline.set(self.silence);
                }
                self.parties
                    .deadline
                    .poll_passed(cx)
                    .map(|()| ReadResult::Silent)
            }
            Poll::Ready(Err(_)) => Poll::Ready(ReadResult::Failed),
            Poll::Ready(Ok(0)) => Poll::Ready(ReadResult::End),
            Poll::Ready(Ok(count)) => {
                self.parties.exchange.log.received(count as u64);
                Poll::Ready(ReadResult::Bytes)
            }
        }
    }

    /// Ready once the client has disconnected and no other request waits for the response. Until
    /// the head is received, only this decides whether the fetch continues.
    fn poll_not_awaited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Parties {
            exchange, sending, ..
        } = &self.parties;
        let (Some(disconnect), Sending::Done) = (&mut self.disconnect, sending.get()) else {
            return Poll::Pending;
        };
        ready!(disconnect.poll(cx));
        if exchange.settings.abort == AbortPolicy::Finish {
            return Poll::Pending;
        }
        match &exchange.leader {
            Some(leader) => leader.poll_not_awaited(cx),
            None => Poll::Ready(()),
        }
    }

    /// Decides on the head at the front of what was received; `None` while it is not whole.
    fn try_step(&mut self) -> Result<Option<Step>, AnswerReason> {
        let received = self.parties.from_hop.take_received();
        let mut lines = LineBuffer::new();
        let exchange = &self.parties.exchange;
        let (method, heads) = (exchange.request.method, exchange.settings.response_heads);
        let (step, accepted) = match received.head(method, &heads, &mut lines) {
            Ok(Some(head)) => {
                let head = head.in_place_of(self.former.unwrap_or_default());
                (self.judge(&head).map(Some), Some(head.acceptance()))
            }
            Ok(None) => (Ok(None), None),
            Err(error) => (Err(broken(&error)), None),
        };
        self.parties.from_hop.return_received(received, accepted);
        step
    }

    fn judge(&mut self, received: &ReceivedHead<'_, '_>) -> Result<Step, AnswerReason> {
        let head = &received.head;
        let exchange = &mut *self.parties.exchange;
        if head.status == 101 {
            if !exchange.request.upgrade {
                return Err(broken(&"it switches protocols without being asked to"));
            }
            return Ok(Step::Final(ResponseOutcome::Switched {
                head: inbound::switching_head(head, &exchange.settings),
            }));
        }
        if head.status < 200 {
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(broken(&"it sends interim responses without end"));
            }
            let head = inbound::interim_head(head);
            return Ok(Step::Interim { head });
        }
        self.judge_final(received)
    }

    fn judge_final(&mut self, received: &ReceivedHead<'_, '_>) -> Result<Step, AnswerReason> {
        let head = &received.head;
        let Parties {
            exchange,
            worker,
            stored,
            sending,
            to_client,
            ..
        } = &mut self.parties;
        let body = received.length.map_err(|error| broken(&error))?;
        let now = worker.now();
        let settings = Arc::clone(&exchange.settings);
        let targeted = settings.targeted(exchange.request.mode);
        let facts = ResponseFacts {
            has_mixed_line_ends: received.has_mixed_line_ends,
            ..ResponseFacts::gather(head.status, head.fields, now.wall)
                .targeted(head.fields, targeted)
        };
        let response = Response {
            head,
            body,
            buffered: received.buffered,
        };
        exchange.log.answered(received.is_persistent);
        if let (Some(missing), Some(stored)) = (&exchange.missing, stored.as_deref())
            && missing.is_for_one()
        {
            let fits = missing.fits(stored, &facts, head.fields, body);
            return Ok(Step::Final(continued(exchange, &response, fits)));
        }
        let (date, mut stored_lines) = (worker.date(), LineBuffer::new());
        let stored = stored.filter(|_| exchange.tx.may_update(head.status));
        let merging = stored.map(|stored| {
            let fits = freshen::fits(stored, exchange.missing.as_ref(), head, &facts, body);
            Merging::new(
                worker,
                targeted,
                stored,
                &mut stored_lines,
                head.fields,
                &date,
                fits,
            )
        });
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(&facts)),
            None => Event::Response(&facts),
        };
        let commands = exchange.tx.handle(now, &settings.rules, event);
        // an answer to a request that is not whole ends the connection, and says so (RFC 9112 §9.3)
        if sending.get() != Sending::Done
            && let Some(client) = to_client
        {
            client.close_after();
        }
        Ok(match self.obey(&commands, &response, merging.as_ref()) {
            Ok(storing) => self.begin(&response, storing, merging),
            Err(outcome) => Step::Final(outcome),
        })
    }

    /// Carries out the commands that need no content. Returns what to store, or the outcome if the
    /// response is not for the client.
    fn obey(
        &mut self,
        commands: &Commands,
        response: &Response<'_>,
        merging: Option<&Merging<'_>>,
    ) -> Result<Option<Storing>, ResponseOutcome> {
        let Parties {
            exchange,
            worker,
            stored,
            ..
        } = &mut self.parties;
        let replaces = commands
            .iter()
            .any(|command| matches!(command, Command::Store(_)));
        let (mut storing, mut fresh) = (None, None);
        for command in commands.iter() {
            match command {
                Command::Freshen(_) => {
                    fresh = merging.map(|merging| merging.store(worker, exchange));
                }
                Command::ServeMerged(serving) => {
                    let Some(merging) = merging else { continue };
                    report::count_merged(worker.counters(), exchange.tx.verdict());
                    return Err(ResponseOutcome::Merged {
                        response: merging.for_client(worker, exchange, fresh.clone()),
                        stored: fresh,
                        serving,
                    });
                }
                Command::Serve(serving) => {
                    arrival::discard(exchange, response);
                    return Err(ResponseOutcome::ServeStale(serving));
                }
                Command::Store(facts) => storing = Some(Storing::New(facts)),
                Command::Combine(facts) => storing = Some(Storing::Part(facts)),
                Command::Invalidate => {
                    self.purges
                        .extend(invalidate::run(worker, exchange, response.head));
                }
                Command::Drop => {
                    if let Some(stored) = stored {
                        // after a purge the disk refuses responses that were requested before it
                        if replaces || exchange.fills_missing_range() {
                            worker.shared.store.drop_one(exchange.key, stored);
                        } else {
                            let purge = invalidate::one(worker, exchange, stored);
                            self.purges.push(purge);
                        }
                    }
                }
                Command::ForwardAgain => {
                    arrival::discard(exchange, response);
                    let is_same = merging.is_some_and(|merging| merging.fits() == Fits::Same);
                    return Err(if exchange.fills_missing_range() && is_same {
                        ResponseOutcome::NotShared
                    } else {
                        ResponseOutcome::ForwardAgain
                    });
                }
                _ => {}
            }
        }
        if exchange.fills_missing_range() && !matches!(storing, Some(Storing::Part(_))) {
            arrival::discard(exchange, response);
            return Err(missing_range::refused(response.head.status));
        }
        Ok(storing)
    }

    /// Begins to forward the response: through the store if it is stored, else by a relay.
    fn begin(
        &mut self,
        response: &Response<'_>,
        storing: Option<Storing>,
        merging: Option<Merging<'_>>,
    ) -> Step {
        let Parties {
            exchange,
            worker,
            to_client,
            ..
        } = &mut self.parties;
        let now = worker.now();
        if storing.is_some_and(|storing| !storing.facts().answers_others(now)) {
            exchange.release_followers(worker, true);
        }
        let is_there = response.buffered.is_whole();
        let mut store_writer = None;
        if let Some(storing) = storing {
            if exchange.is_for_store_alone() && !is_there && worker.shared.background.is_nothing() {
                exchange.tell(worker, Event::Incomplete);
            } else if arrival::is_stored_by_relay(exchange, response, &storing) {
                if let Storing::New(facts) = storing {
                    store_writer =
                        StoreWriter::begin(worker, exchange, response.head, response.body, facts)
                            .map(Box::new);
                }
            } else if let Some(arrived) =
                arrival::begin(worker, exchange, response, storing, merging)
            {
                exchange.log.handed_on(response.buffered.len() as u64);
                return Step::Final(ResponseOutcome::FetchStarted(Box::new(arrived)));
            }
        }
        if store_writer.is_none() {
            exchange.expected = None;
            exchange.release_followers(worker, says_about_target(response.head.status));
            if to_client.is_none() && !is_there {
                // there is neither a client nor room in the store
                arrival::discard(exchange, response);
                report::count_storing(worker.counters(), exchange.tx.verdict());
                return Step::Final(ResponseOutcome::ClientLeft);
            }
        }
        Step::Relay(relay_plan(exchange, response, store_writer))
    }

    /// Whether the fetch continues though the client has disconnected: other requests wait for the
    /// response, or it is to be finished for the store.
    fn continues_without_client(&self) -> bool {
        let exchange = &self.parties.exchange;
        let is_awaited = exchange.leader.as_ref().is_some_and(Leader::is_awaited);
        is_awaited || exchange.settings.abort == AbortPolicy::Finish
    }

    /// Passes an interim response on.
    async fn pass_interim(&mut self, head: &[u8]) -> InterimResult {
        let Some(client) = &mut self.parties.to_client else {
            return InterimResult::Sent;
        };
        client.push_interim(head);
        let silence = {
            let config = &self.parties.exchange.settings.config;
            config.limits.client_silence.as_duration()
        };
        let sending = poll_fn(|cx| client.poll_send(cx, &[], None));
        match tokio::time::timeout(silence, sending).await {
            Ok(Ok(_)) => InterimResult::Sent,
            Ok(Err(_)) => {
                // nothing more can be sent to it
                self.parties.to_client = None;
                self.has_client_closed = true;
                InterimResult::ClientClosed
            }
            Err(_) => InterimResult::Stuck,
        }
    }

    async fn relay(&mut self, plan: RelayPlan) -> ResponseOutcome {
        let Parties {
            sending,
            from_hop,
            to_client,
            exchange,
            worker,
            deadline,
            ..
        } = &mut self.parties;
        if let Some(client) = to_client {
            let (status, head, form) = (plan.status, plan.head, plan.form);
            let begun = respond::begin_sent(client, exchange, status, head, form).await;
            if let Err(refusal) = begun {
                let answer = Box::new(ModuleAnswer::Refuse(refusal));
                return ResponseOutcome::Module(answer);
            }
        }
        let mut relay = Relay::new(
            worker,
            (sending, deadline),
            Terms::of(exchange),
            (plan.body, plan.form),
            plan.store_writer,
            exchange.log.content_times(),
        );
        exchange.log.handed_on(from_hop.buffered_bytes() as u64);
        let mut ended = relay.run(from_hop, to_client.as_deref_mut()).await;
        let is_taken_back = matches!(ended.end, RelayEnd::Cut(_))
            && match to_client {
                Some(client) => client.retract(),
                None => ended.body_bytes == 0,
            };
        if self.has_client_closed && ended.end == RelayEnd::Whole {
            // it was received for the store alone
            ended.end = RelayEnd::ClientLeft;
        }
        settle(exchange, worker, &ended, is_taken_back);
        if let RelayEnd::Cut(word) = ended.end
            && is_taken_back
        {
            return ResponseOutcome::Failed(HopFailure::Broken(broken(&word)));
        }
        ResponseOutcome::Relayed
    }
}

/// The rest of a response, fetched for one client alone. Nothing of it is stored: it only has to be
/// of the representation whose beginning the client has.
fn continued(exchange: &mut RequestState, response: &Response<'_>, fits: Fits) -> ResponseOutcome {
    let arrived = (fits == Fits::Same).then(|| arrival::fill(exchange, response));
    if let Some(arrived) = arrived.flatten() {
        exchange.log.handed_on(response.buffered.len() as u64);
        return ResponseOutcome::FetchStarted(Box::new(arrived));
    }
    arrival::discard(exchange, response);
    missing_range::refused(response.head.status)
}

fn relay_plan(
    exchange: &RequestState,
    response: &Response<'_>,
    store_writer: Option<Box<StoreWriter>>,
) -> RelayPlan {
    let Response { head, body, .. } = *response;
    let form = ContentForm::of(exchange.request.method, head.status, body);
    RelayPlan {
        status: head.status,
        head: inbound::response_head(exchange, head, form),
        body,
        form,
        store_writer,
    }
}

/// Enters the bytes of a relay into the log, and whether the response was stored into the verdict.
/// If the head was taken back, the proxy sends a response of its own.
fn settle(
    exchange: &mut RequestState,
    worker: &Worker,
    ended: &crate::fetch::relay::RelayResult,
    is_taken_back: bool,
) {
    let log = &mut exchange.log;
    log.content_left(ended.content_times);
    log.relayed(
        ended.from_hop_bytes,
        ended.delivered_bytes,
        ended.body_bytes - ended.delivered_bytes,
        ended.overhead_bytes,
    );
    log.sent_content(ended.delivered_bytes, ContentSource::NextHop);
    if let Some(refusal) = ended.refused {
        exchange.tell(worker, Event::NotAdmitted(refusal));
    }
    match ended.end {
        RelayEnd::Whole => exchange.log.ended(End::Whole),
        RelayEnd::Cut(word) => {
            exchange.log.broke_off(End::NextHopCut, word);
            exchange.tell(worker, Event::Incomplete);
            // an answer of ours is counted there
            if !is_taken_back {
                worker.counters().inc(Metric::NextHopErrors);
            }
        }
        RelayEnd::ClientLeft => {
            exchange.log.broke_off(End::ClientLeft, "client-left");
            if !ended.stored {
                exchange.tell(worker, Event::Incomplete);
            }
            if !exchange.background {
                worker.counters().inc(Metric::ClientAborts);
            }
        }
    }
    if exchange.request.method == Method::Head {
        report::count_merged(worker.counters(), exchange.tx.verdict());
    } else {
        report::count_storing(worker.counters(), exchange.tx.verdict());
    }
}
