//! Least recently used, exact: evicts the resident whose last request is the oldest.
//!
//! The reference of the literature (PROXIM and LARD simulate it). Every hit moves the resident to
//! the young end, which is why it is not the default: two links are written where S3-FIFO and SIEVE
//! write one byte.

use super::single_queue::SingleQueue;

/// Exact LRU; 8 bytes a slot.
pub type Lru = SingleQueue<true>;

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
        fn touch(&mut self, slot: Slot) {
            self.remove(slot);
            self.0.push(slot);
        }
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
        reference::compare_random(Lru::default, Reference::default);
    }

    #[test]
    fn committed_trace_gives_recorded_hits_and_hit_bytes() {
        reference::check_trace(
            Lru::default,
            Reference::default,
            reference::Counts {
                hits: 12_351,
                hit_bytes: 111_785_418,
            },
        );
    }

    #[test]
    fn least_recently_used_is_evicted_first() {
        let mut lru = Lru::default();
        lru.reserve(3);
        for slot in 0..3 {
            lru.insert(Slot(slot), Digest(0, slot.into()), 1);
        }
        lru.touch(Slot(0));
        assert_eq!(lru.evict(None), Some(Slot(1)));
        assert_eq!(lru.evict(Some(Slot(2))), Some(Slot(0)));
        assert_eq!(lru.evict(Some(Slot(2))), None);
        assert_eq!(lru.evict(None), Some(Slot(2)));
        assert_eq!(lru.evict(None), None);
    }
}
