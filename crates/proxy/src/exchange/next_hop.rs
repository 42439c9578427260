//! Where a request goes next: the origin itself or another proxy for a forward proxy, a next hop of
//! a route for a gateway.

mod lateral;
mod proxy_hop;
pub(crate) mod route_request;

use crate::config::{Direct, Mode};
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason};
use crate::worker::core::Worker;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use weir_measure::Metric;
use weir_net::http::{NextHopStream, has_http2_connection};
use weir_net::next_hops::{self, ConnectObserver, ConnectOutcome, Destination, HopKey};
use weir_policy::Now;
use weir_policy::connections::HopId;
use weir_policy::route::{Choice, NoRoute, NodeKey, Outcome, Routes, Why};
use weir_semantics::ProxyError;

pub(crate) use lateral::{
    ChosenNode, Decline, LateralAnswer, LateralFetch, PeerSource, places_behind,
};
pub(crate) use proxy_hop::ProxyHop;
use route_request::{HopTable, Outstanding, ResponseTimer, RouteHop, Timing};

/// A next hop for one request.
pub(crate) struct NextHop {
    /// Where to connect.
    pub(crate) destination: Destination,
    /// What the route has of it, or the table of parents or siblings; `None` for an origin that the
    /// request names.
    of_route: Option<OfRoute>,
    /// The node of the cluster that it is.
    peer: Option<PeerSource>,
    /// The parent or sibling that it is.
    proxy: Option<ProxyHop>,
    /// Why it is that node, or none.
    node_choice: Option<Why>,
}

/// The next hops of one request that failed.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// Nodes of the cluster.
    pub(crate) peers: Vec<NodeKey>,
    siblings: Vec<HopId>,
    parents: Vec<HopId>,
    /// Parents among them that were not asked, as their links have spent their quotas.
    spent_parents: usize,
    /// The host of its URL.
    origin: bool,
}

impl Tried {
    /// `next_hop` did not answer; it was not asked, if its link `is_spent`.
    pub(crate) fn note(&mut self, next_hop: &NextHop, is_spent: bool) {
        if let Some(peer) = &next_hop.peer {
            self.peers.push(peer.key());
        } else if let Some(proxy) = &next_hop.proxy {
            let tried = if proxy.is_sibling() {
                &mut self.siblings
            } else {
                self.spent_parents += usize::from(is_spent);
                &mut self.parents
            };
            tried.push(proxy.hop());
        } else {
            self.origin = true;
        }
    }

    /// Whether something was tried that comes after the siblings.
    const fn is_past_siblings(&self) -> bool {
        self.origin || !self.parents.is_empty()
    }
}

/// A next hop that a route has chosen, or the table of parents or siblings.
struct OfRoute {
    number: HopId,
    why: Why,
    hop: RouteHop,
    /// The request, until it has a stream.
    outstanding: Option<Outstanding>,
    is_counted: bool,
    timing: Timing,
}

impl NextHop {
    /// The next hop of an exchange; the answer to give if there is none.
    pub(crate) fn of(exchange: &RequestState) -> Result<Self, Answer> {
        Self::at(exchange, ChosenNode::take(exchange), &Tried::default())
    }

    /// The same, after those in `tried` did not answer.
    pub(crate) fn after(exchange: &RequestState, tried: &Tried) -> Result<Self, Answer> {
        Self::at(exchange, PeerSource::of(exchange, &tried.peers), tried)
    }

    /// At the node that is chosen, if there is one.
    fn at(
        exchange: &RequestState,
        (peer, node_choice): (Option<PeerSource>, Option<Why>),
        tried: &Tried,
    ) -> Result<Self, Answer> {
        let next_hop = match peer {
            Some(peer) => {
                // an address that this node would not reach is not reached by another one
                if exchange.request.mode == Mode::Forward && exchange.request.host.ip().is_some() {
                    Self::of_target(exchange, &exchange.worker)?;
                }
                Self::of_peer(exchange, peer)
            }
            None if exchange.tx.is_for_caches_alone() => {
                return Err(Answer::only_if_cached());
            }
            None => Self::of_origin(exchange, tried)?,
        };
        Ok(Self {
            node_choice,
            ..next_hop
        })
    }

