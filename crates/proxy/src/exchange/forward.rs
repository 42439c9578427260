//! Forwards a request: connection, request, response, and what follows a failure.

mod asking;

pub(crate) mod instead_of_read;

use self::asking::Asking;
use crate::cache::chosen::ChosenResponse;
use crate::cache::disk_lookup;
use crate::cache::variants;
use crate::exchange::attempts::{Attempts, Failed, NoStream, PassResult};
use crate::exchange::download::{self, FetchStart, HopFailure, ResponseOutcome};
use crate::exchange::follow::{self, FollowResult};
use crate::exchange::heads::outbound;
use crate::exchange::module_calls;
use crate::exchange::next_hop::NextHop;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::exchange::stored;
use crate::exchange::switch;
use crate::exchange::upload;
use crate::exchange::upload::progress::{Sending, UploadEnd};
use crate::fetch::arrival::InitiatorResponse;
use crate::fetch::in_flight::{self, InFlightResponse};
use crate::fetch::missing_range;
use crate::fetch::reader::{ReaderHandle, Start};
use crate::fetch::transfer;
use crate::log::record::End;
use crate::modules::content_source::FedContent;
use crate::request::answer::{Answer, AnswerReason};
use crate::worker::core::Worker;
use crate::worker::in_box;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::Deadline;
use weir_net::http::{ClientStream, NextHopStream, RequestContent, RequestSender};
use weir_policy::{Command, Event, Failure, Forwarding, RefuseReason};
use weir_semantics::ProxyError;
use weir_store::StoredResponse;
use weir_wire::write;

/// As the client sent it.
const AS_SENT: Forwarding = Forwarding {
    validate: false,
    complete: false,
};

/// Forwards a request and sends the response to the client. What waits for the response to another
/// request holds no more than that takes.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    mut forwarding: Forwarding,
    chosen: Option<ChosenResponse>,
) {
    let mut stored = exchange.hold(chosen);
    exchange.worker.shared.popularity.note(exchange.key);
    match follow::run(stream, exchange).await {
        FollowResult::Forward(leader) => exchange.leader = leader,
        FollowResult::Bypass(own, validated) => {
            forwarding = own;
            stored = exchange.hold(validated);
        }
        FollowResult::Answered => return,
    }
    let make = || forward(stream, exchange, forwarding, stored);
    in_box::pinned(make).await;
}

/// Sends the request to a next hop, and the response to the client.
pub(super) async fn forward(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    forwarding: Forwarding,
    stored: Option<Arc<StoredResponse>>,
) {
    if forwarding.complete {
        let now = exchange.worker.now();
        exchange.missing = stored
            .as_deref()
            .and_then(|stored| missing_range::first_missing(exchange, stored, now))
            .map(Box::new);
    }
    if exchange.settings.tells_next_hops {
        exchange.client.accepted_at(stream.response.local_address());
    }
    let mut asking = match Asking::begin(exchange, forwarding, stored) {
        Ok(asking) => asking,
        Err(answer) => return no_next_hop(stream, exchange, *answer).await,
    };
    if let Err(error) = stream.content.check_received() {
        let answer = Answer::bad_request(&error);
        return Box::pin(respond::respond(stream, exchange, answer)).await;
    }
    if let Some(mut content) = exchange.take_request_content() {
        let FedContent { bytes, is_last } = content.take_fed();
        stream.content.set_filter(content, bytes, is_last);
    }
    // to its next hop, again where a retry is safe or the response shows that the validators or the
    // range were wrong
    loop {
        let (mut hop, request) = match asking.prepare(stream, exchange).await {
            ControlFlow::Continue(Some(prepared)) => prepared,
            ControlFlow::Continue(None) => continue,
            ControlFlow::Break(()) => return,
        };
        let stored = asking.stored.as_ref();
        let outcome = talk(stream, exchange, &mut hop, request, stored).await;
        let next = asking.follow_up(stream, exchange, hop, outcome).await;
        if next.is_break() {
            return;
        }
    }
}

/// There is no next hop to forward to: sends `answer`.
fn no_next_hop(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    answer: Answer,
) -> Pin<Box<impl Future<Output = ()>>> {
    let worker = Rc::clone(&exchange.worker);
    // nothing was forwarded: each follower finds the reason by itself
    exchange.release_followers(&worker, false);
    Box::pin(respond::respond(stream, exchange, answer))
}

