//! Connections and the time they take: listeners, worker threads, clock, deadlines, names, next-hop
//! connections, tunnels, and what the kernel says of a socket.

pub mod client_disconnect;
pub mod clients;
pub mod clock;
pub mod deadline;
pub mod descriptors;
pub mod failure;
pub mod flow;
pub mod listener;
pub mod local_address;
pub mod network;
pub mod next_hops;
pub mod resolver;
pub mod shutdown;
pub mod tunnel;
pub mod worker;
pub mod worker_pool;
