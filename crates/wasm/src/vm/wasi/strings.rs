//! Arguments and environment variables: arrays of strings.

use super::Errno;
use crate::abi::Status;
use crate::host::Host;
use crate::vm::guest::Guest;
use crate::vm::memory::{Span, write_u32};

pub(super) fn arguments<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    array: u32,
    buffer: u32,
) -> Result<(), Errno> {
    let (memory, state) = guest.split()?;
    Ok(write(memory, &state.arguments, array, buffer)?)
}

pub(super) fn argument_sizes<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    count: u32,
    size: u32,
) -> Result<(), Errno> {
    let (memory, state) = guest.split()?;
    Ok(write_sizes(memory, &state.arguments, count, size)?)
}

pub(super) fn environment<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    array: u32,
    buffer: u32,
) -> Result<(), Errno> {
    let (memory, state) = guest.split()?;
    Ok(write(memory, &state.environment, array, buffer)?)
}

pub(super) fn environment_sizes<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    count: u32,
    size: u32,
) -> Result<(), Errno> {
    let (memory, state) = guest.split()?;
    Ok(write_sizes(memory, &state.environment, count, size)?)
}

fn write_sizes(
    memory: &mut [u8],
    strings: &[Vec<u8>],
    count: u32,
    size: u32,
) -> Result<(), Status> {
    let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
    write_u32(memory, count, length(strings.len())?)?;
    write_u32(memory, size, length(bytes)?)
}

fn length(length: usize) -> Result<u32, Status> {
    u32::try_from(length).map_err(|_| Status::InternalFailure)
}

/// Writes the strings, a NUL behind each, and an array of their places.
fn write(memory: &mut [u8], strings: &[Vec<u8>], array: u32, buffer: u32) -> Result<(), Status> {
    let (mut slot, mut at) = (array, buffer);
    for string in strings {
        let len = length(string.len())?;
        write_u32(memory, slot, at)?;
        let place = Span::new(at, len).of_mut(memory)?;
        place.copy_from_slice(string);
        let end = at.checked_add(len).ok_or(Status::InvalidMemoryAccess)?;
        Span::new(end, 1).of_mut(memory)?[0] = 0;
        at = end.checked_add(1).ok_or(Status::InvalidMemoryAccess)?;
        slot = slot.checked_add(4).ok_or(Status::InvalidMemoryAccess)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_with_their_places() {
        let strings = [b"a=1".to_vec(), b"".to_vec(), b"b".to_vec()];
        let mut memory = [9; 21];
        write(&mut memory, &strings, 0, 13).unwrap();
        let places = [13, 0, 0, 0, 17, 0, 0, 0, 18, 0, 0, 0];
        assert_eq!(memory[..12], places);
        assert_eq!(&memory[12..], b"\x09a=1\0\0b\0\x09");
    }

    #[test]
    fn strings_beyond_the_memory_are_refused() {
        let strings = [b"abc".to_vec()];
        for (array, buffer) in [(0, 5), (5, 4), (u32::MAX, 4), (0, u32::MAX - 2)] {
            let result = write(&mut [0; 8], &strings, array, buffer);
            assert_eq!(result, Err(Status::InvalidMemoryAccess));
        }
        write(&mut [0; 8], &strings, 0, 4).unwrap();
    }
}
