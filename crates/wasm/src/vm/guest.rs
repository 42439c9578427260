//! A module while it calls the host: its memory, its allocator, and the form of answers.
//!
//! A result that has no fixed size is written into memory that the module allocates for it, by a
//! call into the module from within its own call. The allocator of a module may log and read
//! clocks then; every other call of the ABI from there is refused, so that calls do not nest
//! further.

use super::memory::{Span, write_u32};
use super::state::State;
use crate::abi::Status;
use crate::host::Host;
use wasmtime::Caller;

/// Why a call of the host does not succeed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The module receives a status.
    Status(Status),
    /// The module ends: it trapped while it allocated.
    Trap(wasmtime::Error),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// What a call of the host gives.
pub(crate) type Answer = Result<(), Refusal>;

/// A module while it calls the host.
pub(crate) struct Guest<'a, 'b, H: Host> {
    caller: &'a mut Caller<'b, State<H>>,
}

/// Answers a call that may not come from the allocator.
pub(crate) fn answer<H: Host>(
    caller: &mut Caller<'_, State<H>>,
    call: impl FnOnce(&mut Guest<'_, '_, H>) -> Answer,
) -> wasmtime::Result<u32> {
    if caller.data().is_allocating {
        return Ok(Status::InternalFailure.number());
    }
    answer_always(caller, call)
}

/// Answers a call, from the allocator too.
pub(crate) fn answer_always<H: Host>(
    caller: &mut Caller<'_, State<H>>,
    call: impl FnOnce(&mut Guest<'_, '_, H>) -> Answer,
) -> wasmtime::Result<u32> {
    match call(&mut Guest { caller }) {
        Ok(()) => Ok(Status::Ok.number()),
        Err(Refusal::Status(status)) => Ok(status.number()),
        Err(Refusal::Trap(error)) => Err(error),
    }
}

impl<'a, 'b, H: Host> Guest<'a, 'b, H> {
    pub(crate) fn new(caller: &'a mut Caller<'b, State<H>>) -> Self {
        Self { caller }
    }

    pub(crate) fn state(&mut self) -> &mut State<H> {
        self.caller.data_mut()
    }

    /// The memory of the module and the state of the host.
    pub(crate) fn split(&mut self) -> Result<(&mut [u8], &mut State<H>), Status> {
        let memory = match self.caller.data().memory {
            Some(memory) => memory,
            // a start function runs before the instance is complete
            None => {
                let export = self.caller.get_export("memory");
                let memory = export.and_then(wasmtime::Extern::into_memory);
                memory.ok_or(Status::InvalidMemoryAccess)?
            }
        };
        Ok(memory.data_and_store_mut(&mut *self.caller))
    }

    /// Gives bytes: allocates them in the module, and writes their place and their length.
    pub(crate) fn give(&mut self, bytes: &[u8], data: u32, size: u32) -> Answer {
        self.give_with(bytes.len(), data, size, |place, _| {
            place.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// As [`give`](Self::give), for `len` bytes that `fill` writes.
    pub(crate) fn give_with(
        &mut self,
        len: usize,
        data: u32,
        size: u32,
        fill: impl FnOnce(&mut [u8], &mut State<H>) -> Result<(), Status>,
    ) -> Answer {
        let len = u32::try_from(len).map_err(|_| Status::InternalFailure)?;
        // the places of the answer are checked before the module has to allocate
        let (memory, _) = self.split()?;
        write_u32(memory, data, 0)?;
        write_u32(memory, size, 0)?;
        if len == 0 {
            return Ok(());
        }
        let place = self.allocate(len)?;
        let (memory, state) = self.split()?;
        fill(Span::new(place, len).of_mut(memory)?, state)?;
        write_u32(memory, data, place)?;
        write_u32(memory, size, len)?;
        Ok(())
    }

    fn allocate(&mut self, len: u32) -> Result<u32, Refusal> {
        let allocate = self.state().allocate.take();
        let allocate = allocate.ok_or(Status::InternalFailure)?;
        self.state().is_allocating = true;
        let place = allocate.call(&mut *self.caller, len);
        let state = self.state();
        (state.is_allocating, state.allocate) = (false, Some(allocate));
        match place.map_err(Refusal::Trap)? {
            0 => Err(Status::InvalidMemoryAccess.into()),
            place => Ok(place),
        }
    }
}
