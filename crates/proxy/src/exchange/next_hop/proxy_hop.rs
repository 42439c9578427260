//! Parents and siblings as next hops of requests that forward listeners received.
//!
//! Siblings are asked first, for what a cache may answer and nothing is stored of here, and for
//! what they have stored alone (RFC 9111 §5.2.1.7). Then parents, or the host of the URL, in the
//! order that `direct` says.
//!
//! A parent resolves names, and the rules for destinations are its own then. What is known here
//! without a name server is judged here: addresses, and names of the hosts file.

use crate::config::{Direct, ParentKind};
use crate::exchange::next_hop::route_request::{HopTable, RouteHop};
use crate::exchange::next_hop::{NextHop, Tried};
use crate::exchange::state::RequestState;
use crate::log::logged_proxy::LoggedProxy;
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::Settings;
use crate::settings::hierarchy::{ConfiguredProxy, Hierarchy, ProxyOutcome};
use crate::worker::core::Worker;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_net::next_hops::{ConnectFailure, Destination, HopKey};
use weir_policy::Handling;
use weir_policy::connections::HopId;
use weir_policy::route::Outcome;
use weir_semantics::{Fwd, Method, ProxyError};

/// Siblings that are asked for one request: each costs a round trip where nothing is stored there.
const SIBLINGS_ASKED_MAX: usize = 2;

/// Parents that are tried for one request, as next hops of a route are.
const PARENTS_TRIED_MAX: usize = 3;

/// A parent or sibling as the next hop of a request.
#[derive(Clone)]
pub(crate) struct ProxyHop {
    settings: Arc<Settings>,
    hop: HopId,
}

impl ProxyHop {
    pub(super) const fn new(settings: Arc<Settings>, hop: HopId) -> Self {
        Self { settings, hop }
    }

    /// What is configured of it.
    pub(crate) fn configured(&self) -> &ConfiguredProxy {
        self.settings.hierarchy.proxy(self.hop)
    }

    /// Whether it is asked for what it has stored, and nothing else.
    pub(crate) fn is_sibling(&self) -> bool {
        self.configured().kind == ParentKind::Sibling
    }

    /// What it is, for the log.
    pub(crate) fn log_word(&self) -> LoggedProxy {
        LoggedProxy::of(self.configured())
    }

    /// Its number.
    pub(super) const fn hop(&self) -> HopId {
        self.hop
    }

    /// Counts a request to it that has ended. A sibling that did not answer is ejected as a next
    /// hop that refuses connections, and is well when it answers: it need not be asked at all, and
    /// each request would wait for it.
    pub(crate) fn ended(&self, worker: &Worker, outcome: ProxyOutcome) {
        self.configured().count(outcome);
        if self.is_sibling() {
            let outcome = match outcome {
                ProxyOutcome::Answered | ProxyOutcome::Missed => Outcome::Connected,
                ProxyOutcome::Failed => Outcome::ConnectFailed,
            };
            let (now, table) = (worker.now(), HopTable::Hierarchy(ParentKind::Sibling));
            let hop = RouteHop::new(&self.settings, worker, (table, self.hop));
            let why = "it does not answer, or not in time";
            hop.tell_health(now, why, |siblings, hop| siblings.report(now, hop, outcome));
        }
    }

    /// Counts a request to it that was not sent, for a reason of this proxy.
    pub(crate) fn not_asked(&self) {
        self.configured().count(ProxyOutcome::Failed);
    }

    /// Whether a response of it with this status answers the request. What a sibling says of itself
    /// does not: that it has nothing, that it refuses, or fails.
    pub(crate) fn is_answer(&self, status: u16) -> bool {
        !self.is_sibling() || status < 400 || matches!(status, 404 | 410)
    }
}

