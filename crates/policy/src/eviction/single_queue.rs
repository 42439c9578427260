//! One queue whose oldest resident is evicted: LRU, if a hit moves a resident to the young end,
//! else FIFO.

use super::Eviction;
use super::list::{Links, NONE, Queue};
use crate::catalog::Slot;
use crate::digest::Digest;

/// The residents in one queue; 8 bytes a slot.
#[derive(Debug, Default)]
pub struct SingleQueue<const MOVES_ON_HIT: bool> {
    links: Links,
    queue: Queue,
}

impl<const MOVES_ON_HIT: bool> Eviction for SingleQueue<MOVES_ON_HIT> {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
    }

    fn shrink(&mut self, slots: usize) {
        self.links.shrink(slots);
    }

    fn bytes_for(&self, slots: usize) -> u64 {
        slots as u64 * Links::BYTES_PER_SLOT
    }

    fn insert(&mut self, slot: Slot, _key: Digest, _size_bytes: u64) {
        self.queue.push(&mut self.links, slot.0);
    }

    fn touch(&mut self, slot: Slot) {
        if MOVES_ON_HIT {
            self.queue.unlink(&mut self.links, slot.0);
            self.queue.push(&mut self.links, slot.0);
        }
    }

    fn resize(&mut self, _slot: Slot, _size_bytes: u64) {}

    fn remove(&mut self, slot: Slot) {
        self.queue.unlink(&mut self.links, slot.0);
    }

    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let mut victim = self.queue.oldest();
        if victim != NONE && spared == Some(Slot(victim)) {
            victim = self.links.newer(victim);
        }
        if victim == NONE {
            return None;
        }
        self.queue.unlink(&mut self.links, victim);
        Some(Slot(victim))
    }

    fn residents(&self) -> usize {
        self.queue.len()
    }

    fn overhead_bytes(&self) -> u64 {
        self.links.heap_bytes()
    }

    fn debug_check(&self) {
        self.queue.checked_slots(&self.links);
    }
}
