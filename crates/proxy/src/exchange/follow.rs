//! Asking once for many: a request that must be forwarded leads, follows, or goes alone.

use crate::cache::chosen::Chosen;
use crate::cache::disk_lookup;
use crate::client::connection::Client;
use crate::exchange::inbound::Framing;
use crate::exchange::state::RequestState;
use crate::exchange::stored;
use crate::fetch::flights::{Boarded, Flight, Following, Landed, Leading, Terms};
use crate::fetch::gap;
use crate::fetch::in_flight::{InFlightResponse, Joining};
use crate::fetch::reader::{self, Attached, Start};
use crate::log::record::End;
use crate::log::request_log::ContentSource;
use crate::net::client_disconnect::ClientDisconnect;
use crate::net::deadline::Deadline;
use crate::request::vary::selecting_digest;
use crate::send::heads::{self, ServedForm};
use crate::worker::core::Worker;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_measure::Metric;
use weir_policy::fetch::{Confirm, FetchEnd};
use weir_policy::transaction::Joined;
use weir_policy::{Command, Event, Forwarding, Serving};
use weir_store::{Lookup, StoredResponse, VaryRule};

/// Flights one request is on, one after the other: each that turns out to be for others costs it a
/// wait.
const PASSES_MAX: usize = 3;

/// What a request that must be forwarded is to do.
pub(crate) enum Gate {
    /// Ask the next hop; for others too if it leads.
    Ask(Option<Leading>),
    /// Ask the next hop alone, so: what there is for others is not for this request, unless it is
    /// validated for it.
    Alone(Forwarding, Option<Chosen>),
    /// It was answered; whether the client's connection may go on.
    Answered(bool),
}

/// Goes through the gate.
pub(crate) async fn run(client: &mut Client, exchange: &mut RequestState) -> Gate {
    let mut passed: Vec<Arc<Flight>> = Vec::new();
    if !exchange.tx.follows() {
        return Gate::Ask(None);
    }
    let mut patience = Deadline::new(exchange.settings.config.fetch.follower_wait.as_duration());
    while passed.len() < PASSES_MAX {
        match board(client, exchange, &passed) {
            Boarded::Alone => break,
            Boarded::Lead(leading) => return Gate::Ask(Some(leading)),
            Boarded::Read(flight, in_flight) => {
                match join(client, exchange, &in_flight, None).await {
                    Some(gate) => return gate,
                    None => passed.push(flight),
                }
            }
            Boarded::Follow(following) => {
                let flight = Arc::clone(following.flight());
                match wait(client, exchange, following, &mut patience).await {
                    Some(gate) => return gate,
                    None => passed.push(flight),
                }
            }
        }
    }
    Gate::Ask(None)
}

fn board(client: &Client, exchange: &RequestState, passed: &[Arc<Flight>]) -> Boarded {
    let shared = &client.worker.shared;
    let selecting = |rule: &VaryRule| digest_of(client, exchange, rule);
    let terms = Terms {
        leads: exchange.tx.leads(),
        selecting: &selecting,
        followers_max: exchange.settings.config.fetch.followers_max as usize,
    };
    shared
        .flights
        .board(client.worker.now(), exchange.key, &terms, passed)
}

fn digest_of(client: &Client, exchange: &RequestState, rule: &VaryRule) -> weir_policy::Digest {
    let secret = client.worker.shared.store.secret();
    selecting_digest(secret, exchange.key, rule, &exchange.request.fields())
}

/// Waits for the response that another one asks for, as long as there is `patience`; `None` if that
/// was not one for this request.
async fn wait(
    client: &mut Client,
    exchange: &mut RequestState,
    following: Following,
    patience: &mut Deadline,
) -> Option<Gate> {
    let worker = Rc::clone(&client.worker);
    let half_closed = exchange.settings.config.fetch.half_closed.as_duration();
    let mut disconnect = ClientDisconnect::new(half_closed);
    let mut boarding = Boarding::new(&worker, following);
    let waited = {
        let _waiting = Waiting::new(&worker);
        poll_fn(|cx| {
            if let Poll::Ready(landed) = boarding.poll(cx) {
                return Poll::Ready(Waited::Landed(landed));
            }
            if disconnect.poll(&client.stream, cx).is_ready() {
                return Poll::Ready(Waited::ClientLeft);
            }
            patience.poll_passed(cx).map(|()| Waited::TooLong)
        })
        .await
    };
    let landed = match waited {
        Waited::Landed(landed) => landed,
        Waited::TooLong => return Some(Gate::Ask(None)),
        Waited::ClientLeft => return Some(client_left(client, exchange)),
    };
    match landed {
        Landed::Lead(leading) => Some(Gate::Ask(Some(leading))),
        Landed::Alone => Some(Gate::Ask(None)),
        Landed::Stored => {
            drop(boarding);
            look_again(client, exchange).await
        }
        Landed::Read(in_flight) if in_flight.is_for(&|rule| digest_of(client, exchange, rule)) => {
            join(client, exchange, &in_flight, Some(boarding)).await
        }
        Landed::Read(_) => None,
    }
}

