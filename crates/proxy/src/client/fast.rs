//! The fast path: a request is parsed, judged and answered from memory in one pass.
//!
//! A request that cannot be answered so (a miss, a large response, a tunnel) leaves the fast path
//! as a [`RequestState`], and so does every request if a phase is hooked. By HTTP/2 only the head
//! of a large response is made here, and its content follows from the store ([`stored_content`]).
//! Modules are called on it ([`with_modules`]) as long as they wait for nothing.

mod answer;
mod challenge;
mod for_store;
mod own_content;
mod pac;
mod preview;
mod receiver;
mod steps;
mod stored_content;
mod with_login;
mod with_rules;

pub(super) use self::answer::{MadeResponse, finish};
pub(crate) use self::for_store::for_store;
pub(crate) use self::preview::RefusedPreview;
pub(crate) use self::receiver::{HeadTime, Receiver};
pub(crate) use self::steps::{found, judge_found, missing, plan_of, start};
pub(crate) use self::stored_content::ContentInStore;

use self::answer::{refuse, serve};
use super::other_protocol;
use super::peer_listener::{NodeRequest, PeerSeal};
use super::with_modules;
use crate::cache::variants::{self, Choice};
use crate::cluster::Maker;
use crate::config::Mode;
use crate::exchange::module_calls::{self, Received};
use crate::exchange::state::{Plan, RequestState, reuse_of};
use crate::log::client::{ClientFacts, ForPeers};
use crate::log::request_log::RequestLog;
use crate::log::served::ServedRequest;
use crate::request::answer::{Answer, AnswerReason};
use crate::request::facts::Request;
use crate::request::judge::ReceivedRequest;
use crate::request::max_forwards;
use crate::request::recent_heads::Recent;
use crate::request::vary::{SelectingFields, forwarded_key, selecting_digest};
use crate::request::who_asked::{WhoAsked, without_claims};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use weir_net::http::ClientStream;
use weir_policy::extension::ModuleSet;
use weir_policy::rule::{Bits, Reuse};
use weir_policy::{Command, Digest, Now, Phase, Transaction};
use weir_semantics::{Form, HostName, Method, RequestFacts};
use weir_store::{LookupResult, StoredResponse};
use weir_wire::{BodyLength, LineBuffer, Progress, RequestHead, parse_request};

/// What became of the front of the input.
pub(crate) enum InputResult {
    /// A request was answered.
    Answered {
        /// Bytes of the input that it took.
        consumed: usize,
    },
    /// The head is not whole.
    Partial,
    /// The login of the client is being verified; the request is to be taken again once that is
    /// known.
    Login(Box<oneshot::Receiver<()>>),
    /// The head was taken; the answer needs more.
    Exchange {
        /// Bytes of the input that the head took.
        consumed: usize,
        /// What to do.
        exchange: Box<RequestState>,
    },
}

/// What was received and not taken yet.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it begins among what was received together.
    pub(crate) at: usize,
}

/// A request whose head is at the front of the input.
#[derive(Clone, Copy)]
struct Front<'a, 'h, 'l> {
    head: &'a RequestHead<'h, 'l>,
    /// What is known of the input, if the head is all of it.
    recent: &'a Recent,
    /// Bytes of the input that the head takes.
    consumed: usize,
    started: Instant,
    input: Input<'a>,
}

impl<'a, 'h, 'l> Front<'a, 'h, 'l> {
    /// The same request with another head than was received.
    const fn with_head<'b>(self, head: &'b RequestHead<'h, 'l>) -> Front<'b, 'h, 'l>
    where
        'a: 'b,
    {
        Front {
            head,
            recent: &Recent::Unfit,
            ..self
        }
    }
}

