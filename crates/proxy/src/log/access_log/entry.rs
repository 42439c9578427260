//! What is known about a finished request. Field names are the keys of the JSON format.

use std::net::SocketAddr;

/// One request, from its first byte to the last of its response.
///
/// Text that comes from outside may hold anything: it is escaped, and cut at 8 KiB (target) or 1
/// KiB (the rest). Empty text and `None` are left out of the JSON format and stand as `-` in the
/// others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// When the response ended, milliseconds since 1970 UTC. JSON: `time`, RFC 3339.
    pub(crate) time_unix_ms: u64,
    /// Address of the client.
    pub(crate) client: SocketAddr,
    /// Request method, as received.
    pub(crate) method: &'a str,
    /// Target URI, or what stood in its place in a malformed request.
    pub(crate) target: &'a str,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub(crate) version: &'a str,
    /// Status sent to the client; 0 if it was gone before.
    pub(crate) status: u16,
    /// Word of the verdict: `hit`, `uri-miss`, `collapsed`, ... as in the counters and in
    /// `Cache-Status`.
    pub(crate) verdict: &'static str,
    /// Why: the reason's word; of a collapsed request, why it would have been forwarded.
    pub(crate) detail: &'static str,
    /// The `Cache-Status` field sent (RFC 9211).
    pub(crate) cache_status: &'a [u8],
    /// The response was stored.
    pub(crate) stored: bool,
    /// Status received from the next hop, if one was asked.
    pub(crate) next_hop_status: Option<u16>,
    /// Bytes read from the client: head, framing and body.
    pub(crate) request_bytes: u64,
    /// Bytes sent to the client: head, framing and body.
    pub(crate) response_bytes: u64,
    /// Body bytes sent to the client.
    pub(crate) body_bytes: u64,
    /// Body bytes among them that came from the store; the others were fetched for this request, or
    /// are our own.
    pub(crate) store_bytes: u64,
    /// Body bytes among these that were kept as a part of the response when it was not fetched
    /// whole. Shown if there are any.
    pub(crate) recovered_bytes: u64,
    /// Body bytes read from the next hop for this request that went to nobody. What a shared fetch
    /// brings for nobody is known only when it ends, and is in the counter alone. Shown if there
    /// are any.
    pub(crate) wasted_bytes: u64,
    /// The furthest the fetches of its response were ahead of their fastest readers, up to now,
    /// bytes. Shown if they were.
    pub(crate) read_ahead_max_bytes: u64,
    /// How the request came to share the response to another one's: `collapsed` (it waited for the
    /// head) or `delayed` (it came while the content did), as in the counters.
    pub(crate) joined: Option<&'static str>,
    /// Bytes read from the next hop for this request. Of a response under construction: the head,
    /// and the content that the fetch which this request began brought until it ended or the client
    /// did, without framing. What that fetch brings later, and what others fetch for the same
    /// response, is counted and in no line.
    pub(crate) from_next_hop_bytes: u64,
    /// Bytes sent to the next hop.
    pub(crate) to_next_hop_bytes: u64,
    /// Address connected to, if any.
    pub(crate) next_hop: Option<SocketAddr>,
    /// Not the first request on the client's connection.
    pub(crate) client_reused: bool,
    /// Not the first request on the next hop's connection. Shown only with `next_hop`.
    pub(crate) next_hop_reused: bool,
    /// How long the phases took.
    pub(crate) phases: Phases,
    /// What went wrong, as a word.
    pub(crate) error: Option<&'static str>,
    /// `Content-Type` of the response.
    pub(crate) content_type: &'a [u8],
    /// `User-Agent` of the request.
    pub(crate) user_agent: &'a [u8],
    /// `Referer` of the request.
    pub(crate) referer: &'a [u8],
}

/// Times of the phases, microseconds. `None`: the phase was not reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    /// From the first byte of the request to the end of its head.
    pub(crate) head_us: u64,
    /// From there to the decision where the response comes from, waiting for a leader included.
    pub(crate) choose_us: u64,
    /// Getting a connection toward the next hop: name, connection cache, connect.
    pub(crate) connect_us: Option<u64>,
    /// From the request sent to the first byte of the next hop's response.
    pub(crate) first_byte_us: Option<u64>,
    /// From the first byte of the request to the last of the response.
    pub(crate) total_us: u64,
}

#[cfg(test)]
impl Entry<'_> {
    /// An entry with nothing in it.
    pub(crate) const fn empty() -> Self {
        Self {
            time_unix_ms: 0,
            client: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0),
            method: "",
            target: "",
            version: "",
            status: 0,
            verdict: "",
            detail: "",
            cache_status: b"",
            stored: false,
            next_hop_status: None,
            request_bytes: 0,
            response_bytes: 0,
            body_bytes: 0,
            store_bytes: 0,
            recovered_bytes: 0,
            wasted_bytes: 0,
            read_ahead_max_bytes: 0,
            joined: None,
            from_next_hop_bytes: 0,
            to_next_hop_bytes: 0,
            next_hop: None,
            client_reused: false,
            next_hop_reused: false,
            phases: Phases {
                head_us: 0,
                choose_us: 0,
                connect_us: None,
                first_byte_us: None,
                total_us: 0,
            },
            error: None,
            content_type: b"",
            user_agent: b"",
            referer: b"",
        }
    }
}
