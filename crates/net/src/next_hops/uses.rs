//! What a next-hop connection was used for: by how many requests, for which clients, on which
//! worker.
//!
//! It belongs to the connection, and is counted where it changes; it takes part in no decision.
//! Clients are distinguished by their address, as in PROXIM (INFOCOM 1999): all clients behind a
//! load balancer count as one.

use super::hop_key::HopKey;
use std::net::IpAddr;
use weir_measure::{Counters, Metric};
use weir_policy::Tick;

/// The uses of one next-hop connection.
#[derive(Debug)]
pub struct Uses {
    /// When it was opened.
    pub opened: Tick,
    /// When the last exchange on it began.
    pub(super) busy_since: Tick,
    /// The worker with whose reactor it is registered.
    pub worker: usize,
    /// Requests sent on it.
    pub requests: u32,
    /// Its number, which no other connection has.
    pub number: u64,
    /// From SYN to SYN-ACK, microseconds.
    pub setup_us: u64,
    /// It was opened in advance, before a request asked for it.
    pub in_advance: bool,
    opener: Option<Mark>,
    clients: DistinctPeers,
}

impl Uses {
    /// The uses of a connection that `worker` opened at `now`: none yet. Its number and the time
    /// that set-up took are still to be set.
    pub(crate) fn new(worker: usize, now: Tick, in_advance: bool) -> Self {
        Self {
            opened: now,
            busy_since: now,
            worker,
            requests: 0,
            number: 0,
            setup_us: 0,
            in_advance,
            opener: None,
            clients: DistinctPeers::default(),
        }
    }

    /// What is known of the connection itself, for a request that shares it.
    pub(crate) fn of_connection(&self) -> Self {
        Self {
            opened: self.opened,
            busy_since: self.busy_since,
            worker: self.worker,
            requests: self.requests,
            number: self.number,
            setup_us: self.setup_us,
            in_advance: self.in_advance,
            opener: None,
            clients: DistinctPeers::default(),
        }
    }

    /// Counts a request that is sent on it for the client at `client`.
    pub fn serve(&mut self, counters: &Counters, client: IpAddr) {
        let mark = match client {
            IpAddr::V4(v4) => Mark::of(&v4.octets()),
            IpAddr::V6(v6) => Mark::of(&v6.octets()),
        };
        if self.clients.insert(mark) {
            counters.inc(Metric::NextHopClients);
        }
        if *self.opener.get_or_insert(mark) != mark {
            counters.inc(Metric::ReusesByOtherClient);
        }
    }
}

/// A hash that distinguishes peers: two of the few that are compared hardly ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark(u32);

impl Mark {
    /// FNV-1a of 32 bits.
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        }))
    }

    fn of_hop(hop: &HopKey) -> Self {
        let host = Self::of(hop.host.as_bytes());
        Self(host.0.rotate_left(16) ^ u32::from(hop.port))
    }
}

/// Maximum number of peers that are distinguished for one connection: those beyond it are not
/// counted.
const DISTINCT_MAX: usize = 64;

/// The different peers of one connection, at most 64. Without any it is one word.
#[derive(Debug, Default)]
pub struct DistinctPeers(Option<Box<Marks>>);

#[derive(Debug, Default)]
struct Marks {
    known: Vec<Mark>,
}

impl DistinctPeers {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a next hop; whether it is a new one, and there was room to note it.
    pub fn insert_hop(&mut self, hop: &HopKey) -> bool {
        self.insert(Mark::of_hop(hop))
    }

    /// Whether this one was not there before, and is now.
    fn insert(&mut self, mark: Mark) -> bool {
        let Marks { known } = &mut **self.0.get_or_insert_default();
        if known.contains(&mark) || known.len() >= DISTINCT_MAX {
            return false;
        }
        known.push(mark);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_is_counted_once_and_reuse_by_other_than_the_opener_each_time() {
        let counters = Counters::new();
        let mut uses = Uses::new(0, Tick(0), false);
        let ip = |last: u8| IpAddr::from([192, 0, 2, last]);
        for last in [1, 1, 2, 1, 2, 3] {
            uses.serve(&counters, ip(last));
        }
        assert_eq!(counters.get(Metric::NextHopClients), 3);
        assert_eq!(counters.get(Metric::ReusesByOtherClient), 3);
    }

    #[test]
    fn adjacent_addresses_or_ports_are_distinct_and_the_set_is_bounded() {
        let mut distinct = DistinctPeers::default();
        let inserted = (0..=u8::MAX)
            .filter(|last| distinct.insert(Mark::of(&[10, 0, 0, *last])))
            .count();
        assert_eq!(inserted, DISTINCT_MAX);
        let hop = |port| Mark::of_hop(&HopKey::new("127.0.0.1", port));
        let mut hops = DistinctPeers::default();
        assert!((1000..1000 + 64).all(|port| hops.insert(hop(port))));
    }
}
