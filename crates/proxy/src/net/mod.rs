//! Connections and the time they take: listeners, worker threads, clock, deadlines, names, next-hop
//! connections, tunnels, and what the kernel says of a socket.

pub(crate) mod client_disconnect;
pub(crate) mod clients;
pub mod clock;
pub(crate) mod deadline;
pub(crate) mod descriptors;
pub(crate) mod failure;
pub(crate) mod flow;
pub(crate) mod listener;
pub(crate) mod local_address;
pub(crate) mod network;
pub(crate) mod next_hops;
pub(crate) mod resolver;
pub(crate) mod shutdown;
pub(crate) mod tunnel;
pub(crate) mod worker;
pub(crate) mod worker_pool;
