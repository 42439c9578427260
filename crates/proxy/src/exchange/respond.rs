//! Sends a response: its head, content that is available, and responses of the proxy itself.

use crate::cluster::Maker;
use crate::exchange::heads::fields::change_response;
use crate::exchange::module_calls;
use crate::exchange::state::RequestState;
use crate::log::record::{ContentTimes, End};
use crate::log::request_log::ContentSource;
use crate::log::words::write_cache_status;
use crate::modules::module_answer::{ModuleAnswer, ModuleRefusal};
use crate::request::answer::{Answer, reason_phrase};
use crate::send::heads::line_bytes;
use crate::send::stored_piece::StoredPiece;
use crate::worker::client_rate::ClientRate;
use crate::worker::core::Worker;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_extend::{HeadFields, LocalResponse};
use weir_measure::{Metric, ModuleFault};
use weir_net::http::{ClientStream, ContentForm, ResponseSender};
use weir_policy::rule::Values;
use weir_policy::{Phase, RefuseReason, Storing};
use weir_semantics::Method;
use weir_store::ChargedMemory;
use weir_wire::{Version, write};

/// Sends an answer of our own.
pub(crate) async fn respond(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    answer: Answer,
) {
    settle_content(stream, exchange).await;
    if answer.close {
        stream.response.close_after();
    }
    if let Some(lines) = exchange.peer_lines(Maker::Node) {
        stream.response.set_hop_lines(lines);
    }
    let settings = Arc::clone(&exchange.settings);
    // the transaction may know a finer reason already
    if !matches!(
        exchange.tx.verdict().handling,
        weir_policy::Handling::Refused(_)
    ) {
        let _ = exchange.tx.refuse(answer.reason.refused);
    }
    let content = answer.content();
    let mut head = Vec::with_capacity(512);
    answer.write_head(
        &settings,
        exchange.tx.verdict(),
        content.len(),
        &exchange.worker.date(),
        &mut head,
    );
    let form = match exchange.request.method {
        Method::Head => ContentForm::None,
        _ => ContentForm::Sized,
    };
    begin(&mut stream.response, exchange, answer.status, head, form);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    exchange.log.failed(answer.reason.error.as_str());
    if let Some(spent) = &answer.reason.spent {
        exchange.log.kept_from(spent.link.name());
    }
    let content = match form {
        ContentForm::None => "",
        _ => &content,
    };
    let (sent, end) = send(stream, exchange, Content::Bytes(content.as_bytes())).await;
    log_own(exchange, sent, end);
}

/// Enters into the log how much of content of our own was sent, and how that ended.
pub(crate) fn log_own(exchange: &mut RequestState, sent: u64, end: SendEnd) {
    let log = &mut exchange.log;
    log.ended(match end {
        SendEnd::Whole => End::Whole,
        SendEnd::ClientLeft => End::ClientLeft,
        SendEnd::Unreadable => End::Ours,
    });
    log.sent_content(sent, ContentSource::Own);
}

/// Queues the final head and enters it into the log; the hooks of the phases that it reaches are
/// the caller's.
pub(crate) fn begin(
    response: &mut ResponseSender<'_>,
    exchange: &mut RequestState,
    status: u16,
    head: Vec<u8>,
    form: ContentForm,
) {
    if exchange.is_last() {
        response.close_after();
    }
    let head = response.begin(head, form);
    exchange.log.response_head(status, head);
    if exchange.tx.verdict().storing == Some(Storing::Stored) {
        exchange.log.reach(Phase::Store);
    }
}

/// The same for a response that modules may change, in front of the hooks.
///
/// # Errors
///
/// A module failed, and the response may not go without it. Nothing is queued.
pub(crate) async fn begin_sent(
    response: &mut ResponseSender<'_>,
    exchange: &mut RequestState,
    status: u16,
    head: Vec<u8>,
    form: ContentForm,
) -> Result<(), ModuleRefusal> {
    let (mut head, mut form) = (head, form);
    if exchange.modules.is_some() {
        let content;
        (head, content) = Box::pin(module_calls::response_sent(exchange, status, head)).await?;
        if let Some(content) = content
            && form != ContentForm::None
        {
            response.set_filter(content);
            form = ContentForm::Unsized;
        }
    }
    limit_by_rules(response, exchange, (status, &head));
    change_by_rules(exchange, status, &mut head);
    begin(response, exchange, status, head, form);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    Ok(())
}