/// Takes one request from the front of the input; a response made at once is appended to `out`, but
/// for content that is put where the receiver has a place for it, and its log to `served`, to be
/// reported once the kernel has accepted the response.
pub(crate) fn take(
    receiver: &Receiver<'_>,
    Input { bytes: input, at }: Input<'_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let started = receiver.head_time.started();
    let settings = receiver.settings;
    let recent = receiver.recent(input);
    let mut lines = LineBuffer::new();
    let read = match &recent {
        Recent::Known(known) => Ok(Progress::Complete {
            head: known.request().head_in(&mut lines),
            consumed: input.len(),
        }),
        Recent::New(_) | Recent::Unfit => parse_request(input, &settings.heads, &mut lines),
    };
    let (head, consumed) = match read {
        Ok(Progress::Partial) => return InputResult::Partial,
        Ok(Progress::Complete { head, consumed }) => (head, consumed),
        Err(error) => {
            let other = other_protocol::refuse(receiver.worker, receiver.client, input);
            let reason = other.map_or_else(|| error.to_string(), ToOwned::to_owned);
            let answer = Answer::closing(error.status(), AnswerReason::bad(reason));
            let log = receiver.log(started, input.len());
            served.push(refuse(receiver, None, &answer, log, out));
            if let Some(record) = &receiver.worker.shared.record {
                record.skip();
            }
            return InputResult::Answered {
                consumed: input.len(),
            };
        }
    };
    let front = Front {
        head: &head,
        recent: match consumed == input.len() {
            true => &recent,
            false => &Recent::Unfit,
        },
        consumed,
        started,
        input: Input { bytes: input, at },
    };
    if receiver.client.listener.peers == ForPeers::No {
        if receiver.worker.shared.challenges.has_tokens()
            && let Some(answer) = challenge::answer(receiver, &head)
        {
            return challenge::take(receiver, front, &answer, out, served);
        }
        let is_forward = receiver.client.listener.mode == Mode::Forward;
        if is_forward && pac::is_asked(&head) && !is_denied(receiver) {
            return pac::take(receiver, front, out, served);
        }
        if is_forward && settings.logins.is_some() {
            return with_login::take(receiver, front, out, served);
        }
        return take_head(receiver, front, out, served);
    }
    let node = NodeRequest::of(settings, &head);
    let receiver = &Receiver {
        node: node.as_ref(),
        ..*receiver
    };
    let peers = &receiver.worker.peers;
    if let Some(result) = peers.message(receiver, &head, (&input[..consumed], started), out) {
        return result;
    }
    match peers.receiver(receiver, &head) {
        Ok(mut member) => {
            let seal = PeerSeal::new(settings, head.fields, Maker::Origin);
            member.peer_seal = seal.as_ref();
            take_head(&member, front, out, served)
        }
        Err(answer) => {
            let asked = Some((&head, at..at + consumed));
            let log = receiver.log(started, consumed);
            served.push(refuse(receiver, asked, &answer, log, out));
            InputResult::Answered { consumed }
        }
    }
}

/// Answers `received` bytes of a head whose rest did not arrive in time; the connection ends.
pub(super) fn refuse_late_head(
    receiver: &Receiver<'_>,
    received: usize,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) {
    let started = receiver.head_time.started();
    let reason = AnswerReason::bad("the request head did not arrive in time");
    let log = receiver.log(started, received);
    let answer = Answer::closing(408, reason);
    served.push(refuse(receiver, None, &answer, log, out));
    if let Some(record) = &receiver.worker.shared.record {
        record.skip();
    }
}

