//! Where a request goes next: the origin itself for a forward proxy, a route's next hop for a
//! gateway.

use crate::config::Mode;
use crate::exchange::state::RequestState;
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::Settings;
use crate::worker::core::Worker;
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use weir_net::next_hops::{self, ConnectObserver, ConnectOutcome, Destination, HopKey};
use weir_policy::Now;
use weir_policy::connections::HopId;
use weir_policy::route::Outcome;
use weir_semantics::ProxyError;

/// A next hop for one request.
#[derive(Clone)]
pub(crate) struct NextHop {
    /// Where to connect.
    pub(crate) destination: Destination,
    /// The route's number for it; `None` for an origin that the request names.
    route_hop: Option<HopId>,
}

impl NextHop {
    /// The next hop of an exchange; the answer to give if there is none.
    pub(crate) fn of(exchange: &RequestState) -> Result<Self, Answer> {
        let worker = &exchange.worker;
        match exchange.request.mode {
            Mode::Forward => Self::of_target(exchange, worker),
            Mode::Gateway => Self::of_route(exchange, worker),
        }
    }

    fn of_target(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let host = exchange.request.host;
        let bare = host.as_str().trim_start_matches('[').trim_end_matches(']');
        let destination = Destination {
            hop: HopKey {
                host: bare.into(),
                port: exchange.request.port,
            },
            guarded: true,
            read_ahead: exchange.settings.read_ahead_of(None),
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
            route_hop: None,
        })
    }

    fn of_route(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let settings = &exchange.settings;
        let path = exchange.request.path_and_query();
        let host = exchange.request.host;
        let path = if path == "*" { "/" } else { path };
        let choice = settings
            .routes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .choose(worker.now(), host.as_str(), path);
        match choice {
            Ok(choice) => Ok(Self {
                destination: Destination {
                    hop: settings.hops[choice.hop.0 as usize].clone(),
                    guarded: false,
                    read_ahead: settings.read_ahead_of(Some(choice.route)),
                    observer: Some(RouteHealth::of(settings, worker, choice.hop)),
                },
                route_hop: Some(choice.hop),
            }),
            Err(none) => Err(Answer::open(
                404,
                AnswerReason::new(
                    ProxyError::DestinationNotFound,
                    format!("{none} ({}{path})", host.as_str()),
                ),
            )),
        }
    }

    /// The number of its next hop in the routes; `None` for an origin that the request names.
    pub(crate) fn route_hop(&self) -> Option<HopId> {
        self.route_hop
    }

    /// The next hop that the routes choose now, with its number.
    pub(crate) fn another(exchange: &RequestState, worker: &Worker) -> Option<(HopId, Self)> {
        let another = Self::of_route(exchange, worker).ok()?;
        Some((another.route_hop?, another))
    }
}

/// Reports to the routes whether their next hops accept connections.
struct RouteHealth {
    /// The settings that the request began with.
    settings: Arc<Settings>,
    current: Arc<ArcSwap<Settings>>,
    /// The number of the next hop in `settings`.
    hop: HopId,
}

impl RouteHealth {
    /// An observer for next hop number `hop` of `settings`.
    pub(crate) fn of(
        settings: &Arc<Settings>,
        worker: &Worker,
        hop: HopId,
    ) -> Rc<dyn ConnectObserver> {
        Rc::new(Self {
            settings: Arc::clone(settings),
            current: Arc::clone(&worker.shared.settings),
            hop,
        })
    }
}

impl ConnectObserver for RouteHealth {
    fn connect_ended(&self, now: Now, hop: &HopKey, outcome: ConnectOutcome) {
        let outcome = match outcome {
            ConnectOutcome::Connected => Outcome::Connected,
            ConnectOutcome::Failed => Outcome::ConnectFailed,
        };
        let tell = |settings: &Settings, hop| {
            let mut routes = settings
                .routes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            routes.report(now, hop, outcome);
        };
        tell(&self.settings, self.hop);
        // the settings were reloaded while it connected: the requests that choose now use those
        let current = self.current.load_full();
        if !Arc::ptr_eq(&current, &self.settings)
            && let Some(hop) = current.hop_id(hop)
        {
            tell(&current, hop);
        }
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
        let destination = Destination {
            hop: hop.clone(),
            guarded: false,
            // several routes may lead there; a transfer sets its own
            read_ahead: settings.read_ahead_of(None),
            observer: Some(RouteHealth::of(&settings, worker, HopId(number))),
        };
        next_hops::keep_ready(worker.net(), &settings.connections, &destination);
    }
}
