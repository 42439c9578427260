//! The listeners of a running proxy: bound, served, closed.

use super::{Control, ListenerEntry, State};
use crate::config::{self, Cidr, Config, ListenerKind};
use crate::log::client::{ForPeers, HttpVersions, ListenerFacts};
use crate::server::advice;
use crate::server::run::StartError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_net::is_local;
use weir_net::workers::Sockets;
use weir_policy::destination::OwnAddresses;
use weir_semantics::Authority;

impl Control {
    /// Opens the listeners of `config` that are not open, and closes the open ones that it does not
    /// have. Nothing changes if one address cannot be bound, or a next hop is this proxy itself.
    /// The new addresses are refused as destinations before they are opened.
    pub(crate) fn open_listeners(&self, config: &Config) -> Result<(), StartError> {
        let mut state = self.state();
        let before = self.shared.network.own_addresses();
        let configured = config.listeners.iter().map(|listener| listener.address);
        let bound = state.bound_for(config);
        let wanted = OwnAddresses::new(
            self.admin
                .socket()
                .into_iter()
                .chain(bound)
                .chain(configured),
        );
        self.refuse_own_next_hops(config, &wanted)?;
        let configured = config.listeners.iter().map(|listener| listener.address);
        self.shared
            .network
            .set_own_addresses(Arc::new(before.and(configured)));
        let opened = self.change_listeners(&mut state, config);
        self.shared.network.set_own_addresses(match opened {
            Ok(()) => Arc::new(OwnAddresses::new(
                self.admin
                    .socket()
                    .into_iter()
                    .chain(state.bound_for(config)),
            )),
            Err(_) => before,
        });
        opened
    }

    /// Refuses next hops at one of the addresses in `own`, by address, by the hosts file, or by the
    /// name of the loopback. Name servers are consulted when a connection is made: at start there
    /// may be none.
    fn refuse_own_next_hops(&self, config: &Config, own: &OwnAddresses) -> Result<(), StartError> {
        let of_routes = config.routes.iter().flat_map(|route| &route.next_hops);
        let others = config.parents.iter().flat_map(|parent| &parent.url);
        for hop in of_routes.chain(others) {
            let known = match hop.host.ip() {
                Some(ip) => vec![ip],
                None => self.shared.network.resolver().known(hop.host.as_str()),
            };
            let is_own = |ip: &IpAddr| own.check(SocketAddr::new(*ip, hop.port), is_local).is_err();
            if let Some(ip) = known.iter().find(|ip| is_own(ip)) {
                let address = SocketAddr::new(*ip, hop.port);
                return Err(StartError {
                    hint: None,
                    what: format!("use the next hop {hop}"),
                    cause: io::Error::other(format!(
                        "this proxy itself listens at {address}; name the origin in the route or another proxy as parent"
                    )),
                });
            }
        }
        Ok(())
    }

    fn change_listeners(&self, state: &mut State, config: &Config) -> Result<(), StartError> {
        let mut added = Vec::new();
        for wanted in &config.listeners {
            let is_it = |open: &mut ListenerEntry| open.configured.is_same_place(wanted);
            if let Some(open) = state
                .open
                .iter_mut()
                .find_map(|open| is_it(open).then_some(open))
            {
                // its name and its certificates may be others
                open.configured = wanted.clone();
            } else {
                let mut open = state.open.iter();
                let ours = open.any(|open| overlap(open.bound.address(), wanted.address));
                added.push((wanted, self.bind(wanted, ours)?));
            }
        }
        state
            .open
            .retain(|open| config.listeners.contains(&open.configured));
        for (wanted, (sockets, role)) in added {
            let address = sockets.address();
            let bound = self
                .workers
                .serve(sockets, &role)
                .map_err(|cause| StartError {
                    hint: None,
                    what: format!("serve {address}"),
                    cause,
                })?;
            state.open.push(ListenerEntry {
                configured: wanted.clone(),
                closed: role.closed,
                bound,
            });
        }
        let order = |open: &ListenerEntry| {
            config
                .listeners
                .iter()
                .position(|wanted| *wanted == open.configured)
        };
        state.open.sort_by_key(order);
        Ok(())
    }

    /// Binds an address once a worker; one that is `ours` already is bound a second time beside the
    /// first.
    fn bind(
        &self,
        wanted: &config::Listener,
        ours: bool,
    ) -> Result<(Sockets, ListenerFacts), StartError> {
        let failed = |cause| StartError {
            hint: advice::of_address(
                Some(wanted.address),
                "`--listen` or `listener.address`",
                &cause,
            ),
            what: format!("listen on {}", wanted.address),
            cause,
        };
        let workers = self.shared.network.workers();
        let sockets = Sockets::bind(wanted.address, workers, ours).map_err(failed)?;
        let default = Authority::parse(&sockets.address().to_string())
            .map_err(|error| failed(io::Error::other(error.to_string())))?;
        let role = ListenerFacts {
            versions: match wanted.has_http2() {
                false => HttpVersions::Http1,
                true => HttpVersions::Any,
            },
            is_handed_over: false,
            tls_address: wanted.tls.as_ref().map(|_| wanted.address),
            tls: None,
            balancers: wanted.proxy_protocol.iter().map(Cidr::net).collect(),
            scheme: wanted.scheme(),
            mode: wanted.mode.mode().unwrap_or_default(),
            default: Arc::new(default),
            peers: match wanted.mode {
                ListenerKind::Peer => ForPeers::Listener,
                ListenerKind::Forward | ListenerKind::Gateway => ForPeers::No,
            },
            name: Some(wanted.name_or_address().into()),
            is_named: wanted.name.is_some(),
            address: Some(wanted.address).filter(|address| address.port() != 0),
            closed: Arc::default(),
        };
        Ok((sockets, role))
    }
}

/// Whether a listener at one address takes connections of the other: with a port in common, all
/// addresses of a family overlap each of them.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port()
        && (one.ip() == other.ip() || is_any && one.is_ipv4() == other.is_ipv4())
}
