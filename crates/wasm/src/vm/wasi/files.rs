//! The three standard files: two that become log lines, and an input without content.

use super::Errno;
use crate::abi::LogLevel;
use crate::host::Host;
use crate::limits::{WASI_VECTORS_MAX, WRITE_BYTES_MAX};
use crate::vm::guest::Guest;
use crate::vm::memory::{self, Span, read_u32, write_u32};

const STDIN: u32 = 0;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

pub(super) fn check(file: u32) -> Result<(), Errno> {
    match file {
        STDIN | STDOUT | STDERR => Ok(()),
        _ => Err(Errno::BadFile),
    }
}

/// A character device; reading or writing as its right, no flag.
pub(super) fn stat<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    file: u32,
    stat: u32,
) -> Result<(), Errno> {
    const CHARACTER_DEVICE: u8 = 2;
    const RIGHT_READ: u8 = 1 << 1;
    const RIGHT_WRITE: u8 = 1 << 6;
    check(file)?;
    let (memory, _) = guest.split()?;
    let mut bytes = [0; 24];
    bytes[0] = CHARACTER_DEVICE;
    bytes[8] = match file {
        STDIN => RIGHT_READ,
        _ => RIGHT_WRITE,
    };
    Ok(memory::write(memory, stat, bytes)?)
}

/// A vector: a pointer and a length.
const VECTOR_BYTES: u32 = 8;

pub(super) fn write<H: Host>(
    guest: &mut Guest<'_, '_, H>,
    file: u32,
    vectors: u32,
    count: u32,
    written: u32,
) -> Result<(), Errno> {
    let level = match file {
        STDOUT => LogLevel::Info,
        STDERR => LogLevel::Error,
        _ => return Err(Errno::BadFile),
    };
    if count as usize > WASI_VECTORS_MAX {
        return Err(Errno::Invalid);
    }
    let (memory, state) = guest.split()?;
    write_u32(memory, written, 0)?;
    let (mut at, mut total) = (vectors, 0);
    for _ in 0..count {
        let length_at = at.checked_add(4).ok_or(Errno::Fault)?;
        let vector = Span::new(read_u32(memory, at)?, read_u32(memory, length_at)?);
        let bytes = vector.of(memory)?;
        let bytes = &bytes[..bytes.len().min(WRITE_BYTES_MAX - total)];
        state.write(level, bytes);
        total += bytes.len();
        at = at.checked_add(VECTOR_BYTES).ok_or(Errno::Fault)?;
    }
    let total = u32::try_from(total).map_err(|_| Errno::Invalid)?;
    Ok(write_u32(memory, written, total)?)
}
