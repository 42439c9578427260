//! One request that needs more than a look-up: forwarded, tunnelled, or answered with a large
//! response.
//!
//! An exchange owns the bytes of its request head and parses them again where a field is needed:
//! that costs a tenth of a microsecond, and keeps every borrow inside one synchronous function.

use crate::cache::chosen::Chosen;
use crate::cache::disk_lookup;
use crate::cache::refresh;
use crate::client::connection::Client;
use crate::config::Mode;
use crate::exchange::connect;
use crate::exchange::forward;
use crate::exchange::upload;
use crate::exchange::upload::UploadEnd;
use crate::fetch::continuation;
use crate::fetch::flights::Leading;
use crate::fetch::gap::Gap;
use crate::log::account::Account;
use crate::log::record::{End, Moments, Notes, Told};
use crate::log::report;
use crate::log::report::Ended;
use crate::request::answer::{Answer, head_of};
use crate::request::judge::Request;
use crate::send::disk_read::ReadTrouble;
use crate::send::heads::{self, Persistence, ServedForm};
use crate::send::outgoing::{Outgoing, StoredPiece};
use crate::worker::core::Worker;
use crate::worker::settings::Settings;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use weir_measure::Metric;
use weir_policy::fetch::ReadAhead;
use weir_policy::{Digest, Event, Forwarding, Missing, Serving, StoredFacts, Transaction};
use weir_semantics::{FieldLine, Form, HostName, Method, Timestamp};
use weir_store::{Expected, Known, StoredResponse};
use weir_wire::{BodyLength, LineBuffer, Progress, RequestHead, Version, parse_request};

/// What is to be done for a request.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Send a stored response; validate it in the background if there is a `refresh`.
    Serve {
        /// The response.
        response: Arc<StoredResponse>,
        /// How.
        serving: Serving,
        /// RFC 5861 §3: what the answer may bring into the store.
        refresh: Option<Expected>,
    },
    /// Ask the next hop.
    Forward {
        /// How.
        forwarding: Forwarding,
        /// The stale response that is validated, or served if the next hop fails.
        stored: Option<Chosen>,
    },
    /// Look on disk: memory has none, for this reason.
    DiskLookup(Missing),
    /// Open a tunnel (RFC 9110 §9.3.6).
    Connect,
    /// Answer by ourselves.
    Answer(Answer),
}

/// Where the canonical path stands.
#[derive(Clone, Debug)]
enum PathAt {
    /// In the head as received.
    Head(Range<usize>),
    /// Not in the head: an empty path that means `/` or `*`.
    Fixed(&'static str),
}

impl PathAt {
    fn find(head: &[u8], path: &str) -> Self {
        let start = (path.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
        match head.get(start..start.wrapping_add(path.len())) {
            Some(bytes) if bytes == path.as_bytes() => Self::Head(start..start + path.len()),
            _ if path == "*" => Self::Fixed("*"),
            _ => Self::Fixed("/"),
        }
    }
}

/// A request and what is known of it.
pub(crate) struct Exchange {
    /// The head as received, empty lines in front included.
    pub(crate) head: Box<[u8]>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) tx: Transaction,
    pub(crate) plan: Plan,
    pub(crate) key: Digest,
    pub(crate) account: Account,
    pub(crate) mode: Mode,
    pub(crate) method: Method,
    pub(crate) form: Form,
    path: PathAt,
    pub(crate) host: HostName,
    pub(crate) port: u16,
    pub(crate) body: BodyLength,
    pub(crate) persistence: Persistence,
    pub(crate) upgrade: bool,
    /// What became of the content once it was begun to be sent on.
    pub(crate) uploaded: Option<UploadEnd>,
    /// No client waits for it: a validation in the background, or a fetch for readers of what is
    /// arriving.
    pub(crate) background: bool,
    /// What is missing of a stored part, and asked for.
    pub(crate) gap: Option<Gap>,
    /// It asks for others too.
    pub(crate) leading: Option<Leading>,
    /// The response, before it comes: a purge from here on is one of it too.
    pub(crate) expected: Option<Expected>,
    /// What the disk has of other variants.
    pub(crate) known: Option<Known>,
    /// `Content-Type` of the response, if it is logged.
    content_type: Box<[u8]>,
    /// What a recorder wants to know.
    pub(crate) notes: Option<Box<Notes>>,
}

impl Exchange {
    pub(crate) fn new(
        head: &[u8],
        request: &Request<'_>,
        settings: Arc<Settings>,
        tx: Transaction,
        plan: Plan,
        key: Digest,
        account: Account,
    ) -> Self {
        Self {
            head: head.into(),
            path: PathAt::find(head, request.target.path_and_query),
            settings,
            tx,
            plan,
            key,
            account,
            mode: request.mode,
            method: request.method,
            form: request.form,
            host: request.target.host,
            port: request.target.port,
            body: request.body,
            persistence: Persistence {
                keep_alive: request.keep_alive,
                http11: request.version == Version::Http11,
            },
            upgrade: request.upgrade,
            uploaded: None,
            background: false,
            gap: None,
            leading: None,
            expected: None,
            known: None,
            content_type: Box::default(),
            notes: None,
        }
    }

