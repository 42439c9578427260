//! The run: rows in the order of arrival, and what follows from each under the virtual clock.
//!
//! ```text
//! row ── connection ── [set-up] ── request at the proxy ─┬─ stored ───────────────────────────┐
//!                                  (engine/choose.rs)    ├─ in flight for another (collapse) ─┤
//!                                                        └─ fetch ── head ── content ─────────┤
//!                                                           (next_hop.rs, head.rs, fetch.rs)  │
//! client has all, or leaves  <── link ── packets <────────────────────────────────────────────┘
//! (engine/done.rs)                       (engine/send.rs)
//! ```
//!
//! What is decided is decided by `policy::Transaction`, `policy::Catalog`,
//! `policy::fetch::InFlightState` and `policy::connections`, driven here as the live proxy drives
//! them. An in-flight response ([`in_flight`]) has a fetch and readers; what a fetch may take
//! depends on where its fastest reader is, and so on the client's link.
//!
//! A response that is alone on a client's link, and all at hand, is sent in closed form: one event.
//! When another one begins to be sent there, the packets sent so far are worked out, and the
//! rest is sent packet by packet.

mod choose;
mod collapse;
mod commit;
mod done;
mod exchange;
mod fetch;
mod freshen;
mod head;
mod in_flight;
mod links;
mod next_hop;
mod plain;
mod send;
mod single_reader;

#[cfg(test)]
mod tests;

use crate::cache::Cache;
use crate::facts::{Ask, Assumption, Assumptions};
use crate::hashing::{ByNumber, mix};
use crate::journal::{Happening, What};
use crate::network::connections::Side;
use crate::network::link::Link;
use crate::network::server_times::Known;
use crate::network::tcp::Sender;
use crate::results::forecast::Forecast;
use crate::results::outcome::{Latency, Outcome, Tally};
use crate::results::request_result::ResultSink;
use crate::settings::{Caching, Path, Settings, SettingsError};
use crate::world::slab::Slab;
use crate::world::{Event, MICROSECOND, Nanos, World};
use collapse::Requests;
use exchange::{Exchange, ServerDelay, Stage};
use fetch::Fetch;
use in_flight::InFlightResponse;
use links::Links;
use std::collections::VecDeque;
use weir_policy::fetch::{Background, BackgroundValidations, Popularity};
use weir_policy::rule::StoringRules;
use weir_policy::{Commands, Now, StoredFacts, Verdict};
use weir_semantics::DeltaSeconds;
use weir_trace::{Column, Columns, Row};
use weir_workload::Chance;

/// One run over one trace.
#[derive(Debug)]
pub struct Simulator {
    settings: Settings,
    world: World,
    is_begun: bool,
    last_arrival_us: i64,
    rows: u64,
    cache: Cache,
    clients: Side,
    servers: Side,
    internet: Link,
    /// Bytes of content and heads in each packet in front of that link or on it.
    on_internet: VecDeque<u32>,
    links: Links,
    exchanges: Slab<Exchange>,
    /// To work out how a response will go on.
    scratch: Sender,
    fetches: Slab<Fetch>,
    in_flight: Slab<InFlightResponse>,
    collapse: Requests,
    popularity: Popularity,
    background: Background,
    server_times: Known,
    chance: Chance,
    tally: Tally,
    /// What is spent of the quotas of links.
    forecasts: Vec<Forecast>,
    /// Each request's verdict, if they are recorded.
    recorded: Option<Vec<(u64, Verdict)>>,
    /// Receives the result of each request, if there is one.
    results: Option<Box<dyn ResultSink>>,
    /// What happened, if that is recorded.
    journal: Option<Vec<Happening>>,
    /// Transfers from servers that were begun.
    transfers: u64,
    /// Targets that are validated in the background.
    refreshes: BackgroundValidations<u64>,
    /// How often a target was invalidated: responses requested before are not stored.
    invalidations: ByNumber<u32>,
    /// How often a stored response of a target was forgotten by itself: what rests on one that was
    /// chosen before is not stored.
    drops: ByNumber<u32>,
    /// Tests switch it off, to see that it makes no difference.
    plain_is_allowed: bool,
}

