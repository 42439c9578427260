//! What is known of the connection of a stream to a next hop.

use crate::next_hops::{HopKey, Uses};
use std::net::SocketAddr;
use std::sync::Arc;

/// What is known of the connection of a stream.
#[derive(Clone, Copy, Debug)]
pub struct NextHopFacts<'a> {
    /// The address it is connected to.
    pub address: SocketAddr,
    /// The next hop it leads to.
    pub hop: &'a HopKey,
    /// It carried a request before, or was opened in advance: the next hop may have closed it just
    /// when this request was sent.
    pub reused: bool,
    /// HTTP/2 is spoken on it, and other requests may be under way there.
    pub is_http2: bool,
    /// What it was used for.
    pub uses: &'a Uses,
    /// What the link is called that it leads over, if there is one.
    pub link: Option<&'a Arc<str>>,
}