impl NextHop {
    /// The next hop of a request that a forward listener received: a sibling, a parent, or the host
    /// of its URL.
    pub(super) fn of_hierarchy(exchange: &RequestState, tried: &Tried) -> Result<Self, Answer> {
        let worker = &exchange.worker;
        let hierarchy = &exchange.settings.hierarchy;
        if hierarchy.is_empty() {
            return Self::of_target(exchange, worker);
        }
        let target = target_of(exchange);
        let choose = |kind, last_resort| {
            let tried = match kind {
                ParentKind::Parent => &tried.parents,
                ParentKind::Sibling => &tried.siblings,
            };
            let choice = hierarchy.choose(kind, worker.now(), target, tried, last_resort)?;
            let table = HopTable::Hierarchy(kind);
            Some(Self::chosen(exchange, choice, table))
        };
        if may_ask_sibling(exchange, hierarchy, tried) {
            check_known(exchange)?;
            if let Some(sibling) = choose(ParentKind::Sibling, false) {
                return Ok(sibling);
            }
        }
        let direct = hierarchy.direct(target.0, target.1);
        let is_first = direct == Direct::Prefer && !tried.origin;
        if direct == Direct::Always || is_first {
            return Self::of_target(exchange, worker);
        }
        check_known(exchange)?;
        let is_last = direct == Direct::Never || tried.origin;
        if tried.parents.len() - tried.spent_parents < PARENTS_TRIED_MAX
            && let Some(parent) = choose(ParentKind::Parent, is_last)
        {
            return Ok(parent);
        }
        if is_last {
            return Err(Answer::open(
                503,
                AnswerReason::new(
                    ProxyError::DestinationUnavailable,
                    "no parent can be reached, and the request is not sent to the host of its URL",
                ),
            ));
        }
        Self::of_target(exchange, worker)
    }
}

/// The host and path by which parents are chosen.
fn target_of(exchange: &RequestState) -> (&str, &str) {
    let path = exchange.request.path_and_query();
    (
        exchange.request.host.as_str(),
        if path == "*" { "/" } else { path },
    )
}

/// Whether a sibling may be asked: for what a cache may answer, where nothing is stored here. What
/// validates a stored response is not for one, as its own may be no newer: two caches would confirm
/// to each other what neither has asked the origin for.
fn may_ask_sibling(exchange: &RequestState, hierarchy: &Hierarchy, tried: &Tried) -> bool {
    let request = exchange.tx.request();
    let is_miss = matches!(
        exchange.tx.verdict().handling,
        Handling::Forward(Fwd::UriMiss | Fwd::VaryMiss | Fwd::Miss)
    );
    let is_plain = matches!(request.method, Method::Get | Method::Head)
        && !request.has_authorization
        && !request.directives.no_cache
        && !request.directives.no_store;
    // a module would see the response of a sibling that has nothing
    let may_ask = is_miss && is_plain && !exchange.background && exchange.modules.is_none();
    let (host, path) = target_of(exchange);
    may_ask
        && tried.siblings.len() < SIBLINGS_ASKED_MAX
        && !tried.is_past_siblings()
        && hierarchy.may_ask_siblings(host, path)
        && !exchange
            .worker
            .shared
            .collapsed
            .is_uncollapsible(exchange.worker.now(), exchange.key)
}

/// Refuses a host whose addresses are known without a name server, if none of them may be reached:
/// an address, or a name of the hosts file. Other names are resolved by the parent.
fn check_known(exchange: &RequestState) -> Result<(), Answer> {
    let host = &exchange.request.host;
    let network = exchange.worker.network();
    let addresses: Vec<IpAddr> = match host.ip() {
        Some(ip) => vec![ip],
        None => network.resolver().known(host.as_str()),
    };
    let port = exchange.request.port;
    let destination = Destination {
        guarded: true,
        ..Destination::configured(HopKey::new(host.as_str(), port))
    };
    let rules = &exchange.settings.connections;
    let check = |ip| destination.check(network, rules, SocketAddr::new(ip, port));
    let mut denied: Option<ConnectFailure> = None;
    for ip in addresses {
        match check(ip) {
            Ok(()) => return Ok(()),
            Err(failure) => denied = Some(failure),
        }
    }
    denied.map_or(Ok(()), |failure| Err(Answer::open(403, failure.into())))
}
