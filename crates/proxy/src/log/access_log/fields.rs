//! The fields of the JSON format: name, meaning, value, in the order in which they are written.
//!
//! The reference page of the log is made from this table.

use super::entry::Entry;
use crate::config::Mechanism;
use crate::log::logged_proxy::LoggedProxy;
use std::net::SocketAddr;
use weir_policy::connections::hand_off::Stay;
use weir_policy::route::Why;

/// Bytes of the target shown.
const TARGET_BYTES_MAX: usize = 8 << 10;
/// Bytes of any other text shown.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A field of a line.
pub(super) struct Field {
    /// Its key.
    pub(super) name: &'static str,
    /// A comma and the key, as JSON.
    pub(super) key: &'static str,
    /// What it means, and its unit.
    pub(super) about: &'static str,
    pub(super) value: for<'a> fn(&Entry<'a>) -> Value<'a>,
}

/// The value of a field.
pub(super) enum Value<'a> {
    /// The field is left out.
    Absent,
    Text(&'a [u8], usize),
    Number(u64),
    Truth(bool),
    Address(SocketAddr),
}

fn text(value: &[u8]) -> Value<'_> {
    Value::Text(value, TEXT_BYTES_MAX)
}

fn number(value: Option<u64>) -> Value<'static> {
    value.map_or(Value::Absent, Value::Number)
}

fn word(why: Option<Why>) -> Value<'static> {
    text(why.map_or("", Why::as_str).as_bytes())
}

/// Left out if it is 0.
fn some(value: u64) -> Value<'static> {
    number(Some(value).filter(|value| *value > 0))
}

/// Of a request that went to a next hop; else left out.
fn with_next_hop<'a>(entry: &Entry<'_>, value: Value<'a>) -> Value<'a> {
    match entry.log.forward().next_hop {
        Some(_) => value,
        None => Value::Absent,
    }
}

macro_rules! fields {
    ($($name:literal, $about:literal, $value:expr;)*) => {
        /// All fields behind `time` and `client`, which every line has.
        pub(super) const FIELDS: &[Field] = &[$(Field {
            name: $name,
            key: concat!(",\"", $name, "\":"),
            about: $about,
            value: $value,
        }),*];
    };
}

