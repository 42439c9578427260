//! Collapsed requests: a request that must be forwarded leads, follows, or bypasses the group.

use crate::cache::chosen::ChosenResponse;
use crate::cache::disk_lookup;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::exchange::stored;
use crate::fetch::collapse::{Decision, Follower, Leader, WaitResult};
use crate::fetch::in_flight::{InFlightResponse, JoinTerms};
use crate::fetch::missing_range;
use crate::fetch::reader::{self, ReaderHandle, Start};
use crate::fetch::relay::LINK_SPENT;
use crate::log::client::ForPeers;
use crate::log::record::End;
use crate::log::request_log::ContentSource;
use crate::request::vary::selecting_digest;
use crate::send::heads::ServedForm;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_measure::Metric;
use weir_net::Deadline;
use weir_net::http::ClientStream;
use weir_policy::Digest;
use weir_policy::collapse::{Passes, Selection, Terms};
use weir_policy::fetch::{Confirm, FetchEnd};
use weir_policy::transaction::JoinKind;
use weir_policy::{Command, Event, Forwarding};
use weir_store::{LookupResult, VaryRule};

/// How a request that must be forwarded is handled.
pub(crate) enum FollowResult {
    /// Forward the request; as a leader, for its followers too.
    Forward(Option<Leader>),
    /// Forward the request for itself only, in this way. The response for others may not answer it,
    /// unless it is validated for it.
    Bypass(Forwarding, Option<ChosenResponse>),
    /// It was answered.
    Answered,
}

/// Leads, follows or bypasses.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
) -> FollowResult {
    if !exchange.tx.follows() {
        return FollowResult::Forward(None);
    }
    let mut passes = Passes::default();
    if let Some(variant) = exchange.variant_digest() {
        // requests share a response only if modules change it in the same way, and if proxies have
        // said the same of them
        passes.wants_variant(variant);
    }
    // most requests find none to wait for, and need no reading of the clock
    let mut patience = None;
    loop {
        // boxed: every forwarded request would be as large as one that waits; and made before it is
        // awaited, so that it alone holds what it is made from
        let (group, answered): (_, FollowFuture<'_>) = match want(exchange, &mut passes) {
            Decision::Bypass => return FollowResult::Forward(None),
            Decision::Lead(leader) => return FollowResult::Forward(Some(leader)),
            Decision::Read(group, in_flight) => {
                (group, Box::pin(join(stream, exchange, in_flight, None)))
            }
            Decision::Wait(follower) => {
                let limit = exchange.settings.config.fetch.follower_wait.as_duration();
                let patience = patience.get_or_insert_with(|| Box::new(Deadline::new(limit)));
                let limits = (&mut **patience, &mut passes);
                let group = follower.group();
                (group, Box::pin(wait(stream, exchange, follower, limits)))
            }
        };
        match answered.await {
            Some(result) => return result,
            None => passes.pass(group),
        }
    }
}

/// How the response to another request answers this one; `None`: it does not.
type FollowFuture<'a> = Pin<Box<dyn Future<Output = Option<FollowResult>> + 'a>>;

fn want(exchange: &RequestState, passes: &mut Passes<Digest>) -> Decision {
    let worker = &exchange.worker;
    let terms = Terms {
        leads: exchange.tx.leads(),
        waits: true,
        waits_for_nodes: exchange.client.facts().listener.peers == ForPeers::No,
        followers_max: exchange.settings.config.fetch.followers_max as usize,
    };
    let select = |response: &InFlightResponse| select(exchange, response);
    let collapsed = &worker.shared.collapsed;
    collapsed.want(worker.now(), exchange.key, terms, passes, &select)
}

fn select(exchange: &RequestState, response: &InFlightResponse) -> Selection<Digest> {
    let variant = exchange.variant_digest();
    response.select(variant, &|rule| digest_of(exchange, rule))
}

fn digest_of(exchange: &RequestState, rule: &VaryRule) -> Digest {
    let secret = exchange.worker.shared.store.secret();
    let key = exchange.variant_key();
    let fields = exchange.request.fields();
    selecting_digest(secret, key, rule, exchange.selecting(&fields))
}