impl Simulator {
    /// The columns that it needs of a row: reading more of a trace takes time and changes nothing.
    pub const COLUMNS: Columns = Columns::of(&[
        Column::arrival_us,
        Column::setup_us,
        Column::request_us,
        Column::response_us,
        Column::next_hop_setup_us,
        Column::next_hop_response_us,
        Column::next_hop_bytes,
        Column::client,
        Column::server,
        Column::target,
        Column::method,
        Column::version,
        Column::has_cookie,
        Column::has_authorization,
        Column::has_query,
        Column::has_cgi_bin,
        Column::request_directives,
        Column::request_max_age_s,
        Column::range_first,
        Column::range_last,
        Column::variant,
        Column::status,
        Column::content_type,
        Column::has_set_cookie,
        Column::response_directives,
        Column::max_age_s,
        Column::s_maxage_s,
        Column::stale_while_revalidate_s,
        Column::stale_if_error_s,
        Column::date_s,
        Column::expires_s,
        Column::age_s,
        Column::last_modified_s,
        Column::etag,
        Column::etag_is_weak,
        Column::vary,
        Column::declared_bytes,
        Column::received_bytes,
        Column::complete_bytes,
        Column::response_head_bytes,
        Column::request_content_bytes,
        Column::aborted_by,
        Column::is_persistent_client,
        Column::is_persistent_server,
    ]);