fields! {
    "user", "The user who has logged in to the proxy, or the holder of the token. Never a password.",
        |entry| text(entry.log.user.as_deref().unwrap_or_default().as_bytes());
    "listener", "The name of the listener that the request came to; absent if it has none.",
        |entry| text(entry.listener.as_bytes());
    "method", "Request method, as received.",
        |entry| text(entry.request.method.as_bytes());
    "target", "Target URI, as received; of a malformed request it is absent.",
        |entry| Value::Text(entry.request.target.as_bytes(), TARGET_BYTES_MAX);
    "scheme", "`http` or `https`: that of a target without one, as gateways get it.",
        |entry| text(entry.request.scheme.as_bytes());
    "host", "`Host` of the request, as received, where the target names no host.",
        |entry| text(entry.request.host);
    "version", "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.",
        |entry| text(entry.request.version.as_bytes());
    "client_reused", "Not the first request on the client's connection.",
        |entry| Value::Truth(entry.client_reused);
    "request_bytes", "Bytes read from the client: head, framing and content.",
        |entry| Value::Number(entry.log.request_bytes);
    "status", "Status sent to the client; 0 if it was gone before.",
        |entry| Value::Number(entry.log.status.into());
    "verdict", "Word of the verdict: `hit`, `uri-miss`, `collapsed`, ... as in the counters and, \
        where the request was not refused, in `Cache-Status`.",
        |entry| text(entry.verdict_word().as_bytes());
    "detail", "Why: the reason's word; of a collapsed request, why it would have been forwarded.",
        |entry| text(entry.detail().as_bytes());
    "cache_status", "The `Cache-Status` field sent (RFC 9211).",
        |entry| text(entry.cache_status);
    "stored", "The response was stored.",
        |entry| Value::Truth(entry.is_stored());
    "response_bytes", "Bytes sent to the client: head, framing and content.",
        |entry| Value::Number(entry.log.response_bytes);
    "body_bytes", "Content bytes sent to the client.",
        |entry| Value::Number(entry.log.body_bytes);
    "store_bytes", "Content bytes among `body_bytes` that came from the store; the others were \
        fetched for this request, or are our own.",
        |entry| Value::Number(entry.log.store_bytes);
    "recovered_bytes", "Content bytes among `store_bytes` that were kept as a part of the response \
        when it was not fetched whole. Shown if there are any.",
        |entry| some(entry.log.recovered_bytes);
    "wasted_bytes", "Content bytes read from the next hop for this request that reached no client. \
        What a shared fetch brings for no client is known only when the fetch ends, and is in the \
        counter alone. Shown if there are any.",
        |entry| some(entry.log.forward().wasted_bytes);
    "read_ahead_max_bytes", "The furthest the fetches of its response were ahead of their fastest \
        readers, up to now, bytes. Shown if they were.",
        |entry| some(entry.log.forward().read_ahead_max_bytes);
    "joined", "How the request came to share the response to another request: `collapsed` (it \
        waited for the head) or `delayed` (it came while the content did), as in the counters.",
        |entry| text(entry.joined().as_bytes());
    "next_hop", "Address of the next hop that was asked, if one was.",
        |entry| entry.log.forward().next_hop.map_or(Value::Absent, Value::Address);
    "next_hop_kind", "`parent` or `sibling`, if the next hop is one.",
        |entry| text(entry.log.proxy.map_or("", LoggedProxy::word).as_bytes());
    "link", "The link that the next hop is behind: its `link[].name`. Shown if it is behind one: also if the request was refused, or answered by a stale response, since the link had spent its quota.",
        |entry| text(entry.log.forward().link.as_deref().unwrap_or_default().as_bytes());
    "next_hop_version", "`HTTP/1.1` or `HTTP/2.0`: what the next hop was asked by. Shown with `next_hop`.",
        |entry| with_next_hop(entry, text(match entry.log.is_next_hop_http2 {
            true => b"HTTP/2.0",
            false => b"HTTP/1.1",
        }));
    "next_hop_reused", "Not the first request on the next hop's connection. Shown with `next_hop`.",
        |entry| with_next_hop(entry, Value::Truth(entry.log.next_hop_reused));
    "node_choice", "Why this node of the cluster was asked, or the origin since this node keeps the \
        target: the reason in `weir_node_choices_total`. Shown if a node was chosen.",
        |entry| word(entry.log.node_choice);
    "next_hop_choice", "Why this next hop of its route was asked: the reason in \
        `weir_route_choices_total`. Shown if a route was used.",
        |entry| word(entry.log.next_hop_choice);
    "mechanism", "In a cluster with `cluster.mechanism = \"hand-off\"`: `hand-off` if a front end has handed \
        the client's connection over to this node, `forwarding` if this front end has it.",
        |entry| text(entry.mechanism.map_or("", Mechanism::as_str).as_bytes());
    "hand_off_refusal", "Why the connection was not handed over with this request: the reason in \
        `weir_hand_offs_refused_total`.",
        |entry| text(entry.log.stay.map_or("", Stay::as_str).as_bytes());
    "from_next_hop_bytes", "Bytes read from the next hop for this request. Of an in-flight response: \
        the head, and the content that the fetch which this request began brought until the fetch \
        or the client ended, without framing. What that fetch brings later, and what others fetch \
        for the same response, is counted and in no line. Shown with `next_hop`.",
        |entry| with_next_hop(entry, Value::Number(entry.next_hop_bytes()));
    "to_next_hop_bytes", "Bytes sent to the next hop. Shown with `next_hop`.",
        |entry| with_next_hop(entry, Value::Number(entry.log.forward().to_next_hop_bytes));
    "next_hop_status", "Status received from the next hop, if one was asked.",
        |entry| number(entry.next_hop_status().map(u64::from));
    "head_us", "From the first byte of the request to the end of its head, microseconds.",
        |entry| Value::Number(entry.head_us());
    "choose_us", "From there to the decision where the response comes from, microseconds: rules, \
        look-up in memory and on disk.",
        |entry| Value::Number(entry.choose_us());
    "connect_us", "From there to a connection to the next hop, microseconds: waiting for another \
        request's response, name, connection cache, connect.",
        |entry| number(entry.connect_us());
    "first_byte_us", "From there to the head of the response, microseconds.",
        |entry| number(entry.first_byte_us());
    "total_us", "From the first byte of the request to the last of the response, microseconds.",
        |entry| Value::Number(entry.total_us);
    "error", "What went wrong, as a word.",
        |entry| text(entry.log.error.unwrap_or_default().as_bytes());
    "content_type", "`Content-Type` of the response.",
        |entry| text(entry.content_type);
    "user_agent", "`User-Agent` of the request.",
        |entry| text(entry.request.user_agent);
    "referer", "`Referer` of the request.",
        |entry| text(entry.request.referer);
}