/// Waits for the response to another request, for `patience` at most; `None` if that response
/// cannot answer this request.
pub(super) async fn wait(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    follower: Follower,
    (patience, passes): (&mut Deadline, &mut Passes<Digest>),
) -> Option<FollowResult> {
    let worker = Rc::clone(&exchange.worker);
    let half_closed = exchange.settings.config.fetch.half_closed.as_duration();
    let mut disconnect = stream.response.disconnect(half_closed);
    let mut follower = AwaitingFollower::new(&worker, follower);
    let waited = {
        let _waiting = Waiting::new(&worker);
        poll_fn(|cx| {
            if let Poll::Ready(result) = follower.poll(cx) {
                return Poll::Ready(WaitEnd::Decided(result));
            }
            if disconnect.poll(cx).is_ready() {
                return Poll::Ready(WaitEnd::ClientLeft);
            }
            patience.poll_passed(cx).map(|()| WaitEnd::TooLong)
        })
        .await
    };
    let result = match waited {
        WaitEnd::Decided(result) => result,
        WaitEnd::TooLong => return Some(FollowResult::Forward(None)),
        WaitEnd::ClientLeft => return Some(client_left(exchange)),
    };
    match result {
        WaitResult::Lead(leader) => Some(FollowResult::Forward(Some(leader))),
        WaitResult::Bypass => Some(FollowResult::Forward(None)),
        WaitResult::LookUp => {
            drop(follower);
            Box::pin(look_up_stored(stream, exchange, passes)).await
        }
        WaitResult::Read(in_flight) => match select(exchange, &in_flight) {
            Selection::Selected => {
                Box::pin(join(stream, exchange, in_flight, Some(follower))).await
            }
            Selection::Other(variant) => {
                passes.wants_variant(variant);
                None
            }
        },
    }
}

/// How a wait for the response of another request ended.
enum WaitEnd {
    Decided(WaitResult),
    /// There is no response head yet, and this request waits for it no longer.
    TooLong,
    ClientLeft,
}

fn client_left(exchange: &mut RequestState) -> FollowResult {
    exchange.worker.counters().inc(Metric::ClientAborts);
    exchange.log.broke_off(End::ClientLeft, "client-left");
    FollowResult::Answered
}

/// A follower, from the wait until it reads or gives up. When no follower is left that may still
/// read, it reports so to the in-flight response, which then continues or is stored.
struct AwaitingFollower {
    worker: Rc<Worker>,
    follower: Follower,
}