/// Whether the exchange is over.
enum AnswerResult {
    /// A response was sent, or the client has disconnected.
    Ended,
    /// A stored response would be the answer, and cannot be read. It is dropped, nothing of it was
    /// sent, and the whole response must be requested.
    NotReadable,
}

/// Sends the client the response that follows from `outcome`.
async fn answer(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    hop: NextHopStream,
    outcome: ResponseOutcome,
    stored: Option<Arc<StoredResponse>>,
) -> AnswerResult {
    let worker = Rc::clone(&exchange.worker);
    match outcome {
        ResponseOutcome::Relayed => release(exchange, hop),
        ResponseOutcome::Held(response) => {
            release(exchange, hop);
            Box::pin(response.send(stream, exchange)).await;
        }
        ResponseOutcome::Merged {
            mut response,
            stored: fresh,
            serving,
        } => {
            release(exchange, hop);
            let ready = stored::ready(stream, exchange, &response).await;
            let Ok(ready) = ready else {
                forget_stored(exchange, fresh.as_ref().unwrap_or(&response));
                return AnswerResult::NotReadable;
            };
            exchange.freshened(&worker, fresh.as_deref());
            drop((fresh, stored));
            let sent = stored::send_stored(stream, exchange, &mut response, serving, ready);
            Box::pin(sent).await;
        }
        ResponseOutcome::FetchStarted(start) => {
            let read = Box::pin(read_fetch(stream, exchange, hop, start)).await;
            if let Err(reason) = read {
                Box::pin(fail(stream, exchange, stored, reason)).await;
            }
        }
        ResponseOutcome::ServeStale(serving) => {
            drop(hop);
            let Some(mut stored) = stored else {
                return AnswerResult::NotReadable;
            };
            let Ok(ready) = stored::ready(stream, exchange, &stored).await else {
                forget_stored(exchange, &stored);
                return AnswerResult::NotReadable;
            };
            if let Some(leader) = exchange.leader.take() {
                leader.failed();
            }
            let sent = stored::send_stored(stream, exchange, &mut stored, serving, ready);
            Box::pin(sent).await;
        }
        ResponseOutcome::Switched { mut head } => {
            respond::change_by_rules(exchange, 101, &mut head);
            write::end_of_head(&mut head);
            Box::pin(switch::run(stream, exchange, hop, (101, &head))).await;
        }
        ResponseOutcome::ClientLeft
        | ResponseOutcome::ForwardAgain
        | ResponseOutcome::NotRest(_)
        | ResponseOutcome::Declined(_)
        | ResponseOutcome::NotShared => {
            if let Some(leader) = exchange.leader.take() {
                leader.disconnected();
            }
            exchange.log.broke_off(End::ClientLeft, "client-left");
            worker.counters().inc(Metric::ClientAborts);
        }
        ResponseOutcome::Module(answer) => {
            drop(hop);
            Box::pin(respond::module_answer(stream, exchange, *answer)).await;
        }
        ResponseOutcome::BadContent(error) => {
            drop(hop);
            let answer = Answer::bad_request(&error);
            Box::pin(respond::respond(stream, exchange, answer)).await;
        }
        ResponseOutcome::Failed(HopFailure::Unanswered(reason) | HopFailure::Broken(reason)) => {
            drop(hop);
            Box::pin(fail(stream, exchange, stored, reason)).await;
        }
    }
    AnswerResult::Ended
}

/// Drops a stored response that cannot be read when it should be sent.
fn forget_stored(exchange: &mut RequestState, stored: &Arc<StoredResponse>) {
    disk_lookup::forget(exchange, stored);
    // another question than the one that was expected to be answered
    exchange.expected = None;
    let worker = Rc::clone(&exchange.worker);
    let _ = exchange.forget_chosen(&worker);
}

/// Result of a request without a client.
pub(crate) enum BackgroundResult {
    /// The outcome, and the stream of the response.
    Answered(NextHopStream, ResponseOutcome),
    /// Nothing was sent: the stored response was dropped meanwhile, or modules would make another
    /// response of what comes.
    Forgotten,
    /// There is no usable answer.
    Failed(AnswerReason),
}

