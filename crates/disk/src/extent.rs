//! A stretch of content on disk, and how it leaves.

use crate::ReadError;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A stretch of a stored content. Cloning is cheap; it keeps its segment readable, also when that was evicted.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Offset of its first byte in the content.
    pub from: u64,
    /// Bytes.
    pub len: u32,
}

impl Extent {
    /// Its segment was evicted: it stays readable for who holds it and is found by nobody else. Can change at any time.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        true
    }

    /// From offset `at` of the content to the end of the verified chunk that holds it, if that can be had without
    /// waiting for the device; at most `max` bytes.
    #[must_use]
    pub fn read_now(&self, at: u64, max: usize) -> Option<Result<Arc<[u8]>, ReadError>> {
        let _ = (at, max);
        None
    }

    /// From offset `at` of the content to the end of the verified chunk that holds it (at most 64 KiB). How long to
    /// wait is the caller's decision: dropping the future is fine.
    ///
    /// # Errors
    /// Why it could not be read; [`ReadError::Damaged`] has been counted and the record's entry forgotten.
    pub async fn read(&self, at: u64) -> Result<Arc<[u8]>, ReadError> {
        let _ = at;
        Err(ReadError::Gone)
    }

    /// What `sendfile` may send from offset `at` on, at most `max` bytes: it is in the page cache and was verified since it
    /// came there. `None`: read it.
    #[must_use]
    pub fn sendable(&self, at: u64, max: u64) -> Option<SendPiece> {
        let _ = (at, max);
        None
    }
}

/// Bytes of a file that may be sent as they are.
#[derive(Clone, Debug)]
pub struct SendPiece {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, at least one.
    pub len: u64,
    file: Arc<std::fs::File>,
}

impl SendPiece {
    /// The file; open as long as this piece lives.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.file.as_fd()
    }
}
