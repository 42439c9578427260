//! Where a connection leads to, and which addresses it may lead to.

use super::failure::ConnectFailure;
use super::hop_key::{ClientEnds, HopKey};
use super::rules::ConnectionRules;
use crate::workers::Network;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_policy::Now;
use weir_policy::destination::{ClientNetwork, Denial, DenialReason};
use weir_policy::fetch::ReadAhead;
use weir_semantics::ProxyError;

/// A next hop for one request.
#[derive(Clone)]
pub struct Destination {
    /// Where to connect.
    pub hop: HopKey,
    /// The rules for destinations apply: a client chose the address. A configured next hop is
    /// allowed at any address, and connections to it may be opened in advance.
    pub guarded: bool,
    /// How far a response may be read ahead of its readers: the first receive window follows from
    /// it.
    pub read_ahead: ReadAhead,
    /// The client that the request counts for, of which each has a share of the connections;
    /// `None` if it has none, or is of another node.
    pub client: Option<ClientNetwork>,
    /// The client's connection, of which the next hop is told if its key says so; `None` if it has
    /// none, or is of another node.
    pub client_ends: Option<Box<ClientEnds>>,
    /// Gets the results of connection attempts.
    pub observer: Option<Rc<dyn ConnectObserver>>,
}

/// The result of a connection attempt, as far as it depends on the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectOutcome {
    /// A connection is open.
    Connected,
    /// None of its addresses accepted a connection in time.
    Failed,
    /// One did, and the TLS handshake with it has failed.
    HandshakeFailed,
}

/// Gets the results of connection attempts to a next hop, for example to track its health.
///
/// An attempt that failed for a lack of file descriptors, or before an address was tried, says
/// nothing of the next hop and is not reported.
pub trait ConnectObserver {
    /// Connecting to `hop` ended at `now`, for the reason `why` if a handshake has failed. Called
    /// on the worker that connected.
    fn connect_ended(&self, now: Now, hop: &HopKey, outcome: ConnectOutcome, why: Option<&str>);
}

impl Destination {
    /// A configured next hop, to which any address is allowed, with a window that the kernel
    /// chooses.
    #[must_use]
    pub fn configured(hop: HopKey) -> Self {
        Self {
            hop,
            guarded: false,
            read_ahead: ReadAhead::Unbounded,
            client: None,
            client_ends: None,
            observer: None,
        }
    }

    /// Reports the result of a connection attempt to the observer.
    pub(super) fn report(&self, now: Now, outcome: ConnectOutcome, why: Option<&str>) {
        if let Some(observer) = &self.observer {
            observer.connect_ended(now, &self.hop, outcome, why);
        }
    }

    /// Whether a connection to `address` may be opened.
    ///
    /// # Errors
    ///
    /// [`ProxyError::DestinationIpProhibited`] if this process listens there, or the rules deny it.
    pub fn check(
        &self,
        network: &Network,
        rules: &ConnectionRules,
        address: SocketAddr,
    ) -> Result<(), ConnectFailure> {
        network
            .check_not_own(address)
            .and_then(|()| self.check_rules(rules, address))
            .map_err(|denied| prohibited(rules, &denied))
    }

    /// Whether the rules allow a connection to `address`.
    pub(crate) fn check_rules(
        &self,
        rules: &ConnectionRules,
        address: SocketAddr,
    ) -> Result<(), Denial> {
        if self.guarded {
            rules.destinations.check(address.ip())
        } else {
            Ok(())
        }
    }
}

fn prohibited(rules: &ConnectionRules, denied: &Denial) -> ConnectFailure {
    let text = match denied.why {
        DenialReason::Own => format!("{denied}: this proxy itself listens there"),
        _ if rules.denied_hint.is_empty() => denied.to_string(),
        _ => format!("{denied}; {}", rules.denied_hint),
    };
    ConnectFailure::new(ProxyError::DestinationIpProhibited, text)
}
