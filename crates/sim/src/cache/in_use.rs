//! Content that requests read: it is not evicted, and counts until the last of them lets go, as in
//! the live store.
//!
//! Only large content is followed ([`UNPINNED_CONTENT_BYTES_MAX`]), and only while a reader reads
//! it.

use super::{Cache, Which};
use std::collections::hash_map::Entry as Place;
use weir_policy::Digest;
use weir_policy::catalog::{Slot, UNPINNED_CONTENT_BYTES_MAX};

/// Names content: a stored response that is freshened keeps it, one that takes its place has
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentId(pub(super) u64);

/// Content that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct InUse {
    /// Its length.
    bytes: u64,
    readers: u32,
    /// It was evicted or refused: its bytes are held beside the store.
    lingers: bool,
}

impl Cache {
    /// A reader begins to read a stored response, to [end](Self::end_use) later; `None` if that
    /// is not followed.
    pub(crate) fn begin_use(&mut self, which: Which) -> Option<ContentId> {
        let entry = self.at(which.slot)?;
        let (content, bytes) = (entry.content, entry.stored.content_bytes());
        if entry.number != which.number || bytes <= UNPINNED_CONTENT_BYTES_MAX {
            return None;
        }
        let in_use = self.in_use.entry(content.0).or_insert(InUse {
            bytes,
            readers: 0,
            lingers: false,
        });
        in_use.readers += 1;
        Some(content)
    }

    /// The same for content of `bytes` that was not taken in and is read all the same.
    pub(crate) fn begin_use_unstored(&mut self, bytes: u64) -> Option<ContentId> {
        if bytes <= UNPINNED_CONTENT_BYTES_MAX {
            return None;
        }
        self.numbers += 1;
        let content = ContentId(self.numbers);
        let in_use = InUse {
            bytes,
            readers: 1,
            lingers: true,
        };
        self.in_use.insert(content.0, in_use);
        self.linger(bytes);
        Some(content)
    }

    /// A reader has read what there is to read.
    pub(crate) fn end_use(&mut self, content: ContentId) {
        let Place::Occupied(mut place) = self.in_use.entry(content.0) else {
            debug_assert!(false, "{content:?} is not in use");
            return;
        };
        place.get_mut().readers -= 1;
        if place.get().readers > 0 {
            return;
        }
        let InUse { bytes, lingers, .. } = place.remove();
        if lingers {
            self.lingering_bytes -= bytes;
            self.catalog.release(bytes);
        }
    }

    /// A stored response is removed: if it is read, its content still counts.
    pub(super) fn leave(&mut self, content: ContentId) {
        if let Some(in_use) = self.in_use.get_mut(&content.0) {
            in_use.lingers = true;
            let bytes = in_use.bytes;
            self.linger(bytes);
        }
    }

    fn linger(&mut self, bytes: u64) {
        self.lingering_bytes += bytes;
        self.catalog.keep_held(bytes);
    }

    /// Bytes of content that is not stored any more, or was not taken in, and is still read.
    #[cfg(test)]
    pub(crate) const fn lingering_bytes(&self) -> u64 {
        self.lingering_bytes
    }
}

/// The key of the entry in `slot`, if it is in use.
pub(super) fn key_in_use(
    entries: &[Option<super::Entry>],
    in_use: &super::ByNumber<InUse>,
    slot: Slot,
) -> Option<Digest> {
    let entry = entries.get(slot.index())?.as_ref()?;
    let is_in_use = in_use.contains_key(&entry.content.0);
    is_in_use.then(|| super::digest(entry.stored.target, 0))
}
