//! Machines with networks of their own, for hand-off: the clients, the front end and the nodes, on
//! one Ethernet. All but the clients have the address of the service.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use xtask::failure::Failure;
use xtask::namespace::Namespace;
use xtask::namespace::ethernet::{DEVICE, Ethernet, address};

const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
const SERVICE_PORT: u16 = 8080;

/// Of the listeners for other members.
const PEER_PORT: u16 = 4000;

const CLIENTS: u8 = 1;
const FRONT_END: u8 = 2;
const FIRST_NODE: u8 = 10;

/// All machines; they end with it.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) clients: Arc<Namespace>,
    pub(super) front_end: Arc<Namespace>,
    pub(super) nodes: Vec<Arc<Namespace>>,
    // the bridge is gone without it
    _ethernet: Ethernet,
}

impl Machines {
    /// Makes them, with so many nodes.
    ///
    /// # Errors
    /// This is not root, or a namespace does not take what it is told.
    pub(super) fn make(nodes: usize) -> Result<Self, Failure> {
        let ethernet = Ethernet::make()?;
        let front_end = ethernet.join(FRONT_END)?;
        front_end.ip(&format!("addr add {SERVICE}/32 dev {DEVICE}"))?;
        let mut all = Vec::new();
        for place in 0..nodes {
            let node = ethernet.join(number(place))?;
            node.ip(&format!("addr add {SERVICE}/32 dev lo"))?;
            all.push(Arc::new(node));
        }
        let clients = ethernet.join(CLIENTS)?;
        // all connections are to one address and port, and each leaves its own port unused for a
        // minute: thousands of requests a second run out of them
        clients.set("net/ipv4/ip_local_port_range", "1024 65535")?;
        clients.set("net/ipv4/tcp_tw_reuse", "1")?;
        Ok(Self {
            clients: Arc::new(clients),
            front_end: Arc::new(front_end),
            nodes: all,
            _ethernet: ethernet,
        })
    }
}

/// Where clients connect.
pub(super) fn service() -> SocketAddr {
    SocketAddr::from((SERVICE, SERVICE_PORT))
}

/// The listener for other members of the front end.
pub(super) fn front_end_peer() -> SocketAddr {
    SocketAddr::from((address(FRONT_END), PEER_PORT))
}

/// The listener for other members of a node.
pub(super) fn peer(place: usize) -> SocketAddr {
    SocketAddr::from((address(number(place)), PEER_PORT))
}

/// Of the clients' machine, which has the origin, too.
pub(super) fn clients_address() -> Ipv4Addr {
    address(CLIENTS)
}

fn number(place: usize) -> u8 {
    FIRST_NODE.saturating_add(u8::try_from(place).unwrap_or(u8::MAX))
}
