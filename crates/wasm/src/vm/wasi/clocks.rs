//! Clocks. They are true: Go seeds its timers and Rust its instants from them.

use super::Errno;
use crate::host::Host;
use crate::limits::WASI_VECTORS_MAX;
use crate::vm::guest::Guest;
use crate::vm::memory::{Span, write_u32, write_u64};
use std::time::SystemTime;

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;

pub(super) fn resolution<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    clock: u32,
    resolution: u32,
) -> Result<(), Errno> {
    let (memory, _) = guest.split()?;
    match clock {
        REALTIME | MONOTONIC => Ok(write_u64(memory, resolution, 1)?),
        _ => Err(Errno::NotSupported),
    }
}

pub(super) fn time<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    clock: u32,
    time: u32,
) -> Result<(), Errno> {
    let (memory, state) = guest.split()?;
    let passed = match clock {
        REALTIME => SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
        MONOTONIC => state.started.elapsed(),
        _ => return Err(Errno::NotSupported),
    };
    // 64 bits last until the year 2554
    let nanoseconds = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
    Ok(write_u64(memory, time, nanoseconds)?)
}

/// Bytes of a subscription and of an event.
const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: u32 = 32;

/// The kind of a subscription to a clock, at this offset.
const KIND_AT: usize = 8;
const KIND_CLOCK: u8 = 0;

/// Answers at once: a host call does not sleep, because other streams wait for its thread. A
/// module that waits for a clock calls again until the time has come or its deadline has passed.
/// A subscription to a file fails.
pub(super) fn poll<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    subscriptions: u32,
    events: u32,
    count: u32,
    stored: u32,
) -> Result<(), Errno> {
    if count == 0 || count as usize > WASI_VECTORS_MAX {
        return Err(Errno::Invalid);
    }
    let (memory, _) = guest.split()?;
    // the number of subscriptions is small, so that the products fit
    let taken = Span::new(subscriptions, count * SUBSCRIPTION_BYTES);
    let taken = taken.of(memory)?.to_vec();
    let mut given = Vec::new();
    for subscription in taken.chunks_exact(SUBSCRIPTION_BYTES as usize) {
        let kind = subscription[KIND_AT];
        let errno = match kind {
            KIND_CLOCK => 0,
            _ => Errno::BadFile as u32,
        };
        let mut event = [0; EVENT_BYTES as usize];
        event[..8].copy_from_slice(&subscription[..8]);
        event[8..12].copy_from_slice(&errno.to_le_bytes());
        event[10] = kind;
        given.extend(event);
    }
    let place = Span::new(events, count * EVENT_BYTES);
    place.of_mut(memory)?.copy_from_slice(&given);
    Ok(write_u32(memory, stored, count)?)
}
