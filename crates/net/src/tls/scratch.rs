//! Memory that the connections of a thread share: records are read, written and put together here.

use std::cell::RefCell;

/// Content that is encrypted at once, bytes: as much as one read takes.
pub(super) const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Records that are read at once, bytes. Behind the begin of a record that came before, there is
/// room for a whole one.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024;

/// The largest record: 2^14 bytes of content, 2048 for what its encryption adds (RFC 5246 §6.2.3;
/// RFC 8446 §5.2 has 256), and its head.
pub(super) const RECORD_BYTES_MAX: usize = (1 << 14) + 2048 + 5;

/// More than what the encryption of a record adds to its content, bytes.
const OVERHEAD_BYTES: usize = 64;

/// Content of a record, bytes.
const FRAGMENT_BYTES: usize = 1 << 14;

/// The memory of a thread.
pub(super) struct Scratch {
    /// Records that were read, or content that is put together.
    pub(super) input: Box<[u8]>,
    /// Records that are to be written.
    pub(super) output: Box<[u8]>,
}

impl Scratch {
    fn new() -> Self {
        let records = WRITE_BYTES_MAX.div_ceil(FRAGMENT_BYTES);
        Self {
            input: vec![0; RECORD_BYTES_MAX + READ_BYTES_MAX].into_boxed_slice(),
            output: vec![0; WRITE_BYTES_MAX + records * OVERHEAD_BYTES].into_boxed_slice(),
        }
    }
}

/// Lends the memory of this thread; not to be called again meanwhile.
pub(super) fn with_scratch<T>(use_it: impl FnOnce(&mut Scratch) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
    }
    SCRATCH.with_borrow_mut(use_it)
}
