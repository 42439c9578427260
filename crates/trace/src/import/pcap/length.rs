//! The length of a message with contradictory fields.
//!
//! `weir-wire` refuses such messages, as a proxy must. Here they have passed already, and what most
//! recipients do decides (RFC 9112 §6.3): chunked wins over a length, one length may be repeated,
//! and what cannot be read as a length is none.

use weir_semantics::{FieldLine, Method, lines_named};
use weir_wire::{BodyLength, RequestHead, ResponseHead, request_body, response_body};

use crate::import::facts::declared_bytes;

/// How long the content of a request is.
pub(super) fn of_request(head: &RequestHead<'_, '_>) -> BodyLength {
    request_body(head.version, head.fields).unwrap_or_else(|_| {
        if is_chunked(head.fields) {
            BodyLength::Chunked
        } else {
            declared_bytes(head.fields).map_or(BodyLength::None, BodyLength::Exact)
        }
    })
}

/// How long the content of a response to such a request is.
pub(super) fn of_response(head: &ResponseHead<'_, '_>, method: Method) -> BodyLength {
    response_body(head.version, method, head.status, head.fields).unwrap_or_else(|_| {
        if method == Method::Head || matches!(head.status, 100..200 | 204 | 304) {
            BodyLength::None
        } else if is_chunked(head.fields) {
            BodyLength::Chunked
        } else {
            declared_bytes(head.fields).map_or(BodyLength::UntilClose, BodyLength::Exact)
        }
    })
}

/// Whether the last coding is `chunked`.
fn is_chunked(fields: &[FieldLine<'_>]) -> bool {
    let last = lines_named(fields, "transfer-encoding")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .last();
    last.is_some_and(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}
