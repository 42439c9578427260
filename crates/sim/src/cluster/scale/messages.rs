//! What nodes tell each other beside responses, computed from the number of nodes and what they
//! store. Each node tells each other one, so that a node's part grows with the nodes, and that of
//! the network with their square.

use serde::Serialize;
use weir_policy::route::{CacheDigest, RESPONSES_MAX};

/// Bytes of an addition to a digest (`docs/cache-digest.md`).
const ADDITION_BYTES: f64 = 16.0;

/// Bytes of a request and a response that have a head alone, with their proofs; a cluster with a
/// secret has 500 to 600.
const HEADS_BYTES: f64 = 600.0;

/// How often a digest is asked for, seconds: the default of `cluster.digest_interval`.
const DIGEST_INTERVAL_S: f64 = 10.0;

/// How often a node's state is asked for, seconds: the default of `cluster.state_interval`.
const STATE_INTERVAL_S: f64 = 5.0;

/// A change of the members in etcd as each node's watch gets it, bytes: key, value and their frame.
const MEMBER_CHANGE_BYTES: u64 = 120;

/// How often a node keeps its lease in etcd alive, seconds: a third of the lease.
const LEASE_INTERVAL_S: f64 = 10.0 / 3.0;

/// The messages of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Messages {
    /// A whole digest of one node, bytes; `None` where a node holds more than one digest may say.
    pub digest_bytes: Option<u64>,
    /// The digests of all others, that each node has in memory, bytes.
    pub digests_held_bytes: Option<u64>,
    /// Digests that a node that joins gets and gives, together, bytes.
    pub digests_at_join_bytes: Option<u64>,
    /// Additions to digests that a node gets, with the heads of the messages, bytes a second.
    pub digest_bytes_per_s: f64,
    /// Questions about its state that a node gets and sends, together, each second.
    pub state_messages_per_s: f64,
    /// What these come to, both ways, bytes a second.
    pub state_bytes_per_s: f64,
    /// Bytes that a change of the members costs etcd: each node watches.
    pub member_change_bytes: u64,
    /// Leases that etcd renews, each second.
    pub leases_per_s: f64,
    /// Messages of one purge; the node that purges sends them all.
    pub purge_messages: u64,
}

impl Messages {
    /// Of `nodes` nodes that hold `residents` responses each and store `additions_per_s` new ones a
    /// second each.
    #[must_use]
    pub fn of(nodes: u16, residents: u64, additions_per_s: f64) -> Self {
        let others = u64::from(nodes.saturating_sub(1));
        let pairs = others as f64;
        let digest_bytes = (residents <= RESPONSES_MAX)
            .then(|| CacheDigest::with_capacity(residents).bytes() as u64);
        let messages_per_s = 2.0 * pairs / STATE_INTERVAL_S;
        Self {
            digest_bytes,
            digests_held_bytes: digest_bytes.map(|bytes| others * bytes),
            digests_at_join_bytes: digest_bytes.map(|bytes| 2 * others * bytes),
            digest_bytes_per_s: pairs
                * (additions_per_s * ADDITION_BYTES + HEADS_BYTES / DIGEST_INTERVAL_S),
            state_messages_per_s: messages_per_s,
            state_bytes_per_s: messages_per_s * HEADS_BYTES,
            member_change_bytes: u64::from(nodes) * MEMBER_CHANGE_BYTES,
            leases_per_s: f64::from(nodes) / LEASE_INTERVAL_S,
            purge_messages: others,
        }
    }

    /// Until a purge is in force everywhere, milliseconds: one node sends all messages one after
    /// the other, `message_us` of its CPU time each, and the last one travels for a round trip of
    /// `round_trip_ms` until its answer is there.
    #[must_use]
    pub fn purge_ms(&self, message_us: f64, round_trip_ms: f64) -> f64 {
        match self.purge_messages {
            0 => 0.0,
            messages => messages as f64 * message_us / 1000.0 + round_trip_ms,
        }
    }
}
