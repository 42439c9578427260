//! The test double of multiplexed connections: HTTP/2 without its bytes.

mod client;
mod next_hop;

pub use client::{DoubleConnection, DoubleContent, DoubleEnd, DoubleResponse, DoubleStream};
pub(super) use next_hop::at;
pub use next_hop::{DoubleExchange, DoubleNextHop, DoubleRequest};