/// Limits how fast a response with this head is sent, as rules of the operator say.
fn limit_by_rules(
    response: &mut ResponseSender<'_>,
    exchange: &mut RequestState,
    (status, head): (u16, &[u8]),
) {
    let (rules, matched) = (&exchange.settings.operator_rules, exchange.operator_rules);
    if !rules.may_limit_rate(matched) {
        return;
    }
    let fields = HeadFields::of_section(&head[line_bytes(head)..]);
    let content_type = fields.get("content-type").unwrap_or_default();
    if let Some(limit) = rules.rate(matched, status, content_type) {
        let client = exchange.client.facts().peer.ip();
        let rate = ClientRate::new(&exchange.worker, client, limit);
        response.set_rate(Box::new(rate));
        exchange.is_rate_limited = true;
    }
}

/// Changes the head of a response for its client, as rules of the operator say.
pub(crate) fn change_by_rules(exchange: &RequestState, status: u16, head: &mut Vec<u8>) {
    let (rules, matched) = (&exchange.settings.operator_rules, exchange.operator_rules);
    if rules.may_change_response(matched) {
        let request = exchange.logged.as_deref().unwrap_or(&exchange.request);
        let client = exchange.client.facts().peer.ip();
        let (host, path) = (request.host.as_str(), request.path_and_query());
        let values = Values::new(Some(client), host, path);
        change_response(rules, matched, status, &values, (head, 0));
    }
}

/// Sends what a module has put in the place of a response.
pub(crate) async fn module_answer(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    answer: ModuleAnswer,
) {
    match answer {
        ModuleAnswer::Respond(response) => Box::pin(local(stream, exchange, response)).await,
        ModuleAnswer::Refuse(refusal) => refuse(stream, exchange, &refusal).await,
    }
}

/// Refuses a request for which a module failed.
pub(crate) async fn refuse(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    refusal: &ModuleRefusal,
) {
    let worker = Rc::clone(&exchange.worker);
    exchange.expected = None;
    exchange.release_followers(&worker, false);
    // boxed: every response would be as large as one that a module has failed
    Box::pin(respond(stream, exchange, Answer::module_failed(refusal))).await;
}

/// Bytes of a module's response for which there is no charge, as most are no longer.
const UNCHARGED_BYTES_MAX: usize = 64 * 1024;

/// Charges the content of a module's response to the memory of responses that arrive, as its client
/// may take it slowly; `None` if there is no room for it.
fn charge(worker: &Worker, response: &LocalResponse) -> Option<ChargedMemory> {
    let mut charged = ChargedMemory::new(&worker.shared.store);
    let bytes = response.content().len().saturating_sub(UNCHARGED_BYTES_MAX);
    charged.hold(bytes as u64).ok()?;
    Some(charged)
}

/// Sends the response of a module. It is not stored; the modules before that one see it.
pub(crate) async fn local(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    response: LocalResponse,
) {
    let Some(_charged) = charge(&exchange.worker, &response) else {
        drop(response);
        let failed = Metric::ModuleFailures(ModuleFault::NoMemory);
        exchange.worker.counters().inc(failed);
        exchange.expected = None;
        exchange.release_followers(&Rc::clone(&exchange.worker), false);
        return respond(stream, exchange, Answer::no_memory_for_module()).await;
    };
    settle_content(stream, exchange).await;
    let worker = Rc::clone(&exchange.worker);
    exchange.expected = None;
    exchange.release_followers(&worker, false);
    worker.counters().inc(Metric::ModuleResponses);
    let _ = exchange.tx.refuse(RefuseReason::ModuleAnswered);
    let status = response.status();
    let mut head = Vec::with_capacity(512);
    write::status_line(&mut head, Version::Http11, status, reason_phrase(status));
    if response.fields.get("date").is_none() {
        write::field(&mut head, "Date", &worker.date());
    }
    for (name, value) in response.fields.iter() {
        write::field(&mut head, name, value);
    }
    if status != 204 {
        write::number_field(&mut head, "Content-Length", response.content().len() as u64);
    }
    write_cache_status(&exchange.settings, exchange.tx.verdict(), &mut head);
    let form = match exchange.request.method {
        Method::Head => ContentForm::None,
        _ if status == 204 => ContentForm::None,
        _ => ContentForm::Sized,
    };
    let begun = begin_sent(&mut stream.response, exchange, status, head, form).await;
    if let Err(refusal) = begun {
        return Box::pin(refuse(stream, exchange, &refusal)).await;
    }
    let content = match form {
        ContentForm::None => &[],
        _ => response.content(),
    };
    let (sent, end) = send(stream, exchange, Content::Bytes(content)).await;
    log_own(exchange, sent, end);
}

