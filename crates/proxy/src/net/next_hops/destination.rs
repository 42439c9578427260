//! Where a request goes next: the origin itself for a forward proxy, a route's next hop for a
//! gateway.

use crate::config::Mode;
use crate::exchange::state::RequestState;
use crate::net::local_address::is_local;
use crate::request::answer::{Answer, Trouble};
use crate::settings::Settings;
use crate::worker::core::Worker;
use crate::worker::shared::Shared;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use weir_policy::connections::HopId;
use weir_policy::destination::{Denied, DeniedWhy};
use weir_policy::fetch::ReadAhead;
use weir_policy::route::Outcome;
use weir_semantics::ProxyError;

/// A next hop by name and port; connections are pooled by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HopKey {
    /// Canonical host: lower case, an IPv6 address without brackets.
    pub(crate) host: Arc<str>,
    /// TCP port.
    pub(crate) port: u16,
}

impl fmt::Display for HopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A next hop for one request.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Where to connect.
    pub(crate) hop: HopKey,
    /// The rules for destinations apply: a client chose the address. A configured next hop is
    /// allowed wherever it lives.
    pub(crate) guarded: bool,
    /// The route's number for it, for its health.
    pub(crate) route_hop: Option<HopId>,
    /// How far a fetch from it may run ahead of its readers.
    pub(crate) read_ahead: ReadAhead,
}

impl Destination {
    /// The destination of an exchange; the answer to give if there is none.
    pub(crate) fn of(exchange: &RequestState, mode: Mode, worker: &Worker) -> Result<Self, Answer> {
        match mode {
            Mode::Forward => Self::of_target(exchange, worker),
            Mode::Gateway => Self::of_route(exchange, worker),
        }
    }

    fn of_target(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let host = exchange.request.host;
        if let Some(ip) = host.ip() {
            let address = SocketAddr::new(ip, exchange.request.port);
            not_ours(&worker.shared, address)
                .and_then(|()| exchange.settings.destinations.check(ip))
                .map_err(|denied| Answer::open(403, prohibited(&denied)))?;
        }
        let bare = host.as_str().trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            hop: HopKey {
                host: bare.into(),
                port: exchange.request.port,
            },
            guarded: true,
            route_hop: None,
            read_ahead: exchange.settings.lead_of(None),
        })
    }

    fn of_route(exchange: &RequestState, worker: &Worker) -> Result<Self, Answer> {
        let settings = &exchange.settings;
        let path = exchange.request.path_and_query();
        let mut routes = settings
            .routes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let host = exchange.request.host;
        let path = if path == "*" { "/" } else { path };
        match routes.choose(worker.now(), host.as_str(), path) {
            Ok(choice) => Ok(Self {
                hop: settings.hops[choice.hop.0 as usize].clone(),
                guarded: false,
                route_hop: Some(choice.hop),
                read_ahead: settings.lead_of(Some(choice.route)),
            }),
            Err(none) => Err(Answer::open(
                404,
                Trouble::new(
                    ProxyError::DestinationNotFound,
                    format!("{none} ({}{path})", host.as_str()),
                ),
            )),
        }
    }

    /// The next hop that the routes choose now, with its number.
    pub(crate) fn another(exchange: &RequestState, worker: &Worker) -> Option<(HopId, Self)> {
        let another = Self::of_route(exchange, worker).ok()?;
        Some((another.route_hop?, another))
    }

    /// Tells the routes how connecting went.
    pub(crate) fn report(&self, settings: &Settings, worker: &Worker, outcome: Outcome) {
        let Some(hop) = self.route_hop else {
            return;
        };
        let tell = |settings: &Settings, hop| {
            let mut routes = settings
                .routes
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            routes.report(worker.now(), hop, outcome);
        };
        tell(settings, hop);
        // a reload came while it connected: those that choose now are to know too
        let current = worker.settings();
        if !std::ptr::eq(&raw const *current, settings)
            && let Some(hop) = current.hop_id(&self.hop)
        {
            tell(&current, hop);
        }
    }
}

/// Whether `address` is another's than this proxy's own, listeners and admin interface.
pub(crate) fn not_ours(shared: &Shared, address: SocketAddr) -> Result<(), Denied> {
    shared.own.load().check(address, is_local)
}

/// The trouble when a destination is not allowed.
pub(crate) fn prohibited(denied: &Denied) -> Trouble {
    let text = match denied.why {
        DeniedWhy::Own => format!("{denied}: this proxy itself listens there"),
        _ => format!("{denied}; --allow-destination or access.allow_destinations opens more"),
    };
    Trouble::new(ProxyError::DestinationIpProhibited, text)
}
