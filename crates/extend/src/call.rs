//! What a module is told about the request that it is called for.

use core::net::IpAddr;

/// How the listener that received a request takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerMode {
    /// As a forward proxy: clients choose the destination.
    Forward,
    /// As a gateway: the operator's routes do.
    Gateway,
}

/// The request that a module is called for.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The address of the client.
    pub client: IpAddr,
    /// The mode of the listener that it came to.
    pub mode: ListenerMode,
    /// Milliseconds since the proxy's start: for a module's own times.
    pub now_ms: u64,
}