/// How a wait for another's response ended.
enum Waited {
    Landed(Landed),
    /// The one who asks has no answer yet, and this request waits for it no longer.
    TooLong,
    ClientLeft,
}

fn client_left(client: &Client, exchange: &mut RequestState) -> Gate {
    client.worker.counters().inc(Metric::ClientAborts);
    exchange.log.broke_off(End::ClientLeft, "client-left");
    Gate::Answered(false)
}

/// A request on a flight: until it has left, or reads what arrives. Then those are told who went on
/// for its sake.
struct Boarding {
    worker: Rc<Worker>,
    flight: Arc<Flight>,
    following: Option<Following>,
}

impl Boarding {
    fn new(worker: &Rc<Worker>, following: Following) -> Self {
        Self {
            worker: Rc::clone(worker),
            flight: Arc::clone(following.flight()),
            following: Some(following),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Landed> {
        match &mut self.following {
            Some(following) => Pin::new(following).poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Drop for Boarding {
    fn drop(&mut self) {
        self.following = None;
        // not before: it may have landed just now
        if let Some(in_flight) = self.flight.landed() {
            in_flight.boarded(&self.worker);
        }
    }
}

/// A request that waits, as it is counted.
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
async fn look_again(client: &mut Client, exchange: &mut RequestState) -> Option<Gate> {
    let worker = Rc::clone(&client.worker);
    let now = worker.now();
    let found = {
        let selecting = |rule: &VaryRule| digest_of(client, exchange, rule);
        worker.shared.store.find(now, exchange.key, &selecting)
    };
    let Lookup::Found(found) = found else {
        return None;
    };
    let response = found.response;
    if !response.body.is_whole() {
        return None;
    }
    let before = exchange.tx;
    let commands = exchange.tx.joined(now, &response.facts, Joined::Waited);
    if let Some(Command::Serve(serving)) = commands.first() {
        let Ok(ready) = stored::ready(client, exchange, &response).await else {
            disk_lookup::forget(&worker, exchange, &response);
            exchange.tx = before;
            return None;
        };
        let alive = stored::send_stored(client, exchange, &response, serving, ready).await;
        return Some(Gate::Answered(alive));
    }
    // what must be validated before each use is validated for this one too, and not fetched again
    exchange.tx = before;
    let event = Event::Found(&response.facts);
    let commands = exchange.tx.handle(now, &exchange.settings.rules, event);
    match commands.first() {
        Some(Command::Forward(forwarding)) => {
            let expected = worker.shared.store.expect_for(exchange.key, &response);
            let chosen = Chosen { response, expected };
            Some(Gate::Alone(forwarding, Some(chosen)))
        }
        _ => None,
    }
}

/// Answers a request from what is arriving, if it is entitled to it; `None` if it cannot have it
/// from there. One that waited for it is on the flight until it reads, so that the fetch is never
/// without both.
async fn join(
    client: &mut Client,
    exchange: &mut RequestState,
    in_flight: &Arc<InFlightResponse>,
    boarding: Option<Boarding>,
) -> Option<Gate> {
    let before = exchange.tx;
    let joined = match boarding {
        Some(_) => Joined::Waited,
        None => Joined::Arriving,
    };
    let now = client.worker.now();
    let commands = exchange.tx.joined(now, &in_flight.response.facts, joined);
    let serving = match commands.first() {
        Some(Command::Serve(serving)) => serving,
        Some(Command::Forward(forwarding)) => return Some(Gate::Alone(forwarding, None)),
        _ => return Some(Gate::Ask(None)),
    };
    let form = form_of(exchange, in_flight, now.wall);
    let Some(span) = form.span(&in_flight.response) else {
        drop(boarding);
        let response = Arc::clone(&in_flight.response);
        let alive = stored::serve(client, exchange, &response, serving).await;
        return Some(Gate::Answered(alive));
    };
    let joining = Joining {
        followers_max: exchange.settings.config.fetch.followers_max as usize,
        completes: before.completes(),
        is_newcomer: boarding.is_none(),
    };
    let Some(reader) = in_flight.follow(now, span, joining) else {
        exchange.tx = before;
        return None;
    };
    drop(boarding);
    let attached = Attached::new(&client.worker, in_flight, reader, joining.completes);
    match confirm(client, exchange, &attached).await {
        Confirmed::Yes => {}
        Confirmed::No => {
            exchange.tx = before;
            return None;
        }
        Confirmed::ClientLeft => return Some(client_left(client, exchange)),
    }
    let start = Start {
        attached,
        span,
        head: head_for(client, exchange, &in_flight.response, form, serving),
        framing: form.framing(exchange.persistence.http11),
    };
    Some(Gate::Answered(read(client, exchange, start).await))
}

/// Whether a reader can be sent its head.
enum Confirmed {
    Yes,
    /// It cannot have all of it from there.
    No,
    ClientLeft,
}

/// Waits until it is known whether all that the reader will be promised is of one representation.
async fn confirm(client: &Client, exchange: &RequestState, attached: &Attached) -> Confirmed {
    let worker = &client.worker;
    let half_closed = exchange.settings.config.fetch.half_closed.as_duration();
    let mut disconnect = ClientDisconnect::new(half_closed);
    poll_fn(|cx| {
        loop {
            let (in_flight, reader) = (&attached.in_flight, attached.id);
            match in_flight.confirm(worker.now(), reader, cx.waker()) {
                Confirm::Yes => return Poll::Ready(Confirmed::Yes),
                Confirm::No => return Poll::Ready(Confirmed::No),
                Confirm::Fetch { fetch, .. } if !attached.completes => {
                    in_flight.end(worker, fetch, FetchEnd::Stopped, &[]);
                    return Poll::Ready(Confirmed::No);
                }
                Confirm::Fetch { fetch, span } => {
                    gap::spawn(client, exchange, in_flight, fetch, span);
                }
                Confirm::Wait => {
                    let disconnected = disconnect.poll(&client.stream, cx);
                    return disconnected.map(|()| Confirmed::ClientLeft);
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

/// The head for a reader of what is arriving as `response`.
pub(crate) fn head_for(
    client: &Client,
    exchange: &mut RequestState,
    response: &StoredResponse,
    form: ServedForm,
    serving: Serving,
) -> Vec<u8> {
    let http11 = exchange.persistence.http11;
    let framing = form.framing(http11);
    exchange.persistence.keep_alive &=
        framing != Framing::Close && !client.worker.shared.is_draining();
    let mut head = Vec::with_capacity(response.head.len() + 256);
    heads::write_head(
        &exchange.settings,
        response,
        form,
        serving,
        exchange.tx.verdict(),
        exchange.persistence,
        &mut head,
    );
    exchange.log.response_head(form.status(response), &head);
    head
}

/// Sends what `start` says and enters it into the account; whether the connection may go on.
pub(crate) async fn read(client: &mut Client, exchange: &mut RequestState, start: Start) -> bool {
    let worker = Rc::clone(&client.worker);
    // its question is answered
    exchange.expected = None;
    let in_flight = Arc::clone(&start.attached.in_flight);
    let sent = reader::run(client, exchange, start).await;
    let counters = worker.counters();
    counters.add(Metric::BytesToClients, sent.bytes);
    let log = &mut exchange.log;
    log.content_left(sent.content_times);
    log.sent(sent.bytes);
    let whole_bytes = sent.stored_bytes - sent.recovered_bytes;
    log.sent_content(sent.live_bytes, ContentSource::NextHop);
    log.sent_content(whole_bytes, ContentSource::Store);
    log.sent_content(sent.recovered_bytes, ContentSource::StoredPart);
    log.read_ahead(in_flight.read_ahead_max());
    match sent.end {
        reader::ReadEnd::Whole => {
            log.ended(End::Whole);
            client.closing = !exchange.persistence.keep_alive;
            exchange.persistence.keep_alive
        }
        reader::ReadEnd::Cut => {
            log.broke_off(End::NextHopCut, "next-hop-cut");
            false
        }
        reader::ReadEnd::LeftBehind => {
            log.broke_off(End::Ours, "left-behind");
            false
        }
        reader::ReadEnd::Unreadable => {
            log.broke_off(End::Ours, "store-cut");
            counters.inc(Metric::StoreCuts);
            false
        }
        reader::ReadEnd::ClientLeft => {
            log.broke_off(End::ClientLeft, "client-left");
            counters.inc(Metric::ClientAborts);
            false
        }
    }
}