    /// The node to ask for a response that is on the disk of this node, while that is busy; `None`
    /// if it is to be read.
    pub(crate) fn instead_of_read(exchange: &mut RequestState) -> Option<Self> {
        let (peer, why) = PeerSource::instead_of_read(exchange)?;
        exchange.log.chosen(Some(why), None);
        let peer = peer?;
        // an address that this node would not reach is not reached by another one
        if exchange.request.mode == Mode::Forward && exchange.request.host.ip().is_some() {
            Self::of_target(exchange, &exchange.worker).ok()?;
        }
        Some(Self {
            node_choice: Some(why),
            ..Self::of_peer(exchange, peer)
        })
    }

    fn of_peer(exchange: &RequestState, peer: PeerSource) -> Self {
        Self {
            destination: Destination {
                hop: peer.hop().clone(),
                guarded: false,
                read_ahead: exchange.read_ahead(),
                client: exchange.counted_client(),
                client_ends: exchange.client_ends().map(Box::new),
                observer: None,
            },
            of_route: None,
            peer: Some(peer),
            proxy: None,
            node_choice: None,
        }
    }

    /// The origin itself, or what is asked in its place: a next hop of a route, a parent.
    pub(crate) fn of_origin(exchange: &RequestState, tried: &Tried) -> Result<Self, Answer> {
        match exchange.request.mode {
            Mode::Forward => Self::of_hierarchy(exchange, tried),
            Mode::Gateway => Self::of_route(exchange, &exchange.worker),
        }
    }

    /// Whether the rules allow the address that a request of a forward proxy names, where no parent
    /// is asked in its place. That of a name is judged when it is resolved.
    pub(crate) fn check_origin(exchange: &RequestState) -> Result<(), Answer> {
        let is_origin =
            exchange.request.mode == Mode::Forward && exchange.settings.hierarchy.is_empty();
        if is_origin {
            Self::of_target(exchange, &exchange.worker)?;
        }
        Ok(())
    }

    /// The next hops that the request could be sent to from here now, the first one first; not the
    /// other nodes of a cluster, nor siblings, which have responses at best. No policy notes it.
    pub(crate) fn possible(exchange: &RequestState) -> Vec<HopKey> {
        let (settings, request) = (&exchange.settings, &exchange.request);
        let (now, host) = (exchange.worker.now(), request.host.as_str());
        let path = request.path_and_query();
        let path = if path == "*" { "/" } else { path };
        if request.mode == Mode::Gateway {
            return settings.route_hops(now, (host, path));
        }
        let origin = HopKey::new(host, request.port);
        if settings.hierarchy.is_empty() {
            return vec![origin];
        }
        let direct = settings.hierarchy.direct(host, path);
        let mut hops = match direct {
            Direct::Always => Vec::new(),
            _ => settings.hierarchy.parents_for(now, (host, path)),
        };
        match direct {
            Direct::Never => {}
            Direct::Fallback => hops.push(origin),
            Direct::Prefer | Direct::Always => hops.insert(0, origin),
        }
        hops
    }

    /// The next hop of an exchange; a route chooses it among those that are `allowed` alone, `None`
    /// if it has no such. Others may be chosen by other tables.
    pub(crate) fn where_allowed(
        exchange: &RequestState,
        allowed: impl Fn(&HopKey) -> bool,
    ) -> Result<Option<Self>, Answer> {
        let settings = &exchange.settings;
        if exchange.request.mode == Mode::Gateway && settings.cluster().is_none() {
            let hops = (0..).map(HopId).zip(&settings.hops);
            let others: Vec<HopId> = hops
                .filter(|(_, hop)| !allowed(hop))
                .map(|(id, _)| id)
                .collect();
            if !others.is_empty() {
                return Ok(Self::beside(exchange, &others));
            }
        }
        Self::of(exchange).map(Some)
    }

