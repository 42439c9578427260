//! Connections to next hops: where a request goes, opening, pooling, limits, and waiting for one.

pub(crate) mod ahead;
pub(crate) mod destination;
pub(crate) mod dial;
pub(crate) mod next_hop;
pub(crate) mod open_connections;
pub(crate) mod pool;
pub(crate) mod rules;
pub(crate) mod seek;
pub(crate) mod to_come;
pub(crate) mod tunnel;
pub(crate) mod uses;
