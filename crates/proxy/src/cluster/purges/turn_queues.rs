//! The order in which clients and the operator tell members something.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use tokio::sync::Mutex;

/// Queues of clients: so many changes of others at most are told before the first one of a client.
const CLIENT_QUEUES: usize = 64;

/// The queues. Those of a kind tell one after the other.
#[derive(Debug)]
pub(super) struct TurnQueues {
    pub(super) of_clients: Mutex<()>,
    /// What a client has waiting waits here, and the first of it in the queue of all clients: one
    /// that sends many unsafe requests is before another one by one of them. Clients share a queue
    /// by a hash of their addresses.
    of_each_client: [Mutex<()>; CLIENT_QUEUES],
    pub(super) of_operator: Mutex<()>,
    hash: RandomState,
}

impl Default for TurnQueues {
    fn default() -> Self {
        Self {
            of_clients: Mutex::default(),
            of_each_client: std::array::from_fn(|_| Mutex::default()),
            of_operator: Mutex::default(),
            hash: RandomState::new(),
        }
    }
}

impl TurnQueues {
    /// The queue of the client at this address.
    pub(super) fn of_client(&self, client: IpAddr) -> &Mutex<()> {
        let hash = self.hash.hash_one(one_client(client));
        let queue = usize::try_from(hash % CLIENT_QUEUES as u64).unwrap_or_default();
        &self.of_each_client[queue]
    }
}

/// The address of a client: of IPv6 the network, as one client has all of its addresses.
pub(crate) fn one_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}