    /// The same request again, for the store alone.
    pub(crate) fn in_background(&self, tx: Transaction, plan: Plan, started: Instant) -> Self {
        Self {
            head: self.head.clone(),
            path: self.path.clone(),
            settings: Arc::clone(&self.settings),
            tx,
            plan,
            account: Account::new(started, 0, false),
            method: Method::Get,
            body: BodyLength::None,
            upgrade: false,
            background: true,
            gap: None,
            leading: None,
            expected: None,
            known: None,
            content_type: Box::default(),
            notes: None,
            ..*self
        }
    }

    /// The head of the response is made.
    pub(crate) fn responds(&mut self, head: &[u8]) {
        if self.account.timed {
            self.content_type = report::content_type(head).into();
        }
        self.note(|notes| notes.response(head));
    }

    /// Enters something for the recorder, if there is one.
    pub(crate) fn note(&mut self, enter: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &mut self.notes {
            enter(notes);
        }
    }

    /// Nobody asks when content leaves, unless there is a recorder.
    pub(crate) fn moments(&self) -> Moments {
        Moments::new(self.notes.is_some())
    }

    /// Whether it fills a gap of a response under construction.
    pub(crate) fn fills_gap(&self) -> bool {
        self.gap.as_ref().is_some_and(|gap| gap.into.is_some())
    }

    /// Whether nobody waits for what it brings: a validation in the background.
    pub(crate) fn is_for_store_alone(&self) -> bool {
        self.background && !self.fills_gap()
    }

    /// How far a fetch for it may run ahead.
    pub(crate) fn read_ahead(&self) -> ReadAhead {
        self.settings
            .read_ahead_for(self.mode, self.host.as_str(), self.path_and_query())
    }

    /// In what form `response` answers it.
    pub(crate) fn form_of(&self, response: &StoredResponse, now: Timestamp) -> ServedForm {
        let facts = *self.tx.request();
        self.with_fields(|fields| ServedForm::of(&facts, fields, response, now))
            .unwrap_or(ServedForm::Whole)
    }

    /// What was chosen is held, with what the answer may bring into the store: it is expected from
    /// the choice on.
    pub(crate) fn hold(&mut self, chosen: Option<Chosen>) -> Option<Arc<StoredResponse>> {
        let (response, expected) = chosen.map(|it| (it.response, it.expected)).unzip();
        self.expected = expected;
        response
    }

