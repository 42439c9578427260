//! Buffers: bodies are the host's, the others the instance's and not to change.

use crate::abi::{Side, Status};
use crate::host::Host;
use crate::vm::guest::{Answer, Guest};
use crate::vm::kinds::BufferKind;
use crate::vm::memory::{Span, write_u32};
use crate::vm::state::State;
use std::ops::Range;

fn kind_of(number: u32) -> Result<BufferKind, Status> {
    let kind = BufferKind::from_number(number).ok_or(Status::BadArgument)?;
    match kind {
        BufferKind::DownstreamData | BufferKind::UpstreamData | BufferKind::GrpcCallMessage => {
            Err(Status::Unimplemented)
        }
        kind => Ok(kind),
    }
}

fn read<H: Host>(state: &mut State<H>, kind: BufferKind) -> Result<&[u8], Status> {
    let bytes = match kind {
        BufferKind::RequestBody => state.host.body(context(state.effective)?, Side::Request),
        BufferKind::ResponseBody => state.host.body(context(state.effective)?, Side::Response),
        BufferKind::HttpCallResponseBody => {
            let response = state.http_call_response.as_ref();
            response.map(|response| &*response.body)
        }
        BufferKind::VmConfiguration => Some(&*state.settings.vm_configuration),
        BufferKind::PluginConfiguration => Some(&*state.settings.plugin_configuration),
        BufferKind::ForeignFunctionArguments => state.foreign_arguments.as_deref(),
        BufferKind::DownstreamData | BufferKind::UpstreamData | BufferKind::GrpcCallMessage => None,
    };
    bytes.ok_or(Status::NotFound)
}

fn context<C>(effective: Option<C>) -> Result<C, Status> {
    effective.ok_or(Status::BadArgument)
}

/// `part` of a buffer of `len` bytes, as far as the buffer goes.
fn clamp(part: (u32, u32), len: usize) -> Range<usize> {
    let start = (part.0 as usize).min(len);
    let end = start.saturating_add(part.1 as usize).min(len);
    start..end
}

pub(super) fn get<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    kind: u32,
    part: (u32, u32),
    data: u32,
    size: u32,
) -> Answer {
    let kind = kind_of(kind)?;
    part.0.checked_add(part.1).ok_or(Status::BadArgument)?;
    let range = clamp(part, read(guest.state(), kind)?.len());
    guest.give_with(range.len(), data, size, |place, state| {
        let bytes = read(state, kind)?.get(range);
        // the host may not change a buffer while the module allocates
        place.copy_from_slice(bytes.ok_or(Status::InternalFailure)?);
        Ok(())
    })
}

pub(super) fn status<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    kind: u32,
    size: u32,
    flags: u32,
) -> Answer {
    let kind = kind_of(kind)?;
    let (memory, state) = guest.split()?;
    let len = read(state, kind)?.len();
    let len = u32::try_from(len).map_err(|_| Status::InternalFailure)?;
    write_u32(memory, size, len)?;
    Ok(write_u32(memory, flags, 0)?)
}

pub(super) fn set<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    kind: u32,
    part: (u32, u32),
    content: Span,
) -> Answer {
    let kind = kind_of(kind)?;
    let side = match kind {
        BufferKind::RequestBody => Side::Request,
        BufferKind::ResponseBody => Side::Response,
        _ => return Err(Status::BadArgument.into()),
    };
    let (memory, state) = guest.split()?;
    let content = content.within(memory, state.settings.limits.content_bytes_max)?;
    let range = clamp(part, read(state, kind)?.len());
    let context = state.context()?;
    Ok(state.host.replace_body(context, side, range, content)?)
}
