//! Links, TCP, connections and servers, as far as they decide when a response arrives.

pub(crate) mod connections;
pub mod link;
pub(crate) mod server_times;
pub mod tcp;
