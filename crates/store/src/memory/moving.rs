//! Moving content that is requested again from blocks to a file in memory, from where a socket is
//! sent it without a copy.
//!
//! The response that a request has chosen stays as it is; another one, with its content in the
//! file, takes its place. While both are there both are in the account.

use crate::content::file::{FileFault, MemoryFile};
use crate::content::range_bytes;
use crate::memory::MemoryStore;
use crate::shard::{IN_FLIGHT_BYTES, InFlightId, Shard};
use crate::stored::StoredResponse;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use weir_policy::Digest;

/// Content of so many bytes is moved: of less the copy costs no more than what is saved by each
/// response, and more would keep the other connections of a worker waiting for milliseconds.
const MOVED_BYTES: RangeInclusive<u64> = 32 * 1024..=8 * 1024 * 1024;

impl MemoryStore {
    /// From now on content can be moved to a file in memory.
    ///
    /// # Errors
    ///
    /// The system gives no such file; content stays where it is.
    pub fn open_file(&mut self) -> io::Result<()> {
        let file = MemoryFile::new(self.budget_bytes())?;
        self.file = Some(Arc::new(file));
        Ok(())
    }

    /// Why no content moves to the file any more, or `None` inside if it does again: once for each
    /// change, and to one caller.
    pub fn take_file_news(&self) -> Option<Option<FileFault>> {
        self.file.as_ref()?.take_news()
    }

    /// The response whose content is that of `response`, which is stored under `primary`, in a
    /// file, and takes its place. `None` if it stays as it is: it is there already, is not whole or
    /// on its way to the disk, is too small or too large, or there is no room.
    pub fn move_to_file(
        &self,
        primary: Digest,
        response: &Arc<StoredResponse>,
    ) -> Option<Arc<StoredResponse>> {
        let file = self.file.as_ref()?;
        let body = &response.body;
        let is_movable = body.is_whole() && body.is_in_memory() && !body.is_in_file();
        if !is_movable || !MOVED_BYTES.contains(&body.len()) || !file.is_usable() {
            return None;
        }
        if self.disk.is_some() && self.write_behind.has(response) {
            return None;
        }
        let id = self.shard(primary).begin_move(primary, response, file)?;
        let moved = copy(file, response);
        let mut shard = self.shard(primary);
        let moved = match moved {
            // a validation that began meanwhile knows the one that was chosen
            Some(moved) if !shard.is_validated(id.primary(), Some(id)) => moved,
            not_moved => {
                shard.abandon(id);
                drop(shard);
                drop(not_moved);
                return None;
            }
        };
        let is_stored = shard.end_load(id, response, &moved);
        // its memory is given back when no lock is held
        drop(shard);
        is_stored.then_some(moved)
    }
}

/// The same response with its content in `file`.
fn copy(file: &Arc<MemoryFile>, response: &StoredResponse) -> Option<Arc<StoredResponse>> {
    let body = &response.body;
    let len = usize::try_from(body.len()).ok()?;
    let blocks = body.pieces().iter().filter_map(|piece| piece.block());
    let range = file.store(len, blocks.map(|block| &block[..]))?;
    Some(Arc::new(response.with_body(body.in_file(range))))
}

impl Shard {
    /// Takes room for the content of `response` in `file`, if it is stored here.
    fn begin_move(
        &mut self,
        primary: Digest,
        response: &Arc<StoredResponse>,
        file: &MemoryFile,
    ) -> Option<InFlightId> {
        let is_at_rest = !self.is_loading(primary) && !self.is_validated(primary, None);
        if !self.holds(primary, response) || !is_at_rest {
            return None;
        }
        let id = self.expect_load(primary, response).ok()?;
        let content = range_bytes(file.charged_bytes(response.body.len())) as u64;
        if self.extend(id, IN_FLIGHT_BYTES as u64 + content).is_err() {
            self.abandon(id);
            return None;
        }
        Some(id)
    }
}
