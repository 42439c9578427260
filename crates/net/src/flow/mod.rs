//! How many bytes the kernel holds for us on either side of a transfer, and how many of them it may
//! hold.
//!
//! A promise about the read-ahead of a fetch is a promise about the kernel's buffers: megabytes lie
//! there when a proxy holds a few kilobytes. `docs/read-ahead.md` says which options bound them and
//! why. What is allowed is decided by `weir_policy::fetch::Pace`; here it is set, and asked for
//! only when it changes.

mod client_flow;
mod first_window;
mod next_hop_flow;
mod socket;
mod tcp_info;

pub use client_flow::ClientFlow;
pub use first_window::{LOOK_MS, first_window};
pub use next_hop_flow::{NextHopFlow, after_connect, before_connect};
pub use tcp_info::{tcp_info, unacknowledged_bytes};

#[cfg(test)]
mod tests;
