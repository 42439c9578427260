//! Maps of fields. Those of a stream are the host's, those of an HTTP call the instance's.

use crate::abi::{HttpMap, Status};
use crate::host::Host;
use crate::limits::NAME_BYTES_MAX;
use crate::pairs::{PAIRS_BYTES_MAX, Pairs, PairsError};
use crate::vm::guest::{Answer, Guest};
use crate::vm::kinds::MapKind;
use crate::vm::memory::{Span, write_u32};
use crate::vm::state::State;

/// Whose a map is.
enum Map {
    Stream(HttpMap),
    CallHeaders,
    CallTrailers,
}

fn map_of(number: u32) -> Result<Map, Status> {
    let kind = MapKind::from_number(number).ok_or(Status::BadArgument)?;
    Ok(match kind {
        MapKind::RequestHeaders => Map::Stream(HttpMap::RequestHeaders),
        MapKind::RequestTrailers => Map::Stream(HttpMap::RequestTrailers),
        MapKind::ResponseHeaders => Map::Stream(HttpMap::ResponseHeaders),
        MapKind::ResponseTrailers => Map::Stream(HttpMap::ResponseTrailers),
        MapKind::HttpCallResponseHeaders => Map::CallHeaders,
        MapKind::HttpCallResponseTrailers => Map::CallTrailers,
        MapKind::GrpcInitialMetadata | MapKind::GrpcTrailingMetadata => {
            return Err(Status::Unimplemented);
        }
    })
}

/// A map to read. One that does not exist now reads as empty, as in Envoy: SDKs end a module that
/// receives another status.
fn read<H: Host>(state: &mut State<H>, number: u32) -> Result<Option<&Pairs>, Status> {
    let map = map_of(number)?;
    let response = state.http_call_response.as_ref();
    Ok(match map {
        Map::Stream(map) => {
            let context = state.effective.ok_or(Status::BadArgument)?;
            state.host.map(context, map)
        }
        Map::CallHeaders => response.map(|response| &response.fields),
        Map::CallTrailers => response.map(|response| &response.trailers),
    })
}

/// Changes a map of a stream.
fn edit<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    number: u32,
    change: impl FnOnce(&[u8], &mut Pairs) -> Answer,
) -> Answer {
    let Map::Stream(map) = map_of(number)? else {
        return Err(Status::BadArgument.into());
    };
    let (memory, state) = guest.split()?;
    let context = state.context()?;
    let pairs = state
        .host
        .map_mut(context, map)
        .ok_or(Status::BadArgument)?;
    change(memory, pairs)
}

fn bad(_: PairsError) -> Status {
    Status::BadArgument
}

pub(super) fn size<H: Host>(guest: &mut Guest<'_, '_, H>, map: u32, size: u32) -> Answer {
    let (memory, state) = guest.split()?;
    let len = read(state, map)?.map_or(0, Pairs::encoded_len);
    let len = u32::try_from(len).map_err(|_| Status::InternalFailure)?;
    Ok(write_u32(memory, size, len)?)
}

pub(super) fn pairs<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    map: u32,
    data: u32,
    size: u32,
) -> Answer {
    let len = read(guest.state(), map)?.map_or(0, Pairs::encoded_len);
    guest.give_with(len, data, size, |place, state| {
        // the module can change no map while it allocates
        let written = read(state, map)?.and_then(|pairs| pairs.encode_into(place));
        written.ok_or(Status::InternalFailure)
    })
}

pub(super) fn set_pairs<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    map: u32,
    serialised: Span,
) -> Answer {
    edit(guest, map, |memory, pairs| {
        let serialised = serialised.within(memory, PAIRS_BYTES_MAX)?;
        *pairs = Pairs::decode(serialised).map_err(bad)?;
        Ok(())
    })
}

pub(super) fn value<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    map: u32,
    name: Span,
    data: u32,
    size: u32,
) -> Answer {
    let (memory, state) = guest.split()?;
    let name = name.within(memory, PAIRS_BYTES_MAX)?;
    let mut copy = std::mem::take(&mut state.copy);
    let value = read(state, map)?.and_then(|pairs| pairs.get(name));
    copy.clear();
    let is_there = value.map(|value| copy.extend_from_slice(value));
    let answer = match is_there {
        Some(()) => guest.give(&copy, data, size),
        None => Err(Status::NotFound.into()),
    };
    guest.state().copy = copy;
    answer
}

pub(super) fn add<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    map: u32,
    name: Span,
    value: Span,
) -> Answer {
    let Map::Stream(map) = map_of(map)? else {
        return Err(Status::BadArgument.into());
    };
    let (memory, state) = guest.split()?;
    let context = state.context()?;
    let (name, value) = field(memory, name, value)?;
    Ok(state.host.add_field(context, map, name, value)?)
}

pub(super) fn replace<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    map: u32,
    name: Span,
    value: Span,
) -> Answer {
    edit(guest, map, |memory, pairs| {
        let (name, value) = field(memory, name, value)?;
        Ok(pairs.replace(name, value).map_err(bad)?)
    })
}

fn field(memory: &[u8], name: Span, value: Span) -> Result<(&[u8], &[u8]), Status> {
    let name = name.within(memory, NAME_BYTES_MAX)?;
    Ok((name, value.within(memory, PAIRS_BYTES_MAX)?))
}

pub(super) fn remove<H: Host>(guest: &mut Guest<'_, '_, H>, map: u32, name: Span) -> Answer {
    edit(guest, map, |memory, pairs| {
        let name = name.within(memory, PAIRS_BYTES_MAX)?;
        pairs.remove(name);
        Ok(())
    })
}
