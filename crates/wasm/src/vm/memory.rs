//! The memory of a module as the host reads and writes it: every pointer and length is the
//! module's choice.

use crate::abi::Status;

/// A pointer and a length that a module gave. Neither is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    pub(crate) const fn new(start: u32, len: u32) -> Self {
        Self { start, len }
    }

    pub(crate) const fn len(self) -> usize {
        self.len as usize
    }

    /// Where it lies. An empty one lies anywhere: SDKs give null or a dangling pointer then.
    fn range(self) -> Result<std::ops::Range<usize>, Status> {
        if self.len == 0 {
            return Ok(0..0);
        }
        let start = self.start as usize;
        let end = start.checked_add(self.len());
        Ok(start..end.ok_or(Status::InvalidMemoryAccess)?)
    }

    /// Its bytes.
    pub(crate) fn of(self, memory: &[u8]) -> Result<&[u8], Status> {
        let bytes = memory.get(self.range()?);
        bytes.ok_or(Status::InvalidMemoryAccess)
    }

    /// Its bytes, at most `bytes_max`.
    pub(crate) fn within(self, memory: &[u8], bytes_max: usize) -> Result<&[u8], Status> {
        let bytes = self.of(memory)?;
        match bytes.len() <= bytes_max {
            true => Ok(bytes),
            false => Err(Status::BadArgument),
        }
    }

    /// Its bytes to write.
    pub(crate) fn of_mut(self, memory: &mut [u8]) -> Result<&mut [u8], Status> {
        let bytes = memory.get_mut(self.range()?);
        bytes.ok_or(Status::InvalidMemoryAccess)
    }
}

/// Writes at a place that a module gave.
pub(crate) fn write<const N: usize>(
    memory: &mut [u8],
    at: u32,
    bytes: [u8; N],
) -> Result<(), Status> {
    let len = u32::try_from(N).map_err(|_| Status::InternalFailure)?;
    Span::new(at, len).of_mut(memory)?.copy_from_slice(&bytes);
    Ok(())
}

/// Writes an integer.
pub(crate) fn write_u32(memory: &mut [u8], at: u32, value: u32) -> Result<(), Status> {
    write(memory, at, value.to_le_bytes())
}

/// Writes an integer.
pub(crate) fn write_u64(memory: &mut [u8], at: u32, value: u64) -> Result<(), Status> {
    write(memory, at, value.to_le_bytes())
}

/// Reads an integer.
pub(crate) fn read_u32(memory: &[u8], at: u32) -> Result<u32, Status> {
    let bytes = Span::new(at, 4).of(memory)?;
    let bytes = bytes.try_into().map_err(|_| Status::InvalidMemoryAccess)?;
    Ok(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: Status = Status::InvalidMemoryAccess;

    #[test]
    fn span_outside_of_the_memory_is_refused() {
        let memory = [1, 2, 3, 4];
        for (start, len) in [(0, 5), (3, 2), (4, 1), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(Span::new(start, len).of(&memory), Err(OUTSIDE));
            assert_eq!(
                Span::new(start, len).within(&memory, usize::MAX),
                Err(OUTSIDE)
            );
        }
        assert_eq!(Span::new(2, 2).of(&memory), Ok(&[3, 4][..]));
        assert_eq!(Span::new(0, 4).of(&memory), Ok(&memory[..]));
    }

    #[test]
    fn empty_span_is_accepted_at_any_place() {
        assert_eq!(Span::new(u32::MAX, 0).of(&[]), Ok(&[][..]));
    }

    #[test]
    fn span_beyond_its_limit_is_a_bad_argument() {
        assert_eq!(Span::new(0, 2).within(&[1, 2], 2), Ok(&[1, 2][..]));
        assert_eq!(Span::new(0, 2).within(&[1, 2], 1), Err(Status::BadArgument));
    }

    #[test]
    fn integers_are_little_endian_and_checked() {
        let mut memory = [0; 9];
        write_u32(&mut memory, 1, 0x0102_0304).unwrap();
        assert_eq!(memory, [0, 4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(read_u32(&memory, 1), Ok(0x0102_0304));
        assert_eq!(read_u32(&memory, 6), Err(OUTSIDE));
        assert_eq!(write_u64(&mut memory, 2, 0), Err(OUTSIDE));
        write_u64(&mut memory, 1, u64::MAX).unwrap();
        assert_eq!(memory[0], 0);
    }
}
