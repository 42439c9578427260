//! Logging, clock, timer and contexts.

use crate::abi::{LogLevel, Status};
use crate::host::Host;
use crate::limits::LOG_LINE_BYTES_MAX;
use crate::vm::guest::{Answer, Guest};
use crate::vm::memory::{Span, write_u32, write_u64};
use std::time::{Duration, SystemTime};

pub(super) fn log<H: Host>(guest: &mut Guest<'_, '_, H>, level: u32, message: Span) -> Answer {
    let (memory, state) = guest.split()?;
    let level = LogLevel::from_number(level).ok_or(Status::BadArgument)?;
    let message = message.of(memory)?;
    let line = &message[..message.len().min(LOG_LINE_BYTES_MAX)];
    state.host.log(state.effective, level, line);
    Ok(())
}

pub(super) fn log_level<H: Host>(guest: &mut Guest<'_, '_, H>, level: u32) -> Answer {
    let (memory, state) = guest.split()?;
    Ok(write_u32(memory, level, state.host.log_level().number())?)
}

pub(super) fn time<H: Host>(guest: &mut Guest<'_, '_, H>, time: u32) -> Answer {
    let (memory, _) = guest.split()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = now.unwrap_or_default().as_nanos();
    // 64 bits last until the year 2554
    let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
    Ok(write_u64(memory, time, nanoseconds)?)
}

pub(super) fn set_tick_period<H: Host>(guest: &mut Guest<'_, '_, H>, period_ms: u32) -> Answer {
    let state = guest.state();
    let period = Duration::from_millis(u64::from(period_ms));
    let period_min = state.settings.limits.tick_period_min;
    state.tick_period = (period_ms > 0).then(|| period.max(period_min));
    Ok(())
}

pub(super) fn set_context<H: Host>(guest: &mut Guest<'_, '_, H>, id: u32) -> Answer {
    let state = guest.state();
    let context = state.contexts.find(id).ok_or(Status::BadArgument)?;
    state.effective = Some(context);
    Ok(())
}

pub(super) fn done<H: Host>(guest: &mut Guest<'_, '_, H>) -> Answer {
    let state = guest.state();
    let context = state.context()?;
    match state.contexts.complete(context) {
        true => Ok(()),
        false => Err(Status::NotFound.into()),
    }
}
