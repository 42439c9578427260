//! A client's connection, and the requests on it that are answered in one pass.

pub(crate) mod connection;
pub(crate) mod digest_answer;
pub(crate) mod fast;
pub(crate) mod hand_off;
mod http2;
mod other_protocol;
pub(crate) mod outgoing;
mod own_target;
pub(crate) mod peer_listener;
mod protocol;
mod proxied;
pub(crate) mod service;
mod stalled_socket;
mod tls;
mod with_modules;

#[cfg(test)]
pub(crate) use http2::size_of_exchange;