/// Takes the request whose head is at the front of the input. Part of the way of every hit: inlined
/// where the listener is for clients.
#[inline]
fn take_head(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let Front { head, consumed, .. } = front;
    let Input { bytes: input, at } = front.input;
    let settings = receiver.settings;
    let may_claim = match front.recent {
        Recent::Known(known) => known.has_claims(),
        Recent::New(_) | Recent::Unfit => true,
    };
    if may_claim && let Some(lines) = without_claims(settings, &receiver.client, head.fields) {
        let head = &RequestHead {
            fields: &lines,
            ..*head
        };
        return take_believed(receiver, front.with_head(head), out, served);
    }
    let mut log = receiver.log(front.started, consumed);
    log.reach(Phase::RequestHead);
    let is_extended = settings.is_extended && receiver.client.listener.peers == ForPeers::No;
    let mut host = HostName::EMPTY;
    let mut request = match receiver.judge_front(&front, &mut host) {
        Ok(request) => request,
        Err(_) if is_extended => {
            log.keep_details(&input[..consumed]);
            let exchange = leave(receiver, head, (Bits::NONE, false), log);
            return InputResult::Exchange { consumed, exchange };
        }
        Err(answer) => {
            let asked = Some((head, at..at + consumed));
            served.push(refuse(receiver, asked, &answer, log, out));
            return InputResult::Answered { consumed };
        }
    };
    if is_extended {
        let target = &request.target;
        let host = target.host.as_bytes();
        let called = settings.modules.called(host, target.path_and_query);
        let rules = with_rules::rules_for(receiver, &mut request);
        if !rules.is_empty() {
            let bytes = &input[..consumed];
            let input = Input { bytes, at };
            let begun = (head, &mut request, &mut log);
            return with_rules::take(receiver, input, begun, (rules, called), (out, served));
        }
        if !settings.hooks.phases().is_empty() || !called.is_empty() {
            let bytes = &input[..consumed];
            let input = Input { bytes, at };
            let begun = (head, &request, &mut log);
            return extended(receiver, input, begun, called, (out, served));
        }
    }
    log.reach(Phase::Authorise);
    let (worker, now) = (receiver.worker, receiver.now_after(front.started));
    let (tx, plan, key) = choose(receiver, head, &request, now, Choice::PLAIN);
    if plan.is_final() {
        log.reach(Phase::Choose);
    }
    if let Plan::Serve {
        response,
        serving,
        refresh: None,
    } = &plan
        && is_served_at_once(receiver, &request, response)
    {
        let head = (head, at..at + consumed);
        serve(
            receiver,
            head,
            &request,
            &tx,
            (response, *serving),
            now,
            &mut log,
            (out, served),
        );
        worker.note_hit(settings, receiver.client, (key, &request.target), served);
        return InputResult::Answered { consumed };
    }
    let bytes = &input[..consumed];
    let input = Input { bytes, at };
    let judged = (head, &request, now);
    take_further(receiver, input, judged, (tx, plan, key), log, (out, served))
}