    /// The next hop is about to be asked, about a stored response if one was chosen; `false` if
    /// that was forgotten while the request waited. Then it is to be asked as if nothing had been
    /// found.
    pub(crate) fn expect(&mut self, worker: &Worker) -> bool {
        let is_current = self.expected.as_mut().is_none_or(Expected::renew);
        let store = &worker.shared.store;
        // a HEAD stores nothing, but its 200 may update what is stored
        let may_store = self.tx.may_store() || self.tx.may_update(200);
        let held = self.expected.take().filter(|_| is_current);
        let expected = held.or_else(|| may_store.then(|| store.expect(self.key)));
        self.expected = expected.map(|expected| {
            let expected = expected.named(|| self.target_uri());
            match &self.known {
                Some(known) => known.tell(expected),
                None => expected,
            }
        });
        is_current
    }

    /// What was chosen for it was forgotten since: how it is asked for as if nothing had been
    /// found.
    pub(crate) fn lose(&mut self, worker: &Worker) -> Forwarding {
        self.gap = None;
        let _ = self.tx.lost(worker.now());
        Forwarding {
            validate: false,
            complete: false,
        }
    }

    /// Whether what was chosen for it was forgotten since.
    pub(crate) fn is_outdated(&self) -> bool {
        self.expected.as_ref().is_some_and(Expected::is_outdated)
    }

    /// The answer is not for others: those who wait for it ask for themselves. So do those who come
    /// for a while, if that is to be `remembered`.
    pub(crate) fn go_alone(&mut self, worker: &Worker, remembered: bool) {
        let Some(leading) = self.leading.take() else {
            return;
        };
        leading.alone();
        if remembered {
            let now = worker.now();
            let ms = self.settings.config.fetch.uncollapsible_for.as_millis();
            let until = now.tick.plus_ms(ms);
            worker.shared.flights.mark_alone(now, self.key, until);
        }
    }

    /// What was stored is freshened to `stored`, or dropped: those who wait look again, if it may
    /// be for them.
    pub(crate) fn freshened(&mut self, worker: &Worker, stored: Option<&StoredFacts>) {
        if !stored.is_some_and(|facts| facts.answers_others(worker.now())) {
            self.go_alone(worker, true);
        } else if let Some(leading) = self.leading.take() {
            leading.stored();
        }
    }

    /// Calls `use_it` with the parsed head. It was parsed before, so it parses again.
    pub(crate) fn with_head<T>(&self, use_it: impl FnOnce(&RequestHead<'_, '_>) -> T) -> Option<T> {
        let mut lines = LineBuffer::new();
        match parse_request(&self.head, &self.settings.heads, &mut lines) {
            Ok(Progress::Complete { head, .. }) => Some(use_it(&head)),
            _ => None,
        }
    }

