//! What a module does to a stream, and its HTTP calls.

use crate::abi::{Side, Status};
use crate::host::{Host, HttpCall, HttpCallId, LocalResponse};
use crate::limits::NAME_BYTES_MAX;
use crate::pairs::{PAIRS_BYTES_MAX, Pairs};
use crate::vm::guest::{Answer, Guest};
use crate::vm::kinds::StreamKind;
use crate::vm::memory::{Span, write_u32};
use std::time::Duration;

fn side_of(stream: u32) -> Result<Side, Status> {
    match StreamKind::from_number(stream).ok_or(Status::BadArgument)? {
        StreamKind::HttpRequest => Ok(Side::Request),
        StreamKind::HttpResponse => Ok(Side::Response),
        StreamKind::Downstream | StreamKind::Upstream => Err(Status::Unimplemented),
    }
}

pub(super) fn resume<H: Host>(guest: &mut Guest<'_, '_, H>, stream: u32) -> Answer {
    let side = side_of(stream)?;
    let state = guest.state();
    let context = state.context()?;
    let stream = state.contexts.stream(context).ok_or(Status::BadArgument)?;
    if stream.resume(side) && !stream.has_responded {
        state.host.continue_stream(context, side);
    }
    Ok(())
}

pub(super) fn close<H: Host>(guest: &mut Guest<'_, '_, H>, stream: u32) -> Answer {
    let side = side_of(stream)?;
    let state = guest.state();
    let context = state.context()?;
    state.contexts.stream(context).ok_or(Status::BadArgument)?;
    Ok(state.host.close_stream(context, side)?)
}

/// The arguments of `proxy_send_local_response`.
pub(super) struct ResponseSpans {
    pub(super) status: u32,
    pub(super) details: Span,
    pub(super) body: Span,
    pub(super) fields: Span,
    pub(super) grpc_status: i32,
}

pub(super) fn respond<H: Host>(guest: &mut Guest<'_, '_, H>, spans: ResponseSpans) -> Answer {
    let (memory, state) = guest.split()?;
    let context = state.context()?;
    let body_max = state.settings.limits.content_bytes_max;
    let response = LocalResponse {
        status: response_status(spans.status)?,
        details: spans.details.within(memory, NAME_BYTES_MAX)?.to_vec(),
        fields: map(memory, spans.fields)?,
        body: spans.body.within(memory, body_max)?.to_vec(),
        grpc_status: spans.grpc_status,
    };
    let stream = state.contexts.stream(context).ok_or(Status::BadArgument)?;
    if stream.has_responded {
        return Err(Status::BadArgument.into());
    }
    state.host.send_local_response(context, response)?;
    if let Some(stream) = state.contexts.stream(context) {
        stream.has_responded = true;
    }
    Ok(())
}

/// A final status (RFC 9110 §15).
fn response_status(status: u32) -> Result<u16, Status> {
    let status = u16::try_from(status).map_err(|_| Status::BadArgument)?;
    match status {
        200..=599 => Ok(status),
        _ => Err(Status::BadArgument),
    }
}

fn map(memory: &[u8], serialised: Span) -> Result<Pairs, Status> {
    let serialised = serialised.within(memory, PAIRS_BYTES_MAX)?;
    Pairs::decode(serialised).map_err(|_| Status::BadArgument)
}

/// The arguments of `proxy_http_call`.
pub(super) struct CallSpans {
    pub(super) upstream: Span,
    pub(super) fields: Span,
    pub(super) body: Span,
    pub(super) trailers: Span,
    pub(super) timeout_ms: u32,
    /// Where the number of the call is written.
    pub(super) id: u32,
}

/// Without these a request has no target.
const REQUIRED: [&[u8]; 3] = [b":authority", b":method", b":path"];

pub(super) fn http_call<H: Host>(guest: &mut Guest<'_, '_, H>, spans: CallSpans) -> Answer {
    let (memory, state) = guest.split()?;
    let context = state.context()?;
    write_u32(memory, spans.id, 0)?;
    let fields = map(memory, spans.fields)?;
    if REQUIRED.iter().any(|name| fields.get(name).is_none()) {
        return Err(Status::BadArgument.into());
    }
    if state.http_calls.len() >= state.settings.limits.http_calls_max {
        return Err(Status::InternalFailure.into());
    }
    let mut id = state.last_http_call;
    // numbers come again after four thousand million calls; those in use are skipped
    loop {
        id = id.checked_add(1).unwrap_or(1);
        if !state.http_calls.contains(&id) {
            break;
        }
    }
    let body_max = state.settings.limits.content_bytes_max;
    let call = HttpCall {
        id: HttpCallId(id),
        upstream: spans.upstream.within(memory, NAME_BYTES_MAX)?.to_vec(),
        fields,
        body: spans.body.within(memory, body_max)?.to_vec(),
        trailers: map(memory, spans.trailers)?,
        timeout: Duration::from_millis(u64::from(spans.timeout_ms)),
    };
    state.host.http_call(context, call)?;
    state.last_http_call = id;
    state.http_calls.insert(id);
    Ok(write_u32(memory, spans.id, id)?)
}

/// The status of the response to an HTTP call, zero outside of its callback. There is no message.
pub(super) fn call_status<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    code: u32,
    data: u32,
    size: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let response = state.http_call_response.as_ref();
    let status = response.and_then(|response| response.fields.get(b":status"));
    let status = status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    write_u32(memory, code, status.unwrap_or(0))?;
    guest.give(b"", data, size)
}