/// Sends a request to `next_hop` without a client, about `stored` if there is one, as it would be
/// sent for a client. A
/// failure is counted, and reported to the transaction.
pub(crate) async fn in_background(
    exchange: &mut RequestState,
    next_hop: NextHop,
    forwarding: Forwarding,
    stored: Option<&Arc<StoredResponse>>,
) -> BackgroundResult {
    let result = ask_in_background(exchange, next_hop, forwarding, stored).await;
    module_calls::over_in_background(exchange);
    result
}

async fn ask_in_background(
    exchange: &mut RequestState,
    next_hop: NextHop,
    forwarding: Forwarding,
    stored: Option<&Arc<StoredResponse>>,
) -> BackgroundResult {
    let worker = &Rc::clone(&exchange.worker);
    if !Box::pin(variants::receive_again(exchange)).await {
        return BackgroundResult::Forgotten;
    }
    let mut attempts = Attempts::new(next_hop);
    let result = loop {
        let mut hop = match attempts.connect(exchange, worker).await {
            Ok(hop) => hop,
            Err(NoStream::Failed(reason)) => break BackgroundResult::Failed(reason),
            Err(NoStream::Answer(answer)) => break BackgroundResult::Failed(answer.reason),
        };
        // what fills a missing range is expected by the in-flight response
        if !exchange.fills_missing_range() && !exchange.expect(worker) {
            hop.release_unused(worker.net());
            break BackgroundResult::Forgotten;
        }
        match attempts.is_held_back(exchange, worker) {
            Ok(false) => {}
            Ok(true) => {
                hop.release_unused(worker.net());
                continue;
            }
            Err(answer) => break BackgroundResult::Failed(answer.reason),
        }
        let mut request = outbound::request_head(exchange, forwarding, stored.map(|it| &**it));
        if exchange.modules.is_some() {
            // an answer of a module is for a client, and there is none
            request = match Box::pin(module_calls::request_sent(exchange, request)).await {
                Ok(request) => request,
                Err(_) => {
                    hop.release_unused(worker.net());
                    break BackgroundResult::Forgotten;
                }
            };
        }
        match talk_in_background(worker, exchange, &mut hop, request, stored).await {
            ResponseOutcome::Failed(HopFailure::Unanswered(reason)) => {
                if attempts.repeat(exchange, worker, &hop, None) {
                    continue;
                }
                if let Err(reason) = attempts.pass(exchange, worker, reason) {
                    break BackgroundResult::Failed(reason);
                }
            }
            ResponseOutcome::Failed(HopFailure::Broken(reason)) => {
                if let Err(reason) = attempts.pass(exchange, worker, reason) {
                    break BackgroundResult::Failed(reason);
                }
            }
            ResponseOutcome::Declined(why) => {
                let passed = attempts.pass_on(exchange, worker, Failed::Declined(why));
                if let PassResult::Answer(answer) = passed {
                    break BackgroundResult::Failed(answer.reason);
                }
            }
            outcome => break BackgroundResult::Answered(hop, outcome),
        }
    };
    if let BackgroundResult::Failed(reason) = &result {
        count_refused(reason);
        count_failure(worker, reason);
        exchange.tell(worker, Event::Failed(failure_of(reason)));
    }
    result
}

/// Sends the request and receives the response, without a client.
async fn talk_in_background(
    worker: &Rc<Worker>,
    exchange: &mut RequestState,
    hop: &mut NextHopStream,
    mut request: Vec<u8>,
    stored: Option<&Arc<StoredResponse>>,
) -> ResponseOutcome {
    let (mut to_hop, from_hop) = hop.split();
    exchange.write_login(&mut request);
    if let Err(failure) = upload::send_head(&mut to_hop, request, exchange).await {
        return ResponseOutcome::Failed(failure);
    }
    let silence = exchange.settings.config.limits.next_hop_silence;
    let mut deadline = Deadline::new(silence.as_duration());
    download::run(download::Parties {
        sending: &Cell::new(Sending::Done),
        from_hop,
        to_client: None,
        exchange,
        worker,
        deadline: &mut deadline,
        stored,
    })
    .await
}