    fn of_target(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let host = &exchange.request.host;
        let destination = Destination {
            hop: HopKey::new(host.as_str(), exchange.request.port),
            guarded: true,
            read_ahead: exchange.settings.read_ahead_of(None),
            client: exchange.counted_client(),
            client_ends: exchange.client_ends().map(Box::new),
            observer: None,
        };
        if let Some(ip) = host.ip() {
            let rules = &exchange.settings.connections;
            let address = SocketAddr::new(ip, exchange.request.port);
            destination
                .check(worker.network(), rules, address)
                .map_err(|failure| Answer::open(403, failure.into()))?;
        }
        Ok(Self {
            destination,
            of_route: None,
            peer: None,
            proxy: None,
            node_choice: None,
        })
    }

    fn of_route(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let settings = &exchange.settings;
        let path = exchange.request.path_and_query();
        let host = &exchange.request.host;
        let path = if path == "*" { "/" } else { path };
        let mut routes = settings
            .routes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let choice = exchange
            .client
            .with_hops(|hops| routes.choose_for(worker.now(), &|| host.as_str(), path, hops));
        if let Ok(choice) = &choice
            && choice.is_counted
        {
            routes.begin(choice.hop);
        }
        drop(routes);
        match choice {
            Ok(choice) => Ok(Self::chosen(exchange, choice, HopTable::Routes)),
            Err(none) => Err(no_route(none, host.as_str(), path)),
        }
    }

    /// Whether the gateway has a route for a request, where this node alone can have one.
    pub(crate) fn check_route(exchange: &RequestState) -> Result<(), Answer> {
        let settings = &exchange.settings;
        if exchange.request.mode != Mode::Gateway || settings.cluster().is_some() {
            return Ok(());
        }
        let path = exchange.request.path_and_query();
        let path = if path == "*" { "/" } else { path };
        let host = exchange.request.host.as_str();
        let routes = settings.routes.lock();
        let routes = routes.unwrap_or_else(PoisonError::into_inner);
        let found = routes.find(host, path).map(|_| ());
        found.map_err(|none| no_route(none, host, path))
    }

    /// The next hop that the routes choose now of those that are not in `others`.
    pub(crate) fn beside(exchange: &RequestState, others: &[HopId]) -> Option<Self> {
        let (settings, worker) = (&exchange.settings, &exchange.worker);
        let path = exchange.request.path_and_query();
        let path = if path == "*" { "/" } else { path };
        let host = exchange.request.host.as_str();
        let routes = settings.routes.lock();
        let mut routes = routes.unwrap_or_else(PoisonError::into_inner);
        let choice = routes.choose_another(worker.now(), host, path, others);
        let choice = choice.ok().flatten()?;
        if choice.is_counted {
            routes.begin(choice.hop);
        }
        drop(routes);
        Some(Self::chosen(exchange, choice, HopTable::Routes))
    }

    fn chosen(exchange: &RequestState, choice: Choice, table: HopTable) -> Self {
        let (settings, worker) = (&exchange.settings, &exchange.worker);
        let proxy = match table {
            HopTable::Routes => {
                let reason = route_request::label(choice.why);
                worker.counters().inc(Metric::RouteChoices(reason));
                None
            }
            HopTable::Hierarchy(_) => Some(ProxyHop::new(Arc::clone(settings), choice.hop)),
        };
        let route = Some(choice.route).filter(|_| proxy.is_none());
        let hop = RouteHop::new(settings, worker, (table, choice.hop));
        let outstanding = choice.is_counted.then(|| Outstanding::counted(hop.clone()));
        Self {
            destination: Destination {
                hop: hop.key().clone(),
                guarded: false,
                read_ahead: settings.read_ahead_of(route),
                client: exchange.counted_client(),
                client_ends: exchange.client_ends().map(Box::new),
                observer: Some(Rc::new(RouteHealth(hop.clone()))),
            },
            of_route: Some(OfRoute {
                number: choice.hop,
                why: choice.why,
                hop,
                outstanding,
                is_counted: choice.is_counted,
                timing: Timing::of(&choice),
            }),
            peer: None,
            proxy,
            node_choice: None,
        }
    }

