//! The memory of large content, counted until its last reader drops it.
//!
//! A stored response can be evicted while clients read it. Its blocks are freed when the last
//! reader drops them; until then they stay in the account of the shard. Dropping them does not lock
//! the shard: the freed bytes are added up in a counter beside it, and subtracted when room is
//! needed next.
//!
//! Content of up to
//! [`UNPINNED_CONTENT_BYTES_MAX`](weir_policy::catalog::UNPINNED_CONTENT_BYTES_MAX) has none of
//! this unless it is in a file in memory, from where sockets have it after its response: it is in
//! the account of the connection that reads it. Nor have blocks that wait to be
//! written to disk: the queue of the disk has a limit of its own.

use crate::charge::{COUNTS_BYTES, allocated_bytes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of memory it takes itself.
pub(crate) const PIECE_MEMORY_BYTES: usize =
    allocated_bytes(COUNTS_BYTES + size_of::<PieceMemory>());

/// Bytes of memory that were given back by responses that had left.
pub(crate) type GivenBack = Arc<AtomicU64>;

/// Stands for the memory of pieces, and is shared with them.
#[derive(Debug)]
pub(crate) struct PieceMemory {
    /// How much it is.
    pub(crate) bytes: usize,
    /// Where it is given back, once its response was evicted.
    given_back: OnceLock<GivenBack>,
}

impl PieceMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            given_back: OnceLock::new(),
        }
    }

    /// Its response was evicted: `given_back` grows by its bytes when the last holder drops them.
    /// Returns `false` if that was set before.
    pub(crate) fn linger(&self, given_back: &GivenBack) -> bool {
        self.given_back.set(Arc::clone(given_back)).is_ok()
    }
}

impl Drop for PieceMemory {
    fn drop(&mut self) {
        if let Some(given_back) = self.given_back.get() {
            given_back.fetch_add(self.bytes as u64, Ordering::Relaxed);
        }
    }
}