    /// Calls `use_it` with the field lines of the request.
    pub(crate) fn with_fields<T>(&self, use_it: impl FnOnce(&[FieldLine<'_>]) -> T) -> Option<T> {
        self.with_head(|head| use_it(head.fields))
    }

    /// Tells the transaction what happened, where nothing is to be done about it.
    pub(crate) fn tell(&mut self, worker: &Worker, event: Event<'_>) {
        let rules = &self.settings.rules;
        let _ = self.tx.handle(worker.now(), rules, event);
    }

    /// Path and query of the canonical target, or `*`.
    pub(crate) fn path_and_query(&self) -> &str {
        match &self.path {
            PathAt::Head(range) => self
                .head
                .get(range.clone())
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .unwrap_or("/"),
            PathAt::Fixed(path) => path,
        }
    }

    /// The canonical target as a URI.
    fn target_uri(&self) -> String {
        let (host, path) = (self.host.as_str(), self.path_and_query());
        match self.port {
            80 => format!("http://{host}{path}"),
            port => format!("http://{host}:{port}{path}"),
        }
    }

    /// Whether content of the request is still to be read from the client.
    pub(crate) fn has_content(&self) -> bool {
        !matches!(self.body, BodyLength::None | BodyLength::Exact(0))
    }
}

/// Carries an exchange out; `true` if the client's connection may go on.
pub(crate) async fn run(client: &mut Client, mut exchange: Box<Exchange>) -> bool {
    let worker = std::rc::Rc::clone(&client.worker);
    worker.counters().inc(Metric::RequestsInFlight);
    let _in_flight = InFlight(&worker);
    let mut plan = std::mem::replace(&mut exchange.plan, Plan::Connect);
    let alive = loop {
        match plan {
            Plan::DiskLookup(missing) => {
                plan = disk_lookup::run(client, &mut exchange, missing).await
            }
            Plan::Serve {
                response,
                serving,
                refresh,
            } => match serve_stored(client, &mut exchange, &response, serving, refresh).await {
                Ok(alive) => break alive,
                Err(_) => plan = disk_lookup::unreadable(client, &mut exchange, &response),
            },
            Plan::Forward { forwarding, stored } => {
                // boxed: the future of a hit would be as large as this one
                break Box::pin(forward::run(client, &mut exchange, forwarding, stored)).await;
            }
            Plan::Connect => break Box::pin(connect::run(client, &mut exchange)).await,
            Plan::Answer(answer) => break respond(client, &mut exchange, answer).await,
        }
    };
    let alive = alive && !worker.shared.is_draining();
    report(client, &exchange, alive);
    alive
}

fn report(client: &Client, exchange: &Exchange, alive: bool) {
    let (tx, account) = (&exchange.tx, &exchange.account);
    let total_us = account.elapsed_us();
    if let Some(record) = &client.worker.shared.record {
        let told = Told {
            account,
            verdict: tx.verdict(),
            request: &exchange.head,
            response: &[],
            notes: exchange.notes.as_deref(),
            total_us,
            sequence: client.requests,
            request_content_bytes: (!exchange.has_content()).then_some(0),
            lacks_host: exchange.form == Form::Origin && !exchange.persistence.http11,
            is_persistent: alive,
        };
        record.tell(told.of(client));
    }
    let ended = Ended {
        settings: &exchange.settings,
        head: None,
        verdict: tx.verdict(),
        account,
        content_type: &exchange.content_type,
        total_us,
    };
    if account.timed {
        let reported = exchange.with_head(|head| {
            let head = Some(head);
            report::done(client, &Ended { head, ..ended });
        });
        debug_assert!(reported.is_some());
    } else {
        report::done(client, &ended);
    }
}

struct InFlight<'a>(&'a crate::worker::core::Worker);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.counters().dec(Metric::RequestsInFlight);
    }
}

/// Sends a stored response that was found, and validates it in the background if there is a
/// `refresh`.
async fn serve_stored(
    client: &mut Client,
    exchange: &mut Exchange,
    response: &Arc<StoredResponse>,
    serving: Serving,
    refresh: Option<Expected>,
) -> Result<bool, ReadTrouble> {
    let worker = std::rc::Rc::clone(&client.worker);
    let ready = ready(client, exchange, response).await?;
    // what is hit is asked for again too
    worker.shared.popularity.note(exchange.key);
    if let Some(expected) = refresh {
        let chosen = Chosen {
            response: Arc::clone(response),
            expected,
        };
        refresh::spawn(&worker, client.door.mode, exchange, chosen);
    }
    Ok(send_stored(client, exchange, response, serving, ready).await)
}

/// Finds out whether a stored response can be sent, while nothing of it was promised.
pub(crate) async fn ready(
    client: &Client,
    exchange: &Exchange,
    response: &Arc<StoredResponse>,
) -> Result<Ready, ReadTrouble> {
    let mut ready = Ready::of(exchange, response, client.worker.now().wall);
    ready.prepare().await?;
    Ok(ready)
}

/// Sends a stored response, whatever its size; `true` if the connection may go on. There is nothing
/// else to send: if it cannot be read, that is said.
pub(crate) async fn serve(
    client: &mut Client,
    exchange: &mut Exchange,
    response: &Arc<StoredResponse>,
    serving: Serving,
) -> bool {
    match ready(client, exchange, response).await {
        Ok(ready) => send_stored(client, exchange, response, serving, ready).await,
        Err(trouble) => {
            disk_lookup::forget(&client.worker, exchange, response);
            respond(client, exchange, Answer::unreadable(trouble)).await
        }
    }
}

