//! The network layer of a proxy, without caching: it accepts connections on many threads, and
//! opens, pools and shares connections to next hops.
//!
//! * [`workers`]: one thread a core, each with its own listening sockets, which runs a [`Service`]
//!   for every connection it accepts; and how all of them are drained.
//! * [`next_hops`]: connections to next hops, resolved, checked, opened, waited for and reused. The
//!   decisions are `weir_policy::connections`'; here they are carried out.
//! * [`http`]: one request and its response on a connection, toward clients and next hops.
//! * [`tls`]: HTTP streams and tunnels of clients under TLS.
//! * [`tunnel`]: bytes both ways between two sockets.
//! * [`flow`]: how many bytes the kernel holds on either side of a transfer.
//! * [`hand_off`]: open connections that move to another machine.
//! * [`resolver`]: names to addresses, on a thread of its own.
//! * [`client`]: the connection of a client, in clear or under TLS; noticing that it has
//!   disconnected.
//! * [`clock`] and [`Deadline`]: the time, and limits on waits.
//!
//! What is counted has its place in `weir_measure`; a failure is named as RFC 9209 names it.
//!
//! Deliberately absent: caching, routes and settings, and what the fields of a message mean. A
//! program makes [`ConnectionRules`] and [`NetworkSettings`] from its own settings, and learns of
//! the health of next hops by a [`ConnectObserver`].
//!
//! The example `relay` is a whole program: it accepts connections and relays their bytes to another
//! address.
//!
//! [`Service`]: workers::Service
//! [`NetworkSettings`]: workers::NetworkSettings
//! [`ConnectionRules`]: next_hops::ConnectionRules
//! [`ConnectObserver`]: next_hops::ConnectObserver

pub mod client;
pub mod clock;
mod deadline;
pub mod filter;
pub mod flow;
pub mod hand_off;
pub mod http;
mod local_address;
pub mod next_hops;
mod process_limits;
pub mod resolver;
mod thread;
pub mod tls;
pub mod tunnel;
pub mod workers;

pub use deadline::{Deadline, Party};
pub use local_address::is_local;
pub use process_limits::{ignore_file_size_signal, raise_descriptor_limit, room_for_a_request};
pub use thread::{run_when_idle, thread_time};
