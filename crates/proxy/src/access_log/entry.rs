//! What is known about a finished request. Field names are the keys of the JSON format.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// One request, from its first byte to the last of its response.
///
/// Text that comes from outside may hold anything: it is escaped, and cut at 8 KiB (target) or 1 KiB (the rest). Empty
/// text and `None` are left out of the JSON format and stand as `-` in the others.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// When the response ended, milliseconds since 1970 UTC. JSON: `time`, RFC 3339.
    pub time_unix_ms: u64,
    /// Address of the client.
    pub client: SocketAddr,
    /// Request method, as received.
    pub method: &'a str,
    /// Target URI, or what stood in its place in a malformed request.
    pub target: &'a str,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub version: &'a str,
    /// Status sent to the client; 0 if it was gone before.
    pub status: u16,
    /// Word of the verdict: `hit`, `uri-miss`, ... as in the counters and in `Cache-Status`.
    pub verdict: &'static str,
    /// Why: the reason's word.
    pub detail: &'static str,
    /// The `Cache-Status` field sent (RFC 9211).
    pub cache_status: &'a [u8],
    /// The response was stored.
    pub stored: bool,
    /// Status received from the next hop, if one was asked.
    pub next_hop_status: Option<u16>,
    /// Bytes read from the client: head, framing and body.
    pub request_bytes: u64,
    /// Bytes sent to the client: head, framing and body.
    pub response_bytes: u64,
    /// Body bytes sent to the client.
    pub body_bytes: u64,
    /// Bytes read from the next hop.
    pub from_next_hop_bytes: u64,
    /// Bytes sent to the next hop.
    pub to_next_hop_bytes: u64,
    /// Address connected to, if any.
    pub next_hop: Option<SocketAddr>,
    /// Not the first request on the client's connection.
    pub client_reused: bool,
    /// Not the first request on the next hop's connection. Shown only with `next_hop`.
    pub next_hop_reused: bool,
    /// How long the phases took.
    pub phases: Phases,
    /// What went wrong, as a word.
    pub error: Option<&'static str>,
    /// `Content-Type` of the response.
    pub content_type: &'a [u8],
    /// `User-Agent` of the request.
    pub user_agent: &'a [u8],
    /// `Referer` of the request.
    pub referer: &'a [u8],
}

/// Times of the phases, microseconds. `None`: the phase was not reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// From the first byte of the request to the end of its head.
    pub head_us: u64,
    /// From there to the decision where the response comes from, waiting for a leader included.
    pub choose_us: u64,
    /// Getting a connection toward the next hop: name, connection cache, connect.
    pub connect_us: Option<u64>,
    /// From the request sent to the first byte of the next hop's response.
    pub first_byte_us: Option<u64>,
    /// From the first byte of the request to the last of the response.
    pub total_us: u64,
}

impl Entry<'_> {
    /// An entry with nothing in it, to be completed by `Entry { client, ..Entry::empty() }`.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            time_unix_ms: 0,
            client: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
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
