//! First in, first out: evicts the oldest resident, however often it was requested.
//!
//! The floor of the literature: what any other algorithm must be better than. A hit writes nothing.

use super::single_queue::SingleQueue;

/// FIFO; 8 bytes a slot.
pub type Fifo = SingleQueue<false>;

#[cfg(test)]
mod tests {
    use super::super::{Eviction, reference};
    use super::*;
    use crate::catalog::Slot;
    use crate::digest::Digest;

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