/// A stored response about to be sent.
pub(crate) struct Ready {
    form: ServedForm,
    /// Its content, if some is on disk: the first bytes of it are read before anything is promised.
    piece: Option<StoredPiece>,
}

impl Ready {
    fn of(exchange: &Exchange, response: &Arc<StoredResponse>, now: Timestamp) -> Self {
        let form = exchange.form_of(response, now);
        let is_on_disk = !response.body.is_in_memory();
        let (at, end) = form.content(response);
        let piece = is_on_disk.then(|| StoredPiece::new(response, at, end));
        Self { form, piece }
    }

    async fn prepare(&mut self) -> Result<(), ReadTrouble> {
        match &mut self.piece {
            Some(piece) => piece.prepare().await,
            None => Ok(()),
        }
    }
}

/// Sends a stored response that can be read; `true` if the connection may go on.
pub(crate) async fn send_stored(
    client: &mut Client,
    exchange: &mut Exchange,
    response: &Arc<StoredResponse>,
    serving: Serving,
    ready: Ready,
) -> bool {
    // its question is answered
    exchange.expected = None;
    let keep = settle_content(client, exchange).await;
    let Ready { form, piece } = ready;
    let mut out = Vec::with_capacity(response.head.len() + 256);
    let persistence = keep.and(exchange.persistence, client);
    let settings = Arc::clone(&exchange.settings);
    heads::write_head(
        &settings,
        response,
        form,
        serving,
        exchange.tx.verdict(),
        persistence,
        &mut out,
    );
    let account = &mut exchange.account;
    account.status = form.status(response);
    account.first_byte_us = Some(account.elapsed_us());
    exchange.responds(&out);
    let (at, end) = form.content(response);
    let head_bytes = out.len() as u64;
    let mut outgoing = Outgoing::default();
    outgoing.push(&out);
    // not copied behind the head: here there is no buffer for that
    outgoing.push_stored(piece.unwrap_or_else(|| StoredPiece::new(response, at, end)));
    let mut moments = exchange.moments();
    let (sent, end_of_it) =
        send_all(client, &mut outgoing, &settings, (&mut moments, head_bytes)).await;
    exchange.note(|notes| notes.left(moments));
    let account = &mut exchange.account;
    account.response_bytes += sent;
    let content = sent.saturating_sub(head_bytes).min(end - at);
    account.body_bytes += content;
    account.store_bytes += content;
    if response.is_part() {
        account.recovered_bytes += content;
    }
    match end_of_it {
        SendEnd::Whole => {
            account.end = End::Whole;
            client.closing = !persistence.keep_alive;
            persistence.keep_alive
        }
        SendEnd::ClientLeft => {
            account.break_off(End::ClientLeft, "client-left");
            false
        }
        SendEnd::Unreadable => {
            client.worker.shared.store.drop_one(exchange.key, response);
            exchange.persistence = persistence;
            let went_on = continuation::run(client, exchange, response, outgoing).await;
            went_on.unwrap_or_else(|| {
                exchange.account.break_off(End::Ours, "store-cut");
                client.worker.counters().inc(Metric::StoreCuts);
                false
            })
        }
    }
}