/// Receives and drops content that is not used, up to the limit: what follows must never be taken
/// for a request. Where content may remain, the response is the last of its connection.
pub(super) async fn settle_content(stream: &mut ClientStream<'_>, exchange: &RequestState) {
    let content = &stream.content;
    if content.is_ended() {
        return;
    }
    // a client that waits for 100 may send the content or not: only closing is unambiguous (RFC
    // 9110 §10.1.1)
    let is_certain = !content.is_begun() && !exchange.tx.request().expects_continue;
    if !is_certain || !discard(stream, exchange).await {
        stream.response.close_after();
    }
}

/// Receives and drops content up to the limit; `true` if all of it was received.
async fn discard(stream: &mut ClientStream<'_>, exchange: &RequestState) -> bool {
    let limits = &exchange.settings.config.limits;
    let mut left = limits.request_body_drain.as_usize();
    stream.deadline.set(limits.client_silence.as_duration());
    let worker = &exchange.worker;
    let before = stream.content.read_bytes();
    let is_gone = poll_fn(|cx| {
        let mut scratch = worker.scratch();
        match stream.content.poll_settle(cx, &mut scratch, &mut left) {
            Poll::Pending => stream.deadline.poll_passed(cx).map(|()| false),
            settled => settled,
        }
    })
    .await;
    let read_bytes = stream.content.read_bytes() - before;
    worker.counters().add(Metric::BytesFromClients, read_bytes);
    is_gone
}

/// How sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEnd {
    /// All of it was sent.
    Whole,
    /// The client disconnected, or stopped reading.
    ClientLeft,
    /// The rest of the content cannot be read from disk.
    Unreadable,
}

/// Content that is available.
pub(crate) enum Content<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// Stored, in memory or on disk.
    Stored(&'a mut StoredPiece),
}

impl Content<'_> {
    fn is_sent(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Stored(piece) => piece.is_sent(),
        }
    }

    fn poll_send(
        &mut self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Bytes(bytes) => {
                let sent = response.poll_send(cx, &[bytes], Some(&[]));
                if let Poll::Ready(Ok(sent)) = sent {
                    *bytes = &bytes[sent..];
                }
                sent
            }
            Self::Stored(piece) if piece.is_sent() => response.poll_send(cx, &[], Some(&[])),
            Self::Stored(piece) => piece.poll_send(response, cx),
        }
    }

    fn is_unreadable(&self) -> bool {
        match self {
            Self::Bytes(_) => false,
            Self::Stored(piece) => piece.read_error().is_some(),
        }
    }
}

/// Sends the head that is queued and all of `content` within the silence limit; bytes of content
/// that were sent, and how that ended.
pub(crate) async fn send(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    mut content: Content<'_>,
) -> (u64, SendEnd) {
    let limits = &exchange.settings.config.limits;
    let silence = limits.client_silence.as_duration();
    let half_closed = exchange.settings.config.fetch.half_closed;
    let (response, deadline) = (&mut stream.response, &mut *stream.deadline);
    deadline.set(silence);
    let mut sent = 0;
    let mut disconnect = None;
    let mut times: ContentTimes = exchange.log.content_times();
    let whole = poll_fn(|cx: &mut Context<'_>| {
        while !content.is_sent() || !response.is_complete() {
            match content.poll_send(response, cx) {
                Poll::Pending => {
                    if response.is_held_back() {
                        // the client is not silent: it is not sent anything. It may leave
                        deadline.set(silence);
                        // boxed, as few are
                        let new = || Box::new(response.disconnect(half_closed.as_duration()));
                        let disconnect = disconnect.get_or_insert_with(new);
                        return disconnect.poll(cx).map(|()| false);
                    }
                    return deadline.poll_passed(cx).map(|()| false);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(count)) => {
                    sent += count as u64;
                    times.reach(sent);
                    deadline.set(silence);
                    disconnect = None;
                }
            }
        }
        Poll::Ready(true)
    })
    .await;
    exchange.log.content_left(times);
    if whole {
        return (sent, SendEnd::Whole);
    }
    if content.is_unreadable() {
        return (sent, SendEnd::Unreadable);
    }
    exchange.worker.counters().inc(Metric::ClientAborts);
    (sent, SendEnd::ClientLeft)
}
