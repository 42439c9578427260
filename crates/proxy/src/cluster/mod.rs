//! The cluster that this node is a member of: which node keeps a target, requests to the others,
//! and requests of theirs.
//!
//! Extended LARD's back-end forwarding (Aron, Druschel, Zwaenepoel: Efficient Support for P-HTTP in
//! Cluster-Based Web Servers. USENIX 1999) without a front end: every node takes clients, and
//! fetches what another node keeps *laterally*, over connections that stay open. A lateral fetch is
//! a fetch like any other, but for its next hop and one field. It is one hop, never two: what
//! arrives at a peer listener is answered from here or from the origin.

pub(crate) mod digests;
mod members;
mod membership;
pub(crate) mod node_health;
mod nodes_to_ask;
mod nonces;
mod own_url;
mod placement;
mod proof;
mod proved_head;
pub(crate) mod purges;
pub(crate) mod report;
mod state;

pub(crate) use members::{
    Asker, Cluster, DIGESTS, HAND_OFF, Maker, OWN_URL, PURGES, STATE, STATE_TARGET,
};
pub(crate) use membership::Membership;
pub(crate) use nonces::Nonces;
pub(crate) use own_url::{Lead, NAMESAKE_PROBLEM};
pub(crate) use proof::{ClusterSecret, HAND_OFF_PROOF_BYTES};
pub(crate) use state::{ClusterState, Counted};
