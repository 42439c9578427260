//! WASI preview 1 (module `wasi_snapshot_preview1`), as far as libraries need it to run a module
//! without files: clocks, random bytes, arguments, environment, two outputs.

mod clocks;
mod files;
mod strings;

use super::end::Exit;
use super::guest::Guest;
use super::memory::Span;
use super::state::State;
use crate::abi::Status;
use crate::calls::WASI;
use crate::host::Host;
use crate::limits::RANDOM_BYTES_MAX;
use wasmtime::{Caller, Linker};

/// Error numbers of WASI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    BadFile = 8,
    Fault = 21,
    Invalid = 28,
    Io = 29,
    NotImplemented = 52,
    NotSupported = 58,
}

impl From<Status> for Errno {
    fn from(status: Status) -> Self {
        match status {
            Status::InvalidMemoryAccess => Self::Fault,
            _ => Self::Invalid,
        }
    }
}

/// What an unimplemented call answers: there is no file, and nothing else.
pub(crate) fn unimplemented_errno(name: &str) -> u32 {
    match name.starts_with("fd_") {
        true => Errno::BadFile as u32,
        false => Errno::NotImplemented as u32,
    }
}

/// Answers a call. The allocator of a module may use WASI too.
fn answer<H: Host>(
    caller: &mut Caller<'_, State<H>>,
    call: impl FnOnce(&mut Guest<'_, '_, H>) -> Result<(), Errno>,
) -> u32 {
    match call(&mut Guest::new(caller)) {
        Ok(()) => 0,
        Err(errno) => errno as u32,
    }
}

/// Defines calls: a name, the arguments with their types, and what answers.
macro_rules! calls {
    ($linker:ident, $($name:literal |$guest:ident $(, $argument:ident: $kind:ty)*| $body:expr;)*) => {
        $($linker.func_wrap(
            WASI,
            $name,
            |mut caller: Caller<'_, State<H>> $(, $argument: $kind)*| {
                answer(&mut caller, |$guest| $body)
            },
        )?;)*
    };
}

/// Defines every call that is supported.
pub(crate) fn link<H: Host>(linker: &mut Linker<State<H>>) -> wasmtime::Result<()> {
    calls! {
        linker,
        "args_get" |guest, array: u32, buffer: u32|
            strings::arguments(guest, array, buffer);
        "args_sizes_get" |guest, count: u32, size: u32|
            strings::argument_sizes(guest, count, size);
        "environ_get" |guest, array: u32, buffer: u32|
            strings::environment(guest, array, buffer);
        "environ_sizes_get" |guest, count: u32, size: u32|
            strings::environment_sizes(guest, count, size);
        "clock_res_get" |guest, clock: u32, resolution: u32|
            clocks::resolution(guest, clock, resolution);
        "clock_time_get" |guest, clock: u32, _precision: u64, time: u32|
            clocks::time(guest, clock, time);
        "poll_oneoff" |guest, subscriptions: u32, events: u32, count: u32, stored: u32|
            clocks::poll(guest, subscriptions, events, count, stored);
        "random_get" |guest, data: u32, size: u32| random(guest, Span::new(data, size));
        "sched_yield" |_guest| Ok(());
        "fd_write" |guest, file: u32, vectors: u32, count: u32, written: u32|
            files::write(guest, file, vectors, count, written);
        "fd_fdstat_get" |guest, file: u32, stat: u32| files::stat(guest, file, stat);
        "fd_fdstat_set_flags" |_guest, file: u32, _flags: u32| files::check(file);
        "fd_prestat_get" |_guest, _file: u32, _stat: u32| Err(Errno::BadFile);
        "fd_prestat_dir_name" |_guest, _file: u32, _path: u32, _size: u32| Err(Errno::BadFile);
    }
    linker.func_wrap(WASI, "proc_exit", |code: i32| -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Exit(code)))
    })?;
    Ok(())
}

fn random<H: Host>(guest: &mut Guest<'_, '_, H>, place: Span) -> Result<(), Errno> {
    if place.len() > RANDOM_BYTES_MAX {
        return Err(Errno::Invalid);
    }
    let (memory, _) = guest.split()?;
    getrandom::fill(place.of_mut(memory)?).map_err(|_| Errno::Io)
}