/// Returns the connection of a complete response to the pool, if it can be used again.
fn release(exchange: &mut RequestState, hop: NextHopStream) {
    let offered_bytes_max = exchange.read_ahead().bytes();
    let is_kept = hop.release(exchange.worker.net(), offered_bytes_max);
    exchange.log.connection_kept(is_kept);
}

/// The same for a response that no client gets: its connection is used again if all of its content
/// was received with its head.
fn release_whole(exchange: &mut RequestState, mut hop: NextHopStream) {
    let _content = hop.response().take_buffered(|_| ControlFlow::Continue(()));
    release(exchange, hop);
}

fn note_next_hop(stream: &ClientStream<'_>, exchange: &mut RequestState, hop: &mut NextHopStream) {
    let counters = exchange.worker.counters();
    if stream.is_new_next_hop(hop.facts().hop) {
        counters.inc(Metric::ClientNextHops);
    }
    let peer = exchange.client.facts().peer;
    hop.count_request(counters, peer.ip());
    exchange.log.connected(&hop.facts());
}

/// Sends the request and receives the response; both at once, as either side may send content
/// first. The head is made whole before there is a future, which so holds it once.
fn talk<'a, 'c>(
    stream: &'a mut ClientStream<'c>,
    exchange: &'a mut RequestState,
    hop: &'a mut NextHopStream,
    mut request: Vec<u8>,
    stored: Option<&'a Arc<StoredResponse>>,
) -> impl Future<Output = ResponseOutcome> + use<'a, 'c> {
    exchange.write_login(&mut request);
    send_and_receive(stream, exchange, hop, request, stored)
}

async fn send_and_receive(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    hop: &mut NextHopStream,
    request: Vec<u8>,
    stored: Option<&Arc<StoredResponse>>,
) -> ResponseOutcome {
    let has_content = exchange.request.has_content();
    let worker = Rc::clone(&exchange.worker);
    if has_content && hop.is_http2() {
        // many next hops end connections in order after so many requests, and act upon none of
        // those that come meanwhile
        stream.content.keep_for_replay();
    }
    let (from_client, to_client) = (&mut stream.content, &mut stream.response);
    let (mut to_hop, from_hop) = hop.split();
    if let Err(failure) = upload::send_head(&mut to_hop, request, exchange).await {
        return ResponseOutcome::Failed(failure);
    }
    let limits = upload::Limits::of(exchange);
    let sending = Cell::new(if !has_content {
        Sending::Done
    } else if exchange.tx.request().expects_continue && from_client.received_bytes() == 0 {
        Sending::Expected
    } else {
        Sending::NotBegun
    });
    let parties = download::Parties {
        sending: &sending,
        from_hop,
        to_client: Some(to_client),
        exchange,
        worker: &worker,
        deadline: stream.deadline,
        stored,
    };
    if !has_content {
        // not held while the response is received
        drop(to_hop);
        return download::run(parties).await;
    }
    let head_bytes = to_hop.sent_bytes();
    // boxed: few requests have content
    let both = Box::pin(send_content(from_client, &mut to_hop, limits, parties));
    let (outcome, upload_end) = both.await;
    let log = &mut exchange.log;
    log.request_content(
        stream.content.received_bytes(),
        stream.content.content_bytes(),
    );
    log.sent_to_next_hop(to_hop.sent_bytes() - head_bytes);
    match (upload_end, outcome) {
        (UploadEnd::Invalid(error), ResponseOutcome::ClientLeft) if !stream.response.is_begun() => {
            ResponseOutcome::BadContent(error)
        }
        (UploadEnd::Module, ResponseOutcome::ClientLeft | ResponseOutcome::Failed(_))
            if !stream.response.is_begun() =>
        {
            let answer = exchange.content_answer();
            answer.map_or(ResponseOutcome::ClientLeft, |answer| {
                ResponseOutcome::Module(Box::new(answer))
            })
        }
        (_, outcome) => outcome,
    }
}

