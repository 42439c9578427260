//! First in, first out: the resident that came first leaves, however often it was asked for.
//!
//! The floor of the literature: what any other algorithm must be better than. A hit writes nothing.

use super::Eviction;
use super::list::{Links, NONE, Queue};
use crate::catalog::Slot;
use crate::digest::Digest;

/// FIFO; 8 bytes a slot.
#[derive(Debug, Default)]
pub struct Fifo {
    links: Links,
    queue: Queue,
}

impl Eviction for Fifo {
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

    fn touch(&mut self, _slot: Slot) {}

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

#[cfg(test)]
mod tests {
    use super::super::reference;
    use super::*;

    /// The oldest first; everything by linear search.
    #[derive(Debug, Default)]
    struct Reference(Vec<Slot>);

    impl reference::Naive for Reference {
        fn insert(&mut self, slot: Slot, _key: Digest, _size_bytes: u64) {
            self.0.push(slot);
        }
        fn touch(&mut self, _slot: Slot) {}
        fn resize(&mut self, _slot: Slot, _size_bytes: u64) {}
        fn remove(&mut self, slot: Slot) {
            self.0.retain(|other| *other != slot);
        }
        fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
            let place = self.0.iter().position(|slot| Some(*slot) != spared)?;
            Some(self.0.remove(place))
        }
    }

    #[test]
    fn random_operations_evict_as_the_reference_model_does() {
        reference::compare_random(Fifo::default, Reference::default);
    }

    #[test]
    fn committed_trace_gives_recorded_hits_and_hit_bytes() {
        reference::check_trace(
            Fifo::default,
            Reference::default,
            reference::Counts {
                hits: 11_272,
                hit_bytes: 102_029_141,
            },
        );
    }

    #[test]
    fn oldest_is_evicted_first_despite_hits() {
        let mut fifo = Fifo::default();
        fifo.reserve(3);
        for slot in 0..3 {
            fifo.insert(Slot(slot), Digest(0, slot.into()), 1);
        }
        fifo.touch(Slot(0));
        assert_eq!(fifo.evict(None), Some(Slot(0)));
        assert_eq!(fifo.evict(Some(Slot(1))), Some(Slot(2)));
        assert_eq!(fifo.evict(Some(Slot(1))), None);
        assert_eq!(fifo.evict(None), Some(Slot(1)));
        assert_eq!(fifo.evict(None), None);
    }
}