/// Takes a request that was judged and is not answered at once: its content is sent from the store,
/// or it needs more than one pass.
#[inline(never)]
fn take_further(
    receiver: &Receiver<'_>,
    Input { bytes: input, at }: Input<'_>,
    (head, request, now): (&RequestHead<'_, '_>, &ReceivedRequest<'_>, Now),
    (tx, plan, key): (Transaction, Plan, Digest),
    mut log: RequestLog,
    (out, served): (&mut Vec<u8>, &mut Vec<ServedRequest>),
) -> InputResult {
    let consumed = input.len();
    if let Some(place) = receiver.content_place
        && let Plan::Serve {
            response,
            serving,
            refresh: None,
        } = &plan
        && stored_content::may_be_sent(receiver.worker, request, response)
    {
        let content = stored_content::begin(
            receiver,
            (head, at..at + consumed),
            (request, &tx),
            (response, *serving, key),
            now,
            &mut log,
            (out, served),
        );
        place.set(Some(Box::new(content)));
        return InputResult::Answered { consumed };
    }
    log.keep_details(input);
    let request = Request::new(request, head);
    let exchange = receiver.exchange(request, (tx, plan, key), log);
    InputResult::Exchange { consumed, exchange }
}

/// Whether the client may not use the listener, whatever it asks for.
fn is_denied(receiver: &Receiver<'_>) -> bool {
    let ClientFacts { listener, peer, .. } = receiver.client;
    let checked = receiver.settings.check_client(listener.mode, peer.ip());
    checked.is_err()
}

/// Takes the request whose head was left without what its client must not say.
#[cold]
#[inline(never)]
fn take_believed(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    take_head(receiver, front, out, served)
}

/// Takes a request that a hook is called for, or the modules `called`.
#[inline(never)]
fn extended(
    receiver: &Receiver<'_>,
    input: Input<'_>,
    (head, request, log): (&RequestHead<'_, '_>, &ReceivedRequest<'_>, &mut RequestLog),
    called: ModuleSet,
    (out, served): (&mut Vec<u8>, &mut Vec<ServedRequest>),
) -> InputResult {
    let settings = receiver.settings;
    if settings.hooks.phases().is_empty() && with_modules::may_take(settings, called, request) {
        let begun = (head, request, log);
        let callable = (settings.modules.enabled(), called);
        return with_modules::take(receiver, input, begun, callable, (out, served));
    }
    log.keep_details(input.bytes);
    InputResult::Exchange {
        consumed: input.bytes.len(),
        exchange: leave(receiver, head, (Bits::NONE, false), log.take()),
    }
}

/// The state of a request with a hooked phase: it leaves the fast path before it is judged, or
/// where its answer is chosen if no phase before that is hooked. `rules` of the operator are for
/// it, and have changed its target for the cache key if it `is_rekeyed`.
#[cold]
fn leave(
    receiver: &Receiver<'_>,
    head: &RequestHead<'_, '_>,
    (rules, is_rekeyed): (Bits, bool),
    mut log: RequestLog,
) -> Box<RequestState> {
    let outcome = receiver.settings.operator_rules.outcome(rules);
    let mut directives_sent = None;
    let mut host = HostName::EMPTY;
    let (request, decided) = match receiver.judge(head, &mut host) {
        Err(answer) => return leave_refused(receiver, head, answer, log),
        Ok(mut received) => {
            let request = Request::new(&received, head);
            let settings = receiver.settings;
            let is_hooked = settings.hooks.phases().begin_before(Phase::Choose);
            if is_hooked || settings.modules.may_change_requests() {
                let tx = Transaction::new(received.facts, receiver.worker.now());
                (request, (tx, Plan::Judge, Digest::default()))
            } else {
                log.reach(Phase::Authorise);
                let choice = Choice {
                    bypass: outcome.bypass,
                    is_ruled: settings.operator_rules.may_decide_storing(),
                    is_rekeyed,
                    ..Choice::PLAIN
                };
                directives_sent = outcome.ignored.take_from(&mut received.facts.directives);
                let now = receiver.worker.now();
                let decided = choose(receiver, head, &received, now, choice);
                if decided.1.is_final() {
                    log.reach(Phase::Choose);
                }
                (request, decided)
            }
        }
    };
    let mut exchange = receiver.exchange(request, decided, log);
    exchange.operator_rules = rules;
    exchange.is_rekeyed = is_rekeyed;
    exchange.directives_sent = directives_sent.map(Box::new);
    Box::new(exchange.with_modules())
}

/// The state of a request that is refused with `answer`, which hooks and modules see.
#[cold]
fn leave_refused(
    receiver: &Receiver<'_>,
    head: &RequestHead<'_, '_>,
    answer: Answer,
    log: RequestLog,
) -> Box<RequestState> {
    let request = Request::refused(head, receiver.client.listener);
    let facts = RequestFacts::gather(request.method, "/", head.fields);
    let tx = Transaction::new(facts, receiver.worker.now());
    let decided = (tx, Plan::Answer(Box::new(answer)), Digest::default());
    Box::new(receiver.exchange(request, decided, log).with_modules())
}

/// Judges a request that left the fast path before this step, and chooses its response.
pub(crate) async fn judge(stream: &mut ClientStream<'_>, exchange: &mut RequestState) -> Plan {
    let (worker, settings) = (Rc::clone(&exchange.worker), Arc::clone(&exchange.settings));
    let (client, request) = (exchange.client.clone(), exchange.request.clone());
    let receiver = Receiver::new(&worker, &settings, client.facts(), HeadTime::Now);
    let changed = match module_calls::request_received(Some(stream), exchange).await {
        Received::Unchanged => None,
        Received::Changed(changed) => Some(changed),
        Received::Answered(plan) => return plan,
    };
    let fields = match &changed {
        None => request.fields(),
        Some(changed) => changed.lines(),
    };
    let head = match &changed {
        None => request.head(&fields),
        Some(changed) => RequestHead {
            target: &changed.target,
            ..request.head(&fields)
        },
    };
    let mut host = HostName::EMPTY;
    let mut received = match receiver.judge(&head, &mut host) {
        Ok(received) => received,
        Err(answer) => return Plan::Answer(Box::new(answer)),
    };
    if let Some(changed) = &changed {
        if changed.is_transformed {
            received.body = BodyLength::Chunked;
        }
        let modules = exchange.modules.as_deref();
        module_calls::keep_strict(exchange.tx.request(), modules, &mut received.facts);
        exchange.received = Some(Box::new(request.clone()));
        exchange.request = Request::new(&received, &head);
        if let Some(modules) = &mut exchange.modules {
            let request = &exchange.request;
            modules.retarget(request.host.as_bytes(), request.path_and_query());
        }
    }
    exchange.log.reach(Phase::Authorise);
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    exchange.ignore_directives(&mut received.facts);
    let keeps_content = received.facts.directives.no_transform;
    let choice = variants::begin(exchange, received.method, keeps_content);
    let (tx, plan, key) = choose(&receiver, &head, &received, worker.now(), choice);
    (exchange.tx, exchange.key) = (tx, key);
    if plan.is_final() {
        exchange.log.reach(Phase::Choose);
    }
    plan
}

/// A response in memory that is copied behind its head, for a request without content that must be
/// read first.
pub(super) fn is_served_at_once(
    receiver: &Receiver<'_>,
    request: &ReceivedRequest<'_>,
    response: &StoredResponse,
) -> bool {
    let body = &response.body;
    request.is_shareable() && body.len() <= receiver.copied_bytes_max && body.is_in_memory()
}

/// Steps the transaction to its first decision. Part of the way of every hit: a call and what it
/// returns would cost 2 % of one.
#[inline(always)]
pub(super) fn choose(
    receiver: &Receiver<'_>,
    head: &RequestHead<'_, '_>,
    request: &ReceivedRequest<'_>,
    now: Now,
    choice: Choice,
) -> (Transaction, Plan, Digest) {
    let (worker, settings) = (receiver.worker, receiver.settings);
    let mut tx = Transaction::new(request.facts, now);
    if choice.fetches_whole {
        tx.fetch_whole();
    }
    if request.method == Method::Connect {
        return (tx, Plan::Connect, Digest::default());
    }
    if is_for_us(receiver.client.listener.mode, head, request) {
        return (
            tx,
            Plan::Answer(Box::new(Answer::options())),
            Digest::default(),
        );
    }
    let store = &worker.shared.store;
    let key = request.key(store.secret());
    let commands = start(&mut tx, settings, now, choice, request.is_shareable());
    if commands.first() != Some(Command::LookUp) {
        return (tx, plan_of(&commands), key);
    }
    let who_asked = || WhoAsked::of(settings, receiver.client, request.target, store.secret());
    let selecting = |own: Digest, rule: &_| {
        let fields = SelectingFields {
            own: head.fields,
            who_asked: who_asked(),
        };
        selecting_digest(store.secret(), own, rule, fields)
    };
    let forwarded = match settings.believes_proxies(request.mode) {
        false => None,
        true => who_asked().variant(head.fields),
    };
    let found_in_memory = match (choice.variant, forwarded) {
        (None, None) => store.find(key, &|rule: &_| selecting(key, rule)),
        (variant, forwarded) => {
            let own = variant.map_or(key, |variant| variant.key(store.secret(), key));
            let own = forwarded.map_or(own, |it| forwarded_key(store.secret(), own, it));
            store.find_variant(key, &|rule: &_| selecting(own, rule))
        }
    };
    let plan = match found_in_memory {
        LookupResult::Found(response) => {
            let expect = |chosen: &_| store.expect_for(key, chosen);
            let reuse = match choice.is_ruled {
                true => reuse_for(receiver, request, &response),
                false => Reuse::NONE,
            };
            let found_now = (now, reuse);
            found(&mut tx, settings, found_now, head.fields, response, expect)
        }
        LookupResult::Missing(why) if store.may_be_on_disk(key) => Plan::DiskLookup(why),
        LookupResult::Missing(why) => missing(&mut tx, settings, now, why),
    };
    (tx, plan, key)
}

/// How rules of the operator have a stored response used for a request.
fn reuse_for(
    receiver: &Receiver<'_>,
    request: &ReceivedRequest<'_>,
    response: &StoredResponse,
) -> Reuse {
    let target = &request.target;
    let target = (target.host.as_bytes(), target.path_and_query);
    let mode = receiver.client.listener.mode;
    reuse_of(receiver.settings, mode, target, response)
}

/// An OPTIONS that is not forwarded: Max-Forwards is 0, or it is for the forward proxy as a whole.
fn is_for_us(mode: Mode, head: &RequestHead<'_, '_>, request: &ReceivedRequest<'_>) -> bool {
    request.method == Method::Options
        && (max_forwards::remaining(head.fields) == Some(0)
            || (mode == Mode::Forward && request.form == Form::Asterisk))
}