/// Sends the content of a request while its response is received; how each of them ended.
///
/// The receiving side always runs to its own end: a response that is already being relayed is
/// entered in the log and counted there, also if the client stops in the middle of its request.
async fn send_content(
    from_client: &mut RequestContent<'_>,
    to_hop: &mut RequestSender<'_>,
    limits: upload::Limits,
    parties: download::Parties<'_, '_>,
) -> (ResponseOutcome, UploadEnd) {
    let to_client = parties.to_client.as_ref();
    let Some(client) = to_client.map(|client| client.disconnect_source()) else {
        return (download::run(parties).await, UploadEnd::default());
    };
    let (worker, sending) = (parties.worker, parties.sending);
    let half_closed = parties.exchange.settings.config.fetch.half_closed;
    let mut up = pin!(upload::send_content(
        from_client,
        to_hop,
        limits,
        worker,
        sending
    ));
    let mut down = pin!(download::run(parties));
    let mut reset = pin!(client.reset());
    let unmoved = Cell::new(0);
    let mut disconnected = pin!(client.disconnected(half_closed.as_duration(), &unmoved));
    let mut uploaded = None;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut down => break outcome,
            ended = &mut up, if uploaded.is_none() => uploaded = Some(ended),
            // nothing is read from the client while the next hop takes no content
            () = &mut reset, if uploaded.is_none() => {
                uploaded = Some(UploadEnd::Client);
                sending.set(Sending::ClientStopped);
            }
            // the next hop takes no more of it: the content that is not read hides a FIN
            _ = &mut disconnected, if sending.get() == Sending::Stopped => {
                sending.set(Sending::ClientStopped);
            }
        }
    };
    (outcome, uploaded.unwrap_or_default())
}

/// Content to be stored is fetched by a task of its own: the client is its first reader.
pub(super) async fn read_fetch(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    hop: NextHopStream,
    start: Box<FetchStart>,
) -> Result<(), AnswerReason> {
    let worker = Rc::clone(&exchange.worker);
    let start = *start;
    let in_flight = Arc::clone(&start.target.in_flight);
    let span = match &start.answer {
        InitiatorResponse::Relayed { span, .. } => Some(*span),
        InitiatorResponse::Joined(form, ..) => form.span(&in_flight.response),
        InitiatorResponse::None => None,
    };
    // before it begins: a fetch without a reader may be stopped at once
    let reader = span.and_then(|span| in_flight.attach(span).ok().zip(Some(span)));
    let fetch = transfer::begin(&worker, exchange, hop, start.target);
    if fetch.is_cut() {
        if let Some((reader, _)) = reader {
            in_flight.leave(&worker, reader);
        }
        conclude(exchange, &worker, &in_flight);
        return Err(download::broken(&"its content breaks off or is not framed"));
    }
    let group = match exchange.leader.take() {
        Some(leader) => Some(leader.head(&in_flight)),
        None if !in_flight.answers_others(&worker) => None,
        None => worker.shared.collapsed.publish(exchange.key, &in_flight),
    };
    in_flight.set_group(&worker, group);
    // received with the head, and in the log already
    let with_head = in_flight.brought_bytes();
    fetch.spawn();
    if let (InitiatorResponse::Joined(_, serving, own), None) = (&start.answer, &reader) {
        Box::pin(stored::serve(stream, exchange, own, *serving)).await;
        return Ok(());
    }
    let Some((reader, span)) = reader else {
        return Ok(());
    };
    let begun = match start.answer {
        InitiatorResponse::Relayed {
            status, head, form, ..
        } => respond::begin_sent(&mut stream.response, exchange, status, head, form).await,
        InitiatorResponse::Joined(form, serving, own) => {
            stored::begin_stored(stream, exchange, &own, form, serving).await
        }
        InitiatorResponse::None => Ok(()),
    };
    if let Err(refusal) = begun {
        in_flight.leave(&worker, reader);
        respond::refuse(stream, exchange, &refusal).await;
        return Ok(());
    }
    let reader = Start {
        handle: ReaderHandle::new(&worker, &in_flight, reader, true),
        span,
    };
    follow::read(stream, exchange, reader).await;
    let brought = in_flight.brought_bytes();
    exchange.log.fetched(brought, with_head);
    conclude(exchange, &worker, &in_flight);
    Ok(())
}

/// Content to be stored that no client waits for: its fetch goes on without a reader, and those who
/// ask for it meanwhile read it.
pub(crate) fn fetch_unread(exchange: &RequestState, hop: NextHopStream, start: FetchStart) {
    let worker = &exchange.worker;
    let in_flight = Arc::clone(&start.target.in_flight);
    in_flight.go_on(start.target.id);
    let fetch = transfer::begin(worker, exchange, hop, start.target);
    let answers_others = in_flight.answers_others(worker);
    let collapsed = &worker.shared.collapsed;
    let group = answers_others.then(|| collapsed.publish(exchange.key, &in_flight));
    in_flight.set_group(worker, group.flatten());
    fetch.spawn();
}

