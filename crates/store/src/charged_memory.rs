//! Memory that is no part of a response, and is charged as if a response were arriving.

use crate::memory::MemoryStore;
use crate::shard::InFlightId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_policy::catalog::Refusal;
use weir_policy::{Digest, KeyHasher};

/// Spreads what is charged over the shards.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Memory for content that is collected outside of the store, such as by a module that needs the
/// whole of it. It counts as that of in-flight responses: both together keep within
/// [`IN_FLIGHT_PERCENT_MAX`](crate::IN_FLIGHT_PERCENT_MAX) of the budget. It is given back when
/// this is dropped.
#[derive(Debug)]
pub struct ChargedMemory {
    store: Arc<MemoryStore>,
    /// Once something is charged; the digest chooses the shard, and no target has it.
    id: Option<(Digest, InFlightId)>,
    bytes: u64,
}

impl ChargedMemory {
    /// None yet, of the budget of `store`.
    #[must_use]
    pub fn new(store: &Arc<MemoryStore>) -> Self {
        Self {
            store: Arc::clone(store),
            id: None,
            bytes: 0,
        }
    }

    /// None yet, of the same budget.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(&self.store)
    }

    /// Makes sure that there is room for `bytes` in all. Less than before gives none back.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] and [`Refusal::NoRoomInFlight`]; what was charged before stays.
    pub fn hold(&mut self, bytes: u64) -> Result<(), Refusal> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let place = self
            .id
            .map_or_else(|| new_place(&self.store), |(place, _)| place);
        let mut shard = self.store.shard(place);
        let id = match self.id {
            Some((_, id)) => id,
            None => self.id.insert((place, shard.expect(place)?)).1,
        };
        shard.extend(id, bytes)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for ChargedMemory {
    fn drop(&mut self) {
        if let Some((place, id)) = self.id {
            self.store.shard(place).abandon(id);
        }
    }
}

fn new_place(store: &MemoryStore) -> Digest {
    let mut hasher = KeyHasher::new(store.secret());
    hasher.part(b"memory beside responses");
    hasher.number(NEXT.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}
