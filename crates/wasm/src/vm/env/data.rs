//! Properties, foreign functions, shared data and metrics.

use crate::abi::{MetricKind, Status};
use crate::host::Host;
use crate::limits::{FOREIGN_ARGUMENTS_BYTES_MAX, NAME_BYTES_MAX, PROPERTY_PATH_BYTES_MAX};
use crate::vm::guest::{Answer, Guest};
use crate::vm::memory::{Span, write_u32, write_u64};
use crate::vm::state::State;

pub(super) fn property<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    path: Span,
    data: u32,
    size: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let path = property_path(memory, path)?;
    let value = match own_property(state, path) {
        Some(value) => value,
        None => {
            let context = state.context()?;
            let value = state.host.property(context, path);
            value.ok_or(Status::NotFound)?
        }
    };
    guest.give(&value, data, size)
}

/// What the specification calls *Proxy-Wasm properties*.
fn own_property<H: Host>(state: &State<H>, path: &[u8]) -> Option<Vec<u8>> {
    let value = match path {
        b"plugin_name" => &state.settings.plugin_name,
        b"plugin_root_id" => &state.settings.root_id,
        b"plugin_vm_id" => &state.settings.vm_id,
        _ => return None,
    };
    Some(value.clone().into_bytes())
}

/// Segments with a NUL between them; some SDKs write one behind the last too.
fn property_path(memory: &[u8], path: Span) -> Result<&[u8], Status> {
    let path = path.within(memory, PROPERTY_PATH_BYTES_MAX)?;
    Ok(path.strip_suffix(&[0]).unwrap_or(path))
}

pub(super) fn set_property<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    path: Span,
    value: Span,
) -> Answer {
    let (memory, state) = guest.split()?;
    let path = property_path(memory, path)?;
    let value = value.within(memory, FOREIGN_ARGUMENTS_BYTES_MAX)?;
    let context = state.context()?;
    Ok(state.host.set_property(context, path, value)?)
}

pub(super) fn call_function<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    name: Span,
    arguments: Span,
    data: u32,
    size: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let name = name.within(memory, NAME_BYTES_MAX)?;
    let arguments = arguments.within(memory, FOREIGN_ARGUMENTS_BYTES_MAX)?;
    let context = state.context()?;
    let result = state.host.call_foreign_function(context, name, arguments)?;
    // the places of the result are optional
    if data == 0 && size == 0 {
        return Ok(());
    }
    guest.give(&result, data, size)
}

pub(super) fn shared<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    key: Span,
    data: u32,
    size: u32,
    cas: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let key = key.within(memory, NAME_BYTES_MAX)?;
    let value = state.settings.shared_data.get(key);
    let (value, current) = value.ok_or(Status::NotFound)?;
    write_u32(memory, cas, current)?;
    guest.give(&value, data, size)
}

pub(super) fn set_shared<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    key: Span,
    value: Span,
    cas: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let key = key.within(memory, NAME_BYTES_MAX)?;
    let value = value.of(memory)?;
    Ok(state.settings.shared_data.set(key, value, cas)?)
}

pub(super) fn define_metric<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    kind: u32,
    name: Span,
    id: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let kind = MetricKind::from_number(kind).ok_or(Status::BadArgument)?;
    write_u32(memory, id, 0)?;
    let name = name.within(memory, NAME_BYTES_MAX)?;
    let number = state.settings.metrics.define(kind, name)?;
    Ok(write_u32(memory, id, number)?)
}

pub(super) fn metric<H: Host>(guest: &mut Guest<'_, '_, H>, id: u32, value: u32) -> Answer {
    let (memory, state) = guest.split()?;
    let current = state.settings.metrics.get(id)?;
    Ok(write_u64(memory, value, current)?)
}
