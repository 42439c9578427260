//! Measures and bounds the bytes that the kernel holds on either side of a transfer.
//!
//! A read-ahead limit must bound the kernel's buffers: they hold megabytes where the proxy holds a
//! few kilobytes. `docs/read-ahead.md` says which options bound them and why.
//! `weir_policy::fetch::Pace` decides the bounds; this module sets them, and calls the kernel only
//! when they change. Reads tell the reactor what they learn of the socket (`read_once`).

mod client_flow;
mod first_window;
mod next_hop_flow;
mod send_queue;
mod send_rate;
pub(crate) mod socket;
mod socket_read;
mod tcp_info;

pub use client_flow::ClientFlow;
pub use first_window::{LOOK_MS, first_window};
pub use next_hop_flow::{NextHopFlow, after_connect, before_connect};
pub use send_queue::SendQueue;
pub(crate) use send_rate::Pacing;
pub use send_rate::SendRate;
pub(crate) use socket_read::read_once;
pub use tcp_info::{tcp_info, unacknowledged_bytes};

#[cfg(test)]
mod tests;