    /// A run that has seen nothing yet.
    ///
    /// # Errors
    /// Settings that cannot be run.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let network = &settings.network;
        Ok(Self {
            world: World::new(0),
            is_begun: false,
            last_arrival_us: i64::MIN,
            rows: 0,
            cache: Cache::new(settings.cache_bytes, settings.eviction, settings.admission),
            clients: Side::new(match settings.path {
                Path::Proxy => network.client_idle_ms,
                Path::DirectClient | Path::DirectInternet => network.server_idle_ms,
            }),
            servers: Side::new(network.server_idle_ms),
            internet: Link::default(),
            on_internet: VecDeque::new(),
            links: Links::default(),
            exchanges: Slab::default(),
            scratch: Sender::default(),
            fetches: Slab::default(),
            in_flight: Slab::default(),
            collapse: Requests::part_of(1),
            popularity: Popularity::new(Popularity::DEFAULT_BYTES),
            background: Background::new(settings.background_bytes_s),
            server_times: Known::new(settings.server_times.clone()),
            chance: Chance::new(settings.seed, 0),
            tally: Tally::default(),
            forecasts: Vec::new(),
            recorded: None,
            results: None,
            journal: None,
            transfers: 0,
            refreshes: BackgroundValidations::default(),
            invalidations: ByNumber::default(),
            drops: ByNumber::default(),
            plain_is_allowed: true,
            settings,
        })
    }

    /// The next row of the trace; everything before its arrival happens first.
    pub fn push(&mut self, row: &Row) {
        let ask = Ask::of(row, self.rows, &mut self.tally.assumed);
        let lifetime = self.settings.assumed_lifetime_s.map(DeltaSeconds);
        let mut ask = ask.assuming(row, lifetime, &mut self.tally.assumed);
        if let Some(rules) = &self.settings.operator_rules {
            ask = ask.ruled_by(rules, row);
        }
        self.push_ask(row.arrival_us, &ask);
    }

    /// The same for a row whose facts the caller has made; it counts what was assumed.
    pub(crate) fn push_ask(&mut self, arrival_us: i64, ask: &Ask) {
        if !self.is_begun {
            self.is_begun = true;
            self.world = World::new(arrival_us);
            let links = self.settings.links.iter();
            let begun = links.filter_map(|link| Forecast::new(link, self.world.now()));
            self.forecasts = begun.collect();
        }
        if arrival_us < self.last_arrival_us {
            self.tally.out_of_order += 1;
        }
        self.last_arrival_us = self.last_arrival_us.max(arrival_us);
        let at = self.world.of_trace(self.last_arrival_us);
        self.run_until(at);
        self.world.pass_until(at);
        self.forecast();
        self.rows += 1;
        self.tally.requests.count += 1;
        if self.settings.caching == Caching::IgnoringCookies {
            self.begin(&ask.without_cookies());
        } else {
            self.begin(ask);
        }
    }

    /// What the caller assumed when it made facts of rows.
    pub(crate) fn assumed(&mut self, assumed: &Assumptions) {
        self.tally.assumed.add(assumed);
    }

    /// From now on each request's verdict is kept until it is [taken](Self::take_verdicts).
    pub fn record_verdicts(&mut self) {
        self.recorded.get_or_insert_default();
    }

    /// The verdicts of requests that have come to their end, in that order, each with the number of
    /// its row, from 0. Without a proxy there are none.
    pub fn take_verdicts(&mut self) -> Vec<(u64, Verdict)> {
        self.recorded
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// From now on `sink` gets the result of each request. Without a proxy it gets nothing.
    pub fn send_results_to(&mut self, sink: Box<dyn ResultSink>) {
        self.results = Some(sink);
    }

    /// From now on everything that happens at the proxy is kept until it is
    /// [taken](Self::take_journal). To be called before the first row; transfers that are otherwise
    /// computed at once are then simulated step by step, with the same result.
    pub fn record_journal(&mut self) {
        self.plain_is_allowed = false;
        self.journal.get_or_insert_default();
    }

    /// The events since the last call.
    pub fn take_journal(&mut self) -> Vec<Happening> {
        self.journal
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Enters something into the journal.
    fn enter(&mut self, what: impl FnOnce() -> What) {
        if let Some(journal) = &mut self.journal {
            journal.push(Happening {
                at_ms: self.world.now().tick.0,
                what: what(),
            });
        }
    }

    /// Events so far: what a run costs is what each of them costs, and what each request costs
    /// once.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.world.made()
    }

    /// Lets everything that is under way come to its end, so that the last verdicts can be taken;
    /// rows may still follow.
    pub fn settle_all(&mut self) {
        self.run_until(Nanos::MAX);
    }

    /// Runs everything under way to its end, and returns the results.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        self.run_until(Nanos::MAX);
        self.forecast();
        if let Some(sink) = &mut self.results {
            sink.end();
        }
        debug_assert_eq!(self.exchanges.len(), 0, "a request was lost");
        debug_assert_eq!(self.fetches.len(), 0, "a fetch was lost");
        debug_assert_eq!(self.in_flight.len(), 0, "a response was lost");
        self.outcome()
    }

    /// Counts what has come from servers for the quotas of links.
    fn forecast(&mut self) {
        if self.forecasts.is_empty() {
            return;
        }
        let wire_bytes = match self.settings.path {
            Path::Proxy => self.tally.from_servers.wire_bytes,
            Path::DirectClient | Path::DirectInternet => self.tally.to_clients.wire_bytes,
        };
        let now = self.world.now();
        for link in &mut self.forecasts {
            link.see(now, wire_bytes);
        }
    }

    fn run_until(&mut self, until: Nanos) {
        while let Some(event) = self.world.next(until) {
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(id) => self.step(id),
            Event::Acknowledged(id) => self.acknowledged(id),
            Event::Received(id) => self.received(id),
            Event::Left(id) => self.left(id),
            Event::Queued(id) => self.queued(id),
            Event::Arrived(id) => self.arrived(id),
            Event::Resumed(id) => self.resumed(id),
            Event::WaitedLong(id) => self.waited_long(id),
        }
    }

    /// A request begins: its client has a connection, or opens one.
    fn begin(&mut self, ask: &Ask) {
        let now = self.now();
        let is_direct = self.settings.path != Path::Proxy;
        let client = self.links.join(ask.client, self.world.at());
        let client_rtt = self.settings.network.client_rtt_us * MICROSECOND;
        let server = self.server_delay(ask);
        let (hop, rtt, setup) = if is_direct {
            let hop = mix(ask.client) ^ ask.server;
            (hop, client_rtt + server.rtt, client_rtt + server.setup)
        } else {
            (ask.client, client_rtt, client_rtt)
        };
        let window = self.settings.network.tcp.initial_window;
        let taken = self.clients.take(now, hop, window);
        let at = self.world.at();
        let ready = if taken.is_new { at + setup } else { at };
        let id = self.exchanges.reuse();
        let exchange = self.exchanges.at_mut(id);
        exchange.begin(ask, now, at);
        exchange.number = self.rows - 1;
        exchange.ready = ready;
        exchange.connection = Some(taken);
        exchange.link = client;
        exchange.server_delay = server;
        if is_direct {
            // the first packet comes to the queue that is the last stretch before the client
            exchange.loop_ns = rtt;
            exchange.after_ns = client_rtt / 2;
            exchange.stage = Stage::Serve;
            let first = ready + rtt - exchange.after_ns + server.think;
            self.plan_direct(id);
            self.later(id, first);
        } else {
            exchange.loop_ns = client_rtt;
            exchange.after_ns = client_rtt / 2;
            exchange.stage = Stage::Choose;
            self.later(id, ready + client_rtt / 2);
        }
    }

    /// What the trace says of the way to the server. Set-up is what it was in the trace, lost SYNs
    /// and slow servers included; what a row does not say, others do
    /// ([`crate::network::server_times`]).
    fn server_delay(&mut self, ask: &Ask) -> ServerDelay {
        self.server_times.see(ask);
        let times = self.server_times.times();
        let setup = ask.setup.or_else(|| times.setup(ask.server));
        let mut response = ask.response_time;
        if response.is_none()
            && let Some((time, whose)) = times.response(ask.target, ask.server)
        {
            response = Some(time);
            self.tally.assumed.count(whose);
        }
        let rtt = match (setup, response) {
            (Some(setup), Some(response)) => setup.min(response),
            (None, Some(response)) => response,
            (Some(setup), None) => {
                self.tally.assumed.count(Assumption::ThinkTime);
                setup
            }
            (None, None) => {
                self.tally.assumed.count(Assumption::ServerRtt);
                self.settings.network.server_rtt_us * MICROSECOND
            }
        };
        ServerDelay {
            setup: setup.unwrap_or(rtt),
            rtt,
            think: response.map_or(0, |response| response.saturating_sub(rtt)),
        }
    }

    const fn now(&self) -> Now {
        self.world.now()
    }

    /// Reports an event to the transaction of an exchange.
    fn handle(&mut self, id: u32, event: weir_policy::Event<'_>) -> Commands {
        let (now, rules) = (self.now(), self.settings.rules);
        self.exchanges.at_mut(id).tx().handle(now, &rules, event)
    }

    /// The same for a response, which rules of the operator have stored and used so.
    fn handle_ruled(
        &mut self,
        id: u32,
        storing: StoringRules,
        event: weir_policy::Event<'_>,
    ) -> Commands {
        let (now, mut rules) = (self.now(), self.settings.rules);
        rules.heuristic.assigned = storing.default;
        rules.reuse = storing.reuse;
        self.exchanges.at_mut(id).tx().handle(now, &rules, event)
    }

    /// Notes by which rule of the operator a stored response with these facts answers, if it does
    /// only by one.
    fn note_rules(&mut self, id: u32, own: &StoredFacts) {
        let (now, rules) = (self.now(), self.settings.rules);
        if self.settings.operator_rules.is_none() {
            return;
        }
        let exchange = self.exchanges.at_mut(id);
        let ruled = exchange.ask().ruled;
        let used = ruled.storing.reuse.of(own);
        let sent = ruled.sent.unwrap_or(exchange.ask().request.directives);
        exchange
            .tx()
            .answered_by_rule(now, (&rules, &sent), (own, &used));
    }

    /// The exchange continues at `at`.
    fn later(&mut self, id: u32, at: Nanos) {
        self.exchanges.at_mut(id).pending += 1;
        self.world.schedule(at, Event::Step(id));
    }

    /// An exchange's next stage.
    fn step(&mut self, id: u32) {
        self.exchanges.at_mut(id).pending -= 1;
        match self.exchanges.at(id).stage {
            Stage::Choose => self.choose(id),
            Stage::Serve => self.serve_planned(id),
            Stage::Forward => self.forward(id),
            Stage::Ask => self.ask(id),
            Stage::Waiting | Stage::Sending | Stage::Over => {}
        }
        self.release(id);
    }

    fn outcome(self) -> Outcome {
        let mut traffic = self.tally.traffic;
        let (up, down) = (self.tally.from_servers, self.tally.to_clients);
        traffic.to_clients_packets = down.packets;
        traffic.to_clients_wire_bytes = down.wire_bytes;
        traffic.over_queue_limit = up.over_limit + down.over_limit;
        if self.settings.path == Path::Proxy {
            traffic.from_servers_packets = up.packets;
            traffic.from_servers_wire_bytes = up.wire_bytes;
        } else {
            // one link: what comes from servers is what clients get
            traffic.from_servers_packets = down.packets;
            traffic.from_servers_wire_bytes = down.wire_bytes;
            traffic.from_servers_bytes = traffic.to_clients_bytes;
            traffic.from_servers_head_bytes = traffic.to_clients_head_bytes;
        }
        let assumed = self.tally.assumed.iter();
        Outcome {
            path: self.settings.path.as_str(),
            requests: self.tally.requests,
            verdicts: self.tally.words(),
            traffic,
            latency: Latency {
                setup: self.tally.setup.summary(),
                response: self.tally.response.summary(),
                transfer: self.tally.transfer.summary(),
                total: self.tally.total.summary(),
            },
            client_connections: self.clients.openings,
            server_connections: self.servers.openings,
            stored: self.cache.len() as u64,
            stored_bytes: self.cache.used_bytes(),
            evictions: self.cache.evictions,
            assumed: assumed
                .map(|(what, count)| (what.as_str(), count))
                .collect(),
            aborts: self.tally.aborts,
            not_admitted: self.tally.not_admitted,
            assumed_lifetime_s: self.settings.assumed_lifetime_s,
            out_of_order: self.tally.out_of_order,
            links: self.forecasts.into_iter().map(Forecast::finish).collect(),
        }
    }
}
