//! Memory that is read into.

use super::DIRECT_BYTES;
use std::ops::Range;

/// It grows in steps of so many bytes, so that it does so a few times only.
const STEP_BYTES: usize = 16 * 1024;

/// Bytes that begin where a read past the page cache may begin. They stay where they are when this
/// moves.
#[derive(Debug, Default)]
pub struct Memory(Vec<u8>);

impl Memory {
    /// The first `len` bytes; what is in them is of no account. Makes what is not there.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len + DIRECT_BYTES {
            // not grown: what is in it need not be kept
            self.0 = Vec::new();
            self.0 = vec![0; (len + DIRECT_BYTES).next_multiple_of(STEP_BYTES)];
        }
        let begin = self.begin();
        &mut self.0[begin..begin + len]
    }

    /// What was read.
    ///
    /// # Panics
    /// If `there` was never room.
    #[must_use]
    pub fn bytes(&self, there: &Range<usize>) -> &[u8] {
        let begin = self.begin();
        &self.0[begin + there.start..begin + there.end]
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.len()
    }

    fn begin(&self) -> usize {
        self.0.as_ptr().align_offset(DIRECT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_buffer_has_the_requested_length_and_device_alignment() {
        let mut memory = Memory::default();
        for len in [0, 1, 4095, 4096, 80_000, 1_000_000, 10] {
            let room = memory.room(len);
            assert_eq!(room.len(), len);
            assert!(room.as_ptr().addr().is_multiple_of(DIRECT_BYTES), "{len}");
            room.fill(7);
            assert_eq!(memory.bytes(&(0..len)), vec![7; len]);
        }
    }
}
