//! The request head that is sent to the next hop.
//!
//! Names, spelling and order stay as received (RFC 9110 §7.6). Left out: hop-by-hop fields and what
//! Connection names (§7.6.1), credentials meant for a proxy. Put in: Host of the canonical target
//! (RFC 9112 §3.2.2) in the place of the one received, however that was spelled: two spellings
//! share a cache key, so the next hop must not see a difference between them. Also put in: for whom
//! the request is forwarded, where that is told (RFC 7239), Via, the framing we use, and on
//! validation the stored response's validators for the client's own (RFC 9111 §4.3.1).

use crate::exchange::next_hop::LateralFetch;
use crate::exchange::state::RequestState;
use crate::fetch::missing_range::MissingRange;
use crate::request::facts::Request;
use crate::request::max_forwards;
use weir_policy::Forwarding;
use weir_policy::forwarded::is_claim;
use weir_semantics::{
    ConnectionOptions, FieldLine, Known, Method, Target, identify, is_hop_by_hop, lines_named,
    write_http_date,
};
use weir_store::StoredResponse;
use weir_wire::{Version, write};

/// The head for `exchange`: the request line and the end-to-end fields.
pub(crate) fn request_head(
    exchange: &RequestState,
    forwarding: Forwarding,
    stored: Option<&StoredResponse>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(exchange.request.head_bytes() + 256);
    let validators = stored.filter(|_| forwarding.validate);
    let request = &exchange.request;
    let (method, path) = (request.method_token(), request.path_and_query());
    if exchange.lateral.is_some() || exchange.proxy.is_some() {
        write::request_line(&mut out, method, &absolute_form(request), Version::Http11);
    } else {
        write::request_line(&mut out, method, path, Version::Http11);
    }
    let is_stored_only = |lateral: &LateralFetch| lateral.is_stored_only();
    if exchange.asks_sibling() || exchange.lateral.as_deref().is_some_and(is_stored_only) {
        write::field(&mut out, "Cache-Control", b"only-if-cached");
    }
    let own = validators.is_some()
        || exchange.background
        || exchange.missing.is_some()
        || exchange.tx.fetches_whole();
    write_fields(exchange, own, &mut out);
    if let Some(stored) = validators {
        write_validators(stored, &mut out);
    }
    if let (Some(missing), Some(stored)) = (&exchange.missing, stored) {
        write_range(missing, stored, &mut out);
    }
    out.extend_from_slice(exchange.via_line());
    out
}

/// The head of a CONNECT for a parent.
pub(crate) fn connect_head(exchange: &RequestState) -> Vec<u8> {
    let request = &exchange.request;
    let mut out = Vec::with_capacity(request.head_bytes() + 256);
    let authority = authority_form(request);
    write::request_line(&mut out, "CONNECT", &authority, Version::Http11);
    write_fields(exchange, false, &mut out);
    out.extend_from_slice(exchange.via_line());
    out
}

/// The target of a CONNECT, with its port (RFC 9112 §3.2.3).
fn authority_form(request: &Request) -> String {
    format!("{}:{}", request.host.as_str(), request.port)
}

/// The target as another proxy is sent it (RFC 9112 §3.2.2). That of a whole server, `*`, has no
/// path then (§3.2.4).
fn absolute_form(request: &Request) -> String {
    let mut target = request.target_uri();
    if request.path_and_query() == "*" {
        target.truncate(target.len() - 1);
    }
    target
}

fn write_fields(exchange: &RequestState, validating: bool, out: &mut Vec<u8>) {
    let (request, who_asked) = (&exchange.request, exchange.who_asked());
    let fields = &request.fields()[..];
    let options = ConnectionOptions::gather(fields);
    let mut host_written = false;
    if lines_named(fields, "host").next().is_none() {
        write_host(request, out);
        host_written = true;
    }
    for line in fields {
        let known = identify(line.name);
        if known == Some(Known::Host) {
            if !host_written {
                write_host(request, out);
                host_written = true;
            }
            continue;
        }
        if is_removed(known, line, &options, request) || who_asked.replaces(line.name) {
            continue;
        }
        if validating && is_precondition(known) {
            continue;
        }
        if known == Some(Known::MaxForwards)
            && request.method == Method::Options
            && let Some(remaining) = max_forwards::remaining(fields)
        {
            // with none remaining it would not be forwarded
            let one_less = remaining.saturating_sub(1).to_string();
            write::field(out, line.name, one_less.as_bytes());
            continue;
        }
        write::field(out, line.name, line.value);
    }
    who_asked.write_lines(fields, out);
}

fn is_removed(
    known: Option<Known>,
    line: &FieldLine<'_>,
    options: &ConnectionOptions<'_>,
    request: &Request,
) -> bool {
    match known {
        Some(Known::Upgrade) => !request.upgrade,
        Some(Known::ProxyAuthorization) => true,
        Some(known) if is_hop_by_hop(known) => true,
        // what is left of claims is the word of a trusted proxy, which a client behind it could
        // have removed by naming them
        _ => options.names(line.name) && !is_claim(line.name),
    }
}

/// The preconditions that our own validators stand in for. The client's If-None-Match,
/// If-Modified-Since, Range and If-Range are evaluated afterwards, against what came. Its If-Match
/// and If-Unmodified-Since are not: a cache may ignore them (RFC 9110 §13.1.1, §13.1.4). They are
/// about the origin's present state, which no stored response can answer. Where modules may change
/// content before it is stored, clients know validators and ranges of the changed content.
fn is_precondition(known: Option<Known>) -> bool {
    matches!(
        known,
        Some(
            Known::IfNoneMatch
                | Known::IfModifiedSince
                | Known::IfMatch
                | Known::IfUnmodifiedSince
                | Known::IfRange
                | Known::Range
        )
    )
}

/// Host of the canonical target: what key, routing and rules use.
fn write_host(request: &Request, out: &mut Vec<u8>) {
    if request.method == Method::Connect {
        return write::field(out, "Host", authority_form(request).as_bytes());
    }
    let target = Target {
        scheme: request.scheme,
        host: &request.host,
        port: request.port,
        path_and_query: "/",
    };
    out.extend_from_slice(b"Host: ");
    target.write_authority(out);
    out.extend_from_slice(b"\r\n");
}

fn write_validators(stored: &StoredResponse, out: &mut Vec<u8>) {
    if let Some(tag) = &stored.entity_tag {
        write::field(out, "If-None-Match", tag);
    }
    if let Some(modified) = stored.last_modified {
        let mut date = [0; 29];
        write_http_date(modified, &mut date);
        write::field(out, "If-Modified-Since", &date);
    }
}

/// Requests the missing range if the representation is still the same (RFC 9110 §13.1.5), else the
/// whole.
fn write_range(missing: &MissingRange, stored: &StoredResponse, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Range: bytes=");
    write::decimal(out, missing.span.from);
    out.push(b'-');
    if missing.span.to != u64::MAX {
        write::decimal(out, missing.span.to - 1);
    }
    out.extend_from_slice(b"\r\n");
    if let Some(tag) = &stored.entity_tag {
        write::field(out, "If-Range", tag);
    }
}
