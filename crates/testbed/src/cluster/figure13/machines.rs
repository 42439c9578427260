//! Machines with networks of their own, for hand-off: the clients, the front end and the nodes, in
//! network namespaces on one bridge. All but the clients have the address of the service.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use xtask::failure::Failure;
use xtask::namespace::Namespace;

const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
const SERVICE_PORT: u16 = 8080;

/// Of the listeners for other members.
const PEER_PORT: u16 = 4000;

/// By which members and clients reach each other.
pub(super) const DEVICE: &str = "e0";

const CLIENTS: u8 = 1;
const FRONT_END: u8 = 2;
const FIRST_NODE: u8 = 10;

/// All machines; they end with it.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) clients: Namespace,
    pub(super) front_end: Arc<Namespace>,
    pub(super) nodes: Vec<Arc<Namespace>>,
    // the bridge is gone without it
    _switch: Namespace,
}

impl Machines {
    /// Makes them, with so many nodes.
    ///
    /// # Errors
    /// This is not root, or a namespace does not take what it is told.
    pub(super) fn make(nodes: usize) -> Result<Self, Failure> {
        let switch = Namespace::make()?;
        switch.ip("link add name bridge0 type bridge")?;
        switch.ip("link set bridge0 up")?;
        let front_end = join(&switch, FRONT_END)?;
        front_end.ip(&format!("addr add {SERVICE}/32 dev {DEVICE}"))?;
        let mut all = Vec::new();
        for place in 0..nodes {
            let node = join(&switch, number(place))?;
            node.ip(&format!("addr add {SERVICE}/32 dev lo"))?;
            all.push(Arc::new(node));
        }
        Ok(Self {
            clients: join(&switch, CLIENTS)?,
            front_end: Arc::new(front_end),
            nodes: all,
            _switch: switch,
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

/// Where nothing listens: members have no origin, and what they have not stored fails.
pub(super) fn no_origin() -> SocketAddr {
    SocketAddr::from((address(CLIENTS), PEER_PORT))
}

fn number(place: usize) -> u8 {
    FIRST_NODE.saturating_add(u8::try_from(place).unwrap_or(u8::MAX))
}

const fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// A machine on the bridge.
fn join(switch: &Namespace, number: u8) -> Result<Namespace, Failure> {
    let machine = Namespace::make()?;
    let port = format!("p{number}");
    switch.link(&port, &machine, DEVICE)?;
    switch.ip(&format!("link set {port} master bridge0 up"))?;
    let own = address(number);
    machine.ip(&format!("addr add {own}/24 dev {DEVICE}"))?;
    machine.ip(&format!("link set {DEVICE} up"))?;
    for (setting, value) in [
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/e0/rp_filter", "0"),
        ("net/ipv4/conf/all/arp_ignore", "1"),
        ("net/ipv4/conf/all/arp_announce", "2"),
    ] {
        machine.set(setting, value)?;
    }
    Ok(machine)
}