/// Sends an answer of our own; `true` if the connection may go on.
pub(crate) async fn respond(client: &mut Client, exchange: &mut Exchange, answer: Answer) -> bool {
    let keep = settle_content(client, exchange).await;
    let persistence = keep.and(exchange.persistence, client);
    let mut answer = answer;
    answer.close |= !persistence.keep_alive;
    let settings = Arc::clone(&exchange.settings);
    let mut out = Vec::new();
    // the transaction may know a finer reason already
    if !matches!(
        exchange.tx.verdict().handling,
        weir_policy::Handling::Refused(_)
    ) {
        let _ = exchange.tx.refuse(answer.trouble.refused);
    }
    let content = answer.write(
        &settings,
        exchange.tx.verdict(),
        exchange.method == Method::Head,
        &client.worker.date(),
        &mut out,
    );
    exchange.account.status = answer.status;
    exchange.account.error = Some(answer.trouble.error.as_str());
    let mut outgoing = Outgoing::default();
    outgoing.push(&out);
    // head first: what was sent beyond it is content
    let head_bytes = out.len() as u64 - content;
    exchange.responds(head_of(&out, content));
    let mut moments = exchange.moments();
    let (sent, end) = send_all(client, &mut outgoing, &settings, (&mut moments, head_bytes)).await;
    exchange.note(|notes| notes.left(moments));
    exchange.account.response_bytes += sent;
    exchange.account.end = match end {
        SendEnd::Whole => End::Whole,
        SendEnd::ClientLeft => End::ClientLeft,
        SendEnd::Unreadable => End::Ours,
    };
    let content = sent.saturating_sub(head_bytes);
    exchange.account.body_bytes += content;
    exchange.account.own_bytes += content;
    client.closing = answer.close;
    end == SendEnd::Whole && !answer.close
}

/// What is left of the request's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing: the next bytes are a request.
    Settled,
    /// Some may follow: the connection must not be read as requests again.
    Unsettled,
}

impl Content {
    fn and(self, persistence: Persistence, client: &Client) -> Persistence {
        Persistence {
            keep_alive: persistence.keep_alive
                && self == Self::Settled
                && !client.worker.shared.is_draining(),
            ..persistence
        }
    }
}

/// Reads away content that nobody will use, up to the limit: what follows must never be taken for a
/// request.
async fn settle_content(client: &mut Client, exchange: &Exchange) -> Content {
    if !exchange.has_content() {
        return Content::Settled;
    }
    if let Some(end) = exchange.uploaded {
        return if end.is_whole() {
            Content::Settled
        } else {
            Content::Unsettled
        };
    }
    // whoever waits for 100 may send the content or not: only closing is unambiguous (RFC 9110
    // §10.1.1)
    if exchange.tx.request().expects_continue {
        return Content::Unsettled;
    }
    if upload::discard(client, exchange).await {
        Content::Settled
    } else {
        Content::Unsettled
    }
}

/// How sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEnd {
    /// The client's kernel has everything.
    Whole,
    /// The client went away, or stopped reading.
    ClientLeft,
    /// The rest of what was promised cannot be read from disk: the client is cut, and sees that by
    /// the length it was told.
    Unreadable,
}

/// Sends everything in `outgoing` within the silence limit; bytes sent and how that ended. The
/// moments are those of what is behind so many bytes of the head.
pub(crate) async fn send_all(
    client: &mut Client,
    outgoing: &mut Outgoing,
    settings: &Settings,
    (moments, head_bytes): (&mut Moments, u64),
) -> (u64, SendEnd) {
    let silence = settings.config.limits.client_silence.as_duration();
    client.deadline.set(silence);
    let mut sent = 0;
    let whole = poll_fn(|cx: &mut Context<'_>| {
        while !outgoing.is_empty() {
            match outgoing.poll_send_some(&mut client.stream, cx) {
                Poll::Pending => return client.deadline.poll_passed(cx).map(|()| false),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(written)) => {
                    sent += written as u64;
                    moments.reach(sent.saturating_sub(head_bytes));
                    client.deadline.set(silence);
                }
            }
        }
        Poll::Ready(true)
    })
    .await;
    client.worker.counters().add(Metric::BytesToClients, sent);
    if whole {
        return (sent, SendEnd::Whole);
    }
    if outgoing.trouble().is_some() {
        return (sent, SendEnd::Unreadable);
    }
    client.worker.counters().inc(Metric::ClientAborts);
    (sent, SendEnd::ClientLeft)
}
