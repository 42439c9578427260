//! Connections to next hops: where a request goes, opening, pooling, limits, and waiting for one.

pub mod ahead;
pub mod destination;
pub mod dial;
pub mod next_hop;
pub mod open_connections;
pub mod pool;
pub mod rules;
pub mod seek;
pub mod to_come;
pub mod tunnel;
pub mod uses;
