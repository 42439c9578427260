//! Where a connection leads to, and which addresses it may lead to.

use crate::failure::ConnectFailure;
use crate::network::Network;
use crate::next_hops::rules::ConnectionRules;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::Now;
use weir_policy::destination::{Denied, DeniedWhy};
use weir_policy::fetch::ReadAhead;
use weir_semantics::ProxyError;

/// A next hop by name and port; connections are pooled by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HopKey {
    /// Canonical host: lower case, an IPv6 address without brackets.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
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
    /// Is told how connecting went.
    pub observer: Option<Rc<dyn ConnectObserver>>,
}

/// How connecting went, as far as it tells something of the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectOutcome {
    /// A connection is open.
    Connected,
    /// None of its addresses accepted a connection in time.
    Failed,
}

/// Is told how connecting to a next hop went, such as to keep its health.
pub trait ConnectObserver {
    /// Connecting to `hop` ended at `now`.
    fn connect_ended(&self, now: Now, hop: &HopKey, outcome: ConnectOutcome);
}

impl Destination {
    /// Tells the observer how connecting went.
    pub(super) fn report(&self, now: Now, outcome: ConnectOutcome) {
        if let Some(observer) = &self.observer {
            observer.connect_ended(now, &self.hop, outcome);
        }
    }

    /// Whether a connection to `address` may be opened.
    ///
    /// # Errors
    ///
    /// Why it may not: this process listens there, or the rules deny it.
    pub fn check(
        &self,
        network: &Network,
        rules: &ConnectionRules,
        address: SocketAddr,
    ) -> Result<(), Denied> {
        network.check_not_own(address)?;
        self.check_rules(rules, address)
    }

    /// Whether the rules allow a connection to `address`.
    ///
    /// # Errors
    ///
    /// Why they do not.
    pub fn check_rules(&self, rules: &ConnectionRules, address: SocketAddr) -> Result<(), Denied> {
        if self.guarded {
            rules.destinations.check(address.ip())
        } else {
            Ok(())
        }
    }
}

/// The failure when a destination is not allowed.
pub fn prohibited(rules: &ConnectionRules, denied: &Denied) -> ConnectFailure {
    let text = match denied.why {
        DeniedWhy::Own => format!("{denied}: this proxy itself listens there"),
        _ if rules.denied_hint.is_empty() => denied.to_string(),
        _ => format!("{denied}; {}", rules.denied_hint),
    };
    ConnectFailure::new(ProxyError::DestinationIpProhibited, text)
}
