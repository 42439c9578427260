//! The readers and their places.

use super::types::ReaderId;
use crate::fetch::byte_span::ByteSpan;
use alloc::collections::{BTreeMap, BTreeSet};

/// A reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// The first byte of its span.
    from: u64,
    /// The next byte it needs.
    pub(super) at: u64,
    /// The end of its span; open: the end of the content.
    pub(super) to: u64,
}

impl Reader {
    /// Whether it was given content.
    pub(super) const fn has_begun(&self) -> bool {
        self.at > self.from
    }
}

/// The readers, also in the order of their places, to find the fastest without a search.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    all: BTreeMap<ReaderId, Reader>,
    places: BTreeSet<(u64, ReaderId)>,
    next: u32,
}

impl Readers {
    pub(super) fn attach(&mut self, wants: ByteSpan) -> ReaderId {
        let id = ReaderId(self.next);
        self.next = self.next.wrapping_add(1);
        self.all.insert(
            id,
            Reader {
                from: wants.from,
                at: wants.from,
                to: wants.to,
            },
        );
        self.places.insert((wants.from, id));
        id
    }

    pub(super) fn leave(&mut self, id: ReaderId) -> Option<Reader> {
        let reader = self.all.remove(&id)?;
        self.places.remove(&(reader.at, id));
        Some(reader)
    }

    /// Moves a reader on; never back.
    pub(super) fn moved(&mut self, id: ReaderId, at: u64) {
        let Some(reader) = self.all.get_mut(&id) else {
            return;
        };
        if at > reader.at {
            self.places.remove(&(reader.at, id));
            reader.at = at;
            self.places.insert((at, id));
        }
    }

    pub(super) fn get(&self, id: ReaderId) -> Option<Reader> {
        self.all.get(&id).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Reader> {
        self.all.values().copied()
    }

    /// The places of the slowest and of the fastest, without a search.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        let (slowest, _) = self.places.first()?;
        let (fastest, _) = self.places.last()?;
        Some((*slowest, *fastest))
    }

    /// The most advanced reader in `places` that needs more than is present before `beyond`.
    pub(super) fn fastest(&self, places: ByteSpan, beyond: u64) -> Option<(ReaderId, Reader)> {
        let range = (places.from, ReaderId(0))..(places.to, ReaderId(0));
        self.places
            .range(range)
            .rev()
            .filter_map(|&(_, id)| self.all.get(&id).map(|reader| (id, *reader)))
            .find(|(_, reader)| reader.to > reader.at.max(beyond))
    }
}