/// Enters into the verdict whether the response was stored.
fn conclude(exchange: &mut RequestState, worker: &Worker, in_flight: &InFlightResponse) {
    match in_flight.outcome() {
        None | Some(in_flight::Outcome::Whole | in_flight::Outcome::Part) => {}
        Some(in_flight::Outcome::Refused(refusal)) => {
            exchange.tell(worker, Event::NotAdmitted(refusal));
        }
        Some(in_flight::Outcome::Dropped) => exchange.tell(worker, Event::Incomplete),
    }
}

/// There is no usable response: serves the stale one where that is allowed, else sends an error.
pub(crate) async fn fail(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    stored: Option<Arc<StoredResponse>>,
    mut reason: AnswerReason,
) {
    let worker = Rc::clone(&exchange.worker);
    // first: to send this client a response may take long
    if let Some(leader) = exchange.leader.take() {
        leader.failed();
    }
    let mut stored = stored;
    if exchange.is_outdated() && stored.take().is_some() {
        // purged while this request waited: it may not be served
        let _ = exchange.forget_chosen(&worker);
    }
    count_refused(&reason);
    let failure = failure_of(&reason);
    let settings = Arc::clone(&exchange.settings);
    let failed = Event::Failed(failure);
    let mut commands = exchange.tx.handle(worker.now(), &settings.rules, failed);
    if let (Some(Command::Serve(serving)), Some(mut stored)) = (commands.first(), stored) {
        if let Ok(ready) = stored::ready(stream, exchange, &stored).await {
            match &reason.spent {
                // it is served as the setting of the link has it, and nothing failed
                Some(spent) => exchange.log.kept_from(spent.link.name()),
                None => exchange.log.failed(reason.error.as_str()),
            }
            return stored::send_stored(stream, exchange, &mut stored, serving, ready).await;
        }
        forget_stored(exchange, &stored);
        let failed = Event::Failed(failure);
        commands = exchange.tx.handle(worker.now(), &settings.rules, failed);
    }
    count_failure(&worker, &reason);
    let mut status = status_of(&reason);
    if commands.first() == Some(Command::Answer(RefuseReason::MustRevalidate)) {
        status = 504;
        reason.refused = RefuseReason::MustRevalidate;
    }
    // otherwise it has a finer reason than the kind of failure
    let _ = exchange.tx.refuse(reason.refused);
    respond::respond(stream, exchange, Answer::open(status, reason)).await;
}

/// Counts a request that the spent quota of a link keeps from every next hop.
fn count_refused(reason: &AnswerReason) {
    if let Some(spent) = &reason.spent {
        spent.refuse();
    }
}

fn count_failure(worker: &Worker, reason: &AnswerReason) {
    // it is no failure of a next hop, and is counted by its link
    if reason.spent.is_some() {
        return;
    }
    worker.counters().inc(match status_of(reason) {
        504 => Metric::NextHopTimeouts,
        _ => Metric::NextHopErrors,
    });
}

fn failure_of(reason: &AnswerReason) -> Failure {
    if let Some(spent) = &reason.spent {
        return Failure::LinkSpent {
            stale_for: spent.now.stale_for,
        };
    }
    match reason.error {
        ProxyError::HttpProtocolError | ProxyError::HttpResponseIncomplete => Failure::Protocol,
        ProxyError::DestinationIpProhibited
        | ProxyError::ConnectionLimitReached
        | ProxyError::ProxyInternalError
        | ProxyError::ProxyConfigurationError => Failure::Ours,
        _ => Failure::Disconnected,
    }
}

/// The status for a proxy error as RFC 9209 recommends it; but what our rules deny is 403, by name
/// as by address.
fn status_of(reason: &AnswerReason) -> u16 {
    if let Some(spent) = &reason.spent {
        return spent.now.status;
    }
    match reason.error {
        ProxyError::DestinationIpProhibited => 403,
        error => error.recommended_status().unwrap_or(502),
    }
}
