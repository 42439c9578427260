//! Loading content from disk into memory, where it is requested often.
//!
//! The response that a request has chosen stays as it is while its content is read; then another
//! one, with its content in memory, takes its place. If it has left meanwhile, was purged or was
//! replaced, the loaded one answers the requests that it was loaded for, and is not stored.

use crate::content::{BLOCK_BYTES, Piece, StoredContent};
use crate::in_flight::content::charged_for;
use crate::memory::MemoryStore;
use crate::shard::{IN_FLIGHT_BYTES, InFlightId, Shard};
use crate::stored::StoredResponse;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_disk::ReadError;
use weir_policy::Digest;
use weir_policy::catalog::{LoadDecision, may_load};

/// Why content is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLoaded {
    /// It is in memory, in the page cache or too large, or the catalog says no.
    NotWanted,
    /// It is wanted, and too much is being loaded or has just arrived.
    NoRoom,
    /// Another request loads it.
    Loading,
}

/// Content that is to be read from disk into memory. Room for it is taken.
#[derive(Debug)]
pub struct ContentLoad {
    store: Arc<MemoryStore>,
    id: InFlightId,
    response: Arc<StoredResponse>,
}

/// A response whose content was read.
#[derive(Clone, Debug)]
pub struct LoadedResponse {
    /// With its content in memory.
    pub response: Arc<StoredResponse>,
    /// Whether it is stored.
    pub is_stored: bool,
}

impl MemoryStore {
    /// Begins to load the content of `response`, which is stored under `primary` and was requested,
    /// if that is to be in memory from now on.
    ///
    /// # Errors
    ///
    /// Why it is not loaded.
    pub fn load(
        self: &Arc<Self>,
        primary: Digest,
        response: &Arc<StoredResponse>,
    ) -> Result<ContentLoad, NotLoaded> {
        let body = &response.body;
        let is_on_disk = body.is_whole() && body.bytes_in_memory() == 0;
        let is_for_memory = may_load(0, body.len()) && self.check_size(body.len()).is_ok();
        if !is_on_disk || !is_for_memory || !body.needs_read() {
            return Err(NotLoaded::NotWanted);
        }
        let id = self.shard(primary).begin_load(primary, response)?;
        let load = self.loading_bytes.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |loading_bytes| may_load(loading_bytes, body.len()).then(|| loading_bytes + body.len()),
        );
        if load.is_err() {
            self.shard(primary).abandon(id);
            return Err(NotLoaded::NoRoom);
        }
        Ok(ContentLoad {
            store: Arc::clone(self),
            id,
            response: Arc::clone(response),
        })
    }
}

impl ContentLoad {
    /// Reads the content, and puts it into memory. How long to wait is the caller's decision:
    /// dropping the future is fine.
    ///
    /// # Errors
    ///
    /// Why it could not be read.
    pub async fn run(self) -> Result<LoadedResponse, ReadError> {
        let former = &self.response.body;
        let mut pieces = Vec::new();
        for extent in former.extents() {
            let mut from = extent.from;
            for block in extent.read_whole(BLOCK).await? {
                let length = block.len() as u64;
                pieces.push(Piece::in_memory(from, block));
                from += length;
            }
        }
        let body = StoredContent::new(pieces, former.complete_length());
        let body = body.with_undelivered(former.undelivered_bytes());
        let response = Arc::new(self.response.with_body(body));
        let mut shard = self.store.shard(self.id.primary());
        let is_stored = shard.end_load(self.id, &self.response, &response);
        drop(shard);
        Ok(LoadedResponse {
            response,
            is_stored,
        })
    }
}

impl Drop for ContentLoad {
    fn drop(&mut self) {
        let content_bytes = self.response.body.len();
        self.store
            .loading_bytes
            .fetch_sub(content_bytes, Ordering::Relaxed);
        self.store.shard(self.id.primary()).abandon(self.id);
    }
}

impl Shard {
    /// Takes room for the content of `response`, which was requested, if it is stored here and is
    /// to be in memory.
    fn begin_load(
        &mut self,
        primary: Digest,
        response: &Arc<StoredResponse>,
    ) -> Result<InFlightId, NotLoaded> {
        let content = charged_for(response.body.len()) as u64;
        let size_bytes = response.charged_bytes() as u64 + content;
        let slot = self.slot_of(primary, response);
        let decision = slot.map(|slot| self.catalog().judge_load(slot, size_bytes));
        if !decision.is_some_and(LoadDecision::is_load) {
            return Err(NotLoaded::NotWanted);
        }
        if self.is_loading(primary) {
            return Err(NotLoaded::Loading);
        }
        let id = self.expect_load(primary, response);
        let id = id.map_err(|_| NotLoaded::NoRoom)?;
        if self.extend(id, IN_FLIGHT_BYTES as u64 + content).is_err() {
            self.abandon(id);
            return Err(NotLoaded::NoRoom);
        }
        Ok(id)
    }

    /// Puts `loaded` into the place of `former`, unless that has left, or may have been purged.
    /// Whether it is stored.
    pub(crate) fn end_load(
        &mut self,
        id: InFlightId,
        former: &Arc<StoredResponse>,
        loaded: &Arc<StoredResponse>,
    ) -> bool {
        let is_outdated = self.is_outdated(id);
        self.abandon(id);
        let loaded = Arc::clone(loaded);
        if !is_outdated && self.replace(id.primary(), former, Arc::clone(&loaded)) {
            return true;
        }
        self.linger(&loaded);
        false
    }
}

/// The size of the blocks of content in memory.
const BLOCK: NonZeroUsize = match NonZeroUsize::new(BLOCK_BYTES) {
    Some(bytes) => bytes,
    None => NonZeroUsize::MIN,
};