    /// Why it is this node of the cluster, or this one keeps the target; and why this next hop of
    /// its route.
    pub(crate) fn choices(&self) -> (Option<Why>, Option<Why>) {
        let of_route = self.of_route.as_ref();
        (self.node_choice, of_route.map(|route| route.why))
    }

    /// The number of its next hop in the routes; `None` for an origin that the request names.
    pub(crate) fn route_hop(&self) -> Option<HopId> {
        let of_route = self.of_route.as_ref().filter(|_| self.proxy.is_none());
        of_route.map(|route| route.number)
    }

    /// The request has a stream to it. Returns what measures its response time, if that counts.
    pub(crate) fn connected(&mut self, stream: &mut NextHopStream) -> Option<ResponseTimer> {
        let route = self.of_route.as_mut()?;
        if route.is_counted {
            let repeated = || Outstanding::begin(route.hop.clone());
            let outstanding = route.outstanding.take().unwrap_or_else(repeated);
            stream.hold(Box::new(outstanding));
        }
        ResponseTimer::start(&route.hop, route.timing)
    }

    /// The node that it is.
    pub(crate) const fn peer(&self) -> Option<&PeerSource> {
        self.peer.as_ref()
    }

    /// The parent or sibling that it is.
    pub(crate) const fn proxy(&self) -> Option<&ProxyHop> {
        self.proxy.as_ref()
    }

    /// The next hop that the routes choose now, with its number.
    pub(crate) fn another(exchange: &RequestState, worker: &Worker) -> Option<(HopId, Self)> {
        let another = Self::of_route(exchange, worker).ok()?;
        Some((another.route_hop()?, another))
    }
}

/// The answer to a request for which there is no route.
fn no_route(none: NoRoute, host: &str, path: &str) -> Answer {
    let text = format!("{none} ({host}{path})");
    let reason = AnswerReason::new(ProxyError::DestinationNotFound, text);
    Answer::open(404, reason)
}

/// Reports to the routes whether their next hops accept connections.
struct RouteHealth(RouteHop);

impl ConnectObserver for RouteHealth {
    fn connect_ended(&self, now: Now, _hop: &HopKey, ended: ConnectOutcome, why: Option<&str>) {
        let outcome = match ended {
            // its system accepts connections while it is stopped: it is well when it answers
            ConnectOutcome::Connected if self.0.is_sibling() => return,
            ConnectOutcome::Connected => Outcome::Connected,
            ConnectOutcome::Failed | ConnectOutcome::HandshakeFailed => Outcome::ConnectFailed,
        };
        let why = match (ended, why) {
            (ConnectOutcome::HandshakeFailed, Some(why)) => {
                format!("its TLS handshake fails: {why}")
            }
            (ConnectOutcome::HandshakeFailed, None) => "its TLS handshake fails".to_owned(),
            _ => "it accepts no connection".to_owned(),
        };
        let report = |routes: &mut Routes, hop| routes.report(now, hop, outcome);
        self.0.tell_health(now, &why, report);
    }
}

/// Opens connections to the next hops of routes in advance, where some that were ready have been
/// closed.
pub(crate) fn keep_ready(worker: &Worker) {
    let settings = worker.settings();
    if settings.connections.connections_ahead == 0 {
        return;
    }
    for (number, hop) in (0..).zip(&settings.hops) {
        // one that is open has room for the requests that come next
        if has_http2_connection(worker.net(), hop) {
            continue;
        }
        let destination = Destination {
            hop: hop.clone(),
            guarded: false,
            // several routes may lead there; a transfer sets its own
            read_ahead: settings.read_ahead_of(None),
            client: None,
            client_ends: None,
            observer: Some(Rc::new(RouteHealth(RouteHop::new(
                &settings,
                worker,
                (HopTable::Routes, HopId(number)),
            )))),
        };
        next_hops::keep_ready(worker.net(), &settings.connections, &destination);
    }
}