impl AwaitingFollower {
    fn new(worker: &Rc<Worker>, follower: Follower) -> Self {
        Self {
            worker: Rc::clone(worker),
            follower,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<WaitResult> {
        Pin::new(&mut self.follower).poll(cx)
    }
}

impl Drop for AwaitingFollower {
    fn drop(&mut self) {
        if let Some(in_flight) = self.follower.leave() {
            in_flight.not_awaited(&self.worker);
        }
    }
}

/// Counts a request as waiting as long as it lives.
struct Waiting<'a>(&'a Worker);

impl<'a> Waiting<'a> {
    fn new(worker: &'a Worker) -> Self {
        worker.counters().inc(Metric::FollowersWaiting);
        Self(worker)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.counters().dec(Metric::FollowersWaiting);
    }
}

/// The response was stored while this request waited: it is served from there, if it is one for it.
async fn look_up_stored(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    passes: &mut Passes<Digest>,
) -> Option<FollowResult> {
    let worker = Rc::clone(&exchange.worker);
    let now = worker.now();
    let variant = Cell::new(None);
    let found = {
        let selecting = |rule: &VaryRule| {
            let digest = digest_of(exchange, rule);
            variant.set(Some(digest));
            digest
        };
        let store = &worker.shared.store;
        match exchange.variant_digest() {
            None => store.find(exchange.key, &selecting),
            Some(_) => store.find_variant(exchange.key, &selecting),
        }
    };
    let LookupResult::Found(mut response) = found else {
        if let Some(variant) = variant.get() {
            passes.wants_variant(variant);
        }
        return None;
    };
    if !response.body.is_whole() {
        return None;
    }
    let facts = exchange
        .settings
        .facts_now(&mut exchange.tx, &response.facts);
    let facts = exchange.reuse_of(&response).of(&facts);
    let before = exchange.tx;
    let commands = exchange.tx.joined(now, &facts, JoinKind::Waited);
    if let Some(Command::Serve(serving)) = commands.first() {
        let Ok(ready) = stored::ready(stream, exchange, &response).await else {
            disk_lookup::forget(exchange, &response);
            exchange.tx = before;
            return None;
        };
        stored::send_stored(stream, exchange, &mut response, serving, ready).await;
        return Some(FollowResult::Answered);
    }
    // what must be validated before each use is validated for this one too, and not fetched again
    exchange.tx = before;
    let event = Event::Found(&facts);
    let commands = exchange.tx.handle(now, &exchange.settings.rules, event);
    match commands.first() {
        Some(Command::Forward(forwarding)) => {
            let expected = worker.shared.store.expect_for(exchange.key, &response);
            let chosen = ChosenResponse {
                response,
                expected: Box::new(expected),
            };
            Some(FollowResult::Bypass(forwarding, Some(chosen)))
        }
        _ => None,
    }
}

/// Answers a request from an in-flight response, if it is entitled to it; `None` if it cannot have
/// it from there. A request that waited for it is a follower until it reads, so that the fetch is
/// never without both.
async fn join(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    in_flight: Arc<InFlightResponse>,
    follower: Option<AwaitingFollower>,
) -> Option<FollowResult> {
    let in_flight = &in_flight;
    let facts = &in_flight.response.facts;
    let valid_since = &exchange.settings.membership.valid_since;
    if valid_since.must_validate_in_flight(facts.response_tick) {
        // what was purged since is not known here: another response is requested
        return None;
    }
    let before = exchange.tx;
    let joined = match follower {
        Some(_) => JoinKind::Waited,
        None => JoinKind::InFlight,
    };
    let now = exchange.worker.now();
    let facts = exchange.reuse_of(&in_flight.response).of(facts);
    let commands = exchange.tx.joined(now, &facts, joined);
    let serving = match commands.first() {
        Some(Command::Serve(serving)) => serving,
        Some(Command::Forward(forwarding)) => return Some(FollowResult::Bypass(forwarding, None)),
        _ => return Some(FollowResult::Forward(None)),
    };
    let form = form_of(exchange, in_flight, now.wall);
    let Some(span) = form.span(&in_flight.response) else {
        if follower.is_none() && in_flight.is_outdated() {
            exchange.tx = before;
            return None;
        }
        drop(follower);
        let response = Arc::clone(&in_flight.response);
        Box::pin(stored::serve(stream, exchange, &response, serving)).await;
        return Some(FollowResult::Answered);
    };
    let terms = JoinTerms {
        followers_max: exchange.settings.config.fetch.followers_max as usize,
        completes: before.completes(),
        is_newcomer: follower.is_none(),
    };
    let Some(reader) = in_flight.follow(span, terms) else {
        exchange.tx = before;
        return None;
    };
    drop(follower);
    let handle = ReaderHandle::new(&exchange.worker, in_flight, reader, terms.completes);
    match confirm(stream, exchange, &handle).await {
        Confirmation::Yes => {}
        Confirmation::No => {
            exchange.tx = before;
            return None;
        }
        Confirmation::ClientLeft => return Some(client_left(exchange)),
    }
    let start = Start { handle, span };
    let begun = stored::begin_stored(stream, exchange, &in_flight.response, form, serving).await;
    if let Err(refusal) = begun {
        respond::refuse(stream, exchange, &refusal).await;
        return Some(FollowResult::Answered);
    }
    let end = read(stream, exchange, start).await;
    let is_of_module = match end {
        reader::ReadEnd::Module => true,
        // nothing was put out before the next hop broke off
        reader::ReadEnd::Cut => in_flight.response.facts.is_transformed,
        _ => false,
    };
    if is_of_module && stream.response.retract() {
        // what the module answers is for the request that began the fetch; it decides on each other
        // one by itself
        let worker = Rc::clone(&exchange.worker);
        exchange.tx = before;
        let forwarding = exchange.forget_chosen(&worker);
        return Some(FollowResult::Bypass(forwarding, None));
    }
    Some(FollowResult::Answered)
}

/// Whether a reader can be sent its head.
enum Confirmation {
    Yes,
    /// It cannot have all of it from there.
    No,
    ClientLeft,
}

/// Waits until it is known whether all content that the head promises is of one representation.
async fn confirm(
    stream: &ClientStream<'_>,
    exchange: &RequestState,
    handle: &ReaderHandle,
) -> Confirmation {
    let worker = &exchange.worker;
    let half_closed = exchange.settings.config.fetch.half_closed.as_duration();
    let mut disconnect = stream.response.disconnect(half_closed);
    poll_fn(|cx| {
        loop {
            let (in_flight, reader) = (&handle.in_flight, handle.id);
            match in_flight.confirm(worker.now(), reader, cx.waker()) {
                Confirm::Yes => return Poll::Ready(Confirmation::Yes),
                Confirm::No => return Poll::Ready(Confirmation::No),
                Confirm::Fetch { fetch, .. } if !handle.completes => {
                    in_flight.end(worker, fetch, FetchEnd::Stopped, &[]);
                    return Poll::Ready(Confirmation::No);
                }
                Confirm::Fetch { fetch, span } => {
                    missing_range::spawn(exchange, in_flight, fetch, span);
                }
                Confirm::Wait => {
                    let disconnected = disconnect.poll(cx);
                    return disconnected.map(|()| Confirmation::ClientLeft);
                }
            }
        }
    })
    .await
}

/// In what form what is arriving answers the request. Without a known length there are no parts of
/// it.
fn form_of(
    exchange: &RequestState,
    in_flight: &InFlightResponse,
    now: weir_semantics::Timestamp,
) -> ServedForm {
    let response = &in_flight.response;
    match exchange.form_of(response, now) {
        ServedForm::Whole | ServedForm::Part(_) | ServedForm::Unsatisfiable
            if response.body.complete_length().is_none() =>
        {
            ServedForm::Unsized
        }
        form => form,
    }
}

/// Sends the head that is queued and what `start` says, and enters it into the log; how that ended.
pub(crate) async fn read(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    start: Start,
) -> reader::ReadEnd {
    let worker = Rc::clone(&exchange.worker);
    // its question is answered
    exchange.expected = None;
    let in_flight = Arc::clone(&start.handle.in_flight);
    let sent = reader::run(stream, exchange, start).await;
    let counters = worker.counters();
    let log = &mut exchange.log;
    log.content_left(sent.content_times);
    let whole_bytes = sent.stored_bytes - sent.recovered_bytes;
    log.sent_content(sent.live_bytes, ContentSource::NextHop);
    log.sent_content(whole_bytes, ContentSource::Store);
    log.sent_content(sent.recovered_bytes, ContentSource::StoredPart);
    log.read_ahead(in_flight.read_ahead_max());
    match sent.end {
        reader::ReadEnd::Whole => log.ended(End::Whole),
        reader::ReadEnd::Cut if in_flight.is_link_spent() => {
            log.broke_off(End::NextHopCut, LINK_SPENT);
        }
        reader::ReadEnd::Cut => log.broke_off(End::NextHopCut, "next-hop-cut"),
        reader::ReadEnd::Module => log.broke_off(End::Ours, "module-ended"),
        reader::ReadEnd::ContentDropped => log.broke_off(End::Ours, "content-dropped"),
        reader::ReadEnd::Unreadable => {
            log.broke_off(End::Ours, "store-cut");
            counters.inc(Metric::StoreCuts);
        }
        reader::ReadEnd::ClientLeft => {
            log.broke_off(End::ClientLeft, "client-left");
            counters.inc(Metric::ClientAborts);
        }
    }
    sent.end
}
