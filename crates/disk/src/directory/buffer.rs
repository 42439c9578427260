//! Memory to read into, made once a thread: nothing is allocated or zeroed for a read.

use crate::files::DIRECT_BYTES;
use std::cell::RefCell;
use std::ops::Range;

/// What a thread keeps between two reads, in bytes: the longest first read of a record, with what a read past the page cache takes
/// around it. What was longer is given back.
const KEPT_BYTES_MAX: usize = 96 * 1024;

/// It grows in steps of so many bytes, so that it does so a few times only.
const STEP_BYTES: usize = 16 * 1024;

thread_local! {
    static BUFFER: RefCell<Buffer> = RefCell::default();
}

/// Memory that begins where a read past the page cache may begin.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// The first `len` bytes; what is in them is of no account.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len + DIRECT_BYTES {
            // not grown: what is in it need not be kept
            self.0 = Vec::new();
            self.0 = vec![0; (len + DIRECT_BYTES).next_multiple_of(STEP_BYTES)];
        }
        let begin = self.0.as_ptr().align_offset(DIRECT_BYTES);
        &mut self.0[begin..begin + len]
    }

    /// What was read into the first bytes.
    pub(crate) fn bytes(&self, there: &Range<usize>) -> &[u8] {
        let begin = self.0.as_ptr().align_offset(DIRECT_BYTES);
        &self.0[begin + there.start..begin + there.end]
    }

    /// Calls `read` with this thread's buffer.
    pub(crate) fn with<T>(read: impl FnOnce(&mut Self) -> T) -> T {
        BUFFER.with_borrow_mut(|buffer| {
            let done = read(buffer);
            if buffer.0.len() > KEPT_BYTES_MAX {
                *buffer = Self::default();
            }
            done
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_too_small_or_begins_where_a_device_cannot_write() {
        for len in [0, 1, 4095, 4096, 80_000, KEPT_BYTES_MAX, 1_000_000, 10] {
            Buffer::with(|buffer| {
                let room = buffer.room(len);
                assert_eq!(room.len(), len);
                assert!(room.as_ptr().addr().is_multiple_of(DIRECT_BYTES), "{len}");
            });
            let kept = BUFFER.with_borrow(|buffer| buffer.0.len());
            assert!(kept <= KEPT_BYTES_MAX, "{len}: {kept}");
        }
    }
}
