//! What is known of the client that sent a request, for counters, log and recorder.

use crate::config::Mode;
use ipnet::IpNet;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_net::next_hops::ClientEnds;
use weir_net::tls::server::ClientName;
use weir_policy::route::ConnectionHops;
use weir_semantics::{Authority, Scheme};

/// What a listener gives its connections. One under TLS has its own: what is large is shared.
#[derive(Clone, Debug)]
pub(crate) struct ListenerFacts {
    /// Forward or gateway.
    pub(crate) mode: Mode,
    /// The scheme of requests that name none: `https` of a gateway under TLS.
    pub(crate) scheme: Scheme,
    /// The address that it is configured with, if its connections are under TLS.
    pub(crate) tls_address: Option<SocketAddr>,
    /// What the client of this connection has called its host, under TLS.
    pub(crate) tls: Option<Arc<ClientName>>,
    /// What its connections are of.
    pub(crate) versions: HttpVersions,
    /// Balancers in front: their connections begin with a header that says whose they are, and no
    /// other connections are accepted. Without any there is no header.
    pub(crate) balancers: Arc<[IpNet]>,
    /// Authority for HTTP/1.0 requests without Host.
    pub(crate) default: Arc<Authority>,
    /// Whether its clients are other nodes of the cluster.
    pub(crate) peers: ForPeers,
    /// Its connections were accepted by a front end, which has handed them over.
    pub(crate) is_handed_over: bool,
    /// The address that it is configured with, by which the settings in force have its name; `None`
    /// with port 0, which several may have, and of no listener.
    pub(crate) address: Option<SocketAddr>,
    /// What rules called it when it was opened: its name, the address that it is configured with if
    /// it has none; `None` of a request that came to no listener for clients.
    pub(crate) name: Option<Arc<str>>,
    /// Whether that is a name that the operator has given.
    pub(crate) is_named: bool,
    /// Set when a reload closes it: connections that it has accepted are for what it was.
    pub(crate) closed: Arc<AtomicBool>,
}

impl ListenerFacts {
    /// Whether its connections are under TLS.
    pub(crate) const fn is_tls(&self) -> bool {
        self.tls_address.is_some()
    }

    /// Whether connections from `address` are of a balancer in front.
    pub(crate) fn has_balancer(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.balancers.iter().any(|net| net.contains(&address))
    }

    /// Whether a reload has closed it: its connections end, each after the response under way.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// The versions of HTTP that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersions {
    /// HTTP/1.0 and 1.1.
    Http1,
    /// These or HTTP/2: how a connection begins says which.
    Any,
    /// HTTP/2, on this connection.
    Http2,
}

/// Whether the clients of a listener are other nodes of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForPeers {
    /// They are not.
    No,
    /// They are to be, and each request says for which mode it is.
    Listener,
    /// They are: it is a request of a member for this mode.
    Member,
}

/// The client of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientFacts<'a> {
    /// The listener that accepted its connection.
    pub(crate) listener: &'a Rc<ListenerFacts>,
    /// Its address and port.
    pub(crate) peer: SocketAddr,
    /// The number of its connection, which no other connection of the process has.
    pub(crate) connection: u64,
    /// Which request of its connection it is, from 1.
    pub(crate) sequence: u32,
}

impl ClientFacts<'_> {
    /// Whether the connection carried a request before this one.
    pub(crate) fn is_reused(&self) -> bool {
        self.sequence > 1
    }
}

/// The client of a request that lasts beyond one pass.
#[derive(Clone, Debug)]
pub(crate) struct RequestClient {
    listener: Rc<ListenerFacts>,
    peer: SocketAddr,
    connection: u64,
    sequence: u32,
    /// Where its connection was accepted, if a next hop is told.
    local: Option<Box<SocketAddr>>,
    /// Where requests of its connection were sent, if a route looks at that.
    hops: Option<Rc<RefCell<ConnectionHops>>>,
}

impl RequestClient {
    /// The client that `facts` are of.
    pub(crate) fn new(facts: ClientFacts<'_>) -> Self {
        Self {
            listener: Rc::clone(facts.listener),
            peer: facts.peer,
            connection: facts.connection,
            sequence: facts.sequence,
            local: None,
            hops: None,
        }
    }

    /// The same, of a connection whose requests were sent to `hops`.
    pub(crate) fn remember(&mut self, hops: &Rc<RefCell<ConnectionHops>>) {
        self.hops = Some(Rc::clone(hops));
    }

    /// Its connection was accepted at this address.
    pub(crate) fn accepted_at(&mut self, local: Option<SocketAddr>) {
        self.local = local.map(Box::new);
    }

    /// Its connection, if the address at which it was accepted is known.
    pub(crate) fn ends(&self) -> Option<ClientEnds> {
        let client = self.peer;
        let local = self.local.as_deref().copied();
        local.map(|local| ClientEnds { client, local })
    }

    /// Calls `choose` with where the requests of its connection were sent before, to note it there.
    pub(crate) fn with_hops<T>(&self, choose: impl FnOnce(&mut ConnectionHops) -> T) -> T {
        match &self.hops {
            Some(hops) => choose(&mut hops.borrow_mut()),
            None => choose(&mut ConnectionHops::default()),
        }
    }

    /// Whether it speaks HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.listener.versions == HttpVersions::Http2
    }

    /// What is known of it.
    pub(crate) fn facts(&self) -> ClientFacts<'_> {
        ClientFacts {
            listener: &self.listener,
            peer: self.peer,
            connection: self.connection,
            sequence: self.sequence,
        }
    }
}
