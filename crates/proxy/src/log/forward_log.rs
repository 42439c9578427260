//! What forwarding one request did and cost.

use std::net::SocketAddr;
use std::sync::Arc;

/// What a request did at its next hop, and what that cost. A hit has none of it.
#[derive(Clone, Debug)]
pub(super) struct ForwardLog {
    /// The next hop, if the request was forwarded.
    pub(super) next_hop: Option<SocketAddr>,
    /// The link that it is behind, or whose spent quota kept the request from it.
    pub(super) link: Option<Arc<str>>,
    /// Bytes read from the next hop, up to the head of an in-flight response and the content
    /// received with it.
    pub(super) from_next_hop_bytes: u64,
    /// Content that the fetch which this request began brought behind that, until it or the client
    /// ended. The fetch itself adds it to the counters: it is for the log line alone.
    pub(super) fetched_bytes: u64,
    /// Content bytes among `from_next_hop_bytes`.
    pub(super) next_hop_content_bytes: u64,
    /// Heads, framing and other bytes that are no content among `from_next_hop_bytes`.
    pub(super) next_hop_overhead_bytes: u64,
    /// Bytes among `from_next_hop_bytes` that were tunnelled.
    pub(super) tunnel_bytes: u64,
    /// Content bytes read from the next hop that reached no client.
    pub(super) wasted_bytes: u64,
    /// Bytes written to the next hop.
    pub(super) to_next_hop_bytes: u64,
    /// The furthest a fetch for it was ahead of its fastest reader, bytes.
    pub(super) read_ahead_max_bytes: u64,
}

impl ForwardLog {
    /// That of a request which was not forwarded.
    pub(super) const NONE: Self = Self {
        next_hop: None,
        link: None,
        from_next_hop_bytes: 0,
        fetched_bytes: 0,
        next_hop_content_bytes: 0,
        next_hop_overhead_bytes: 0,
        tunnel_bytes: 0,
        wasted_bytes: 0,
        to_next_hop_bytes: 0,
        read_ahead_max_bytes: 0,
    };
}
