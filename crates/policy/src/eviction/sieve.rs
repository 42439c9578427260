//! SIEVE: one queue, one bit, one hand.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
//! Algorithm for Web Caches", NSDI 2024, algorithm 1. A hit sets the bit. To make room, the hand
//! advances from the oldest towards the newest, clears set bits and evicts the first resident
//! without one. It stays there, so that new entries are examined soon. Past the newest it starts
//! again at the oldest.

use super::Eviction;
use super::list::{Links, NONE, Queue};
use super::{heap_bytes, lengthen, shorten};
use crate::catalog::Slot;
use crate::digest::Digest;
use alloc::vec::Vec;

/// SIEVE; 9 bytes a slot.
#[derive(Debug)]
pub struct Sieve {
    links: Links,
    visited: Vec<bool>,
    queue: Queue,
    /// Where the search continues; [`NONE`]: at the oldest.
    hand: u32,
}

impl Default for Sieve {
    fn default() -> Self {
        Self {
            links: Links::default(),
            visited: Vec::new(),
            queue: Queue::default(),
            hand: NONE,
        }
    }
}

impl Sieve {
    fn unlink(&mut self, slot: u32) {
        if self.hand == slot {
            self.hand = self.links.newer(slot);
        }
        self.queue.unlink(&mut self.links, slot);
    }
}

impl Eviction for Sieve {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        lengthen(&mut self.visited, slots, false);
    }

    fn shrink(&mut self, slots: usize) {
        self.links.shrink(slots);
        shorten(&mut self.visited, slots);
    }

    fn bytes_for(&self, slots: usize) -> u64 {
        slots as u64 * (Links::BYTES_PER_SLOT + size_of::<bool>() as u64)
    }

    fn insert(&mut self, slot: Slot, _key: Digest, _size_bytes: u64) {
        self.visited[slot.index()] = false;
        self.queue.push(&mut self.links, slot.0);
    }

    fn touch(&mut self, slot: Slot) {
        self.visited[slot.index()] = true;
    }

    fn resize(&mut self, _slot: Slot, _size_bytes: u64) {}

    fn remove(&mut self, slot: Slot) {
        self.unlink(slot.0);
    }

    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let spared = spared.map_or(NONE, |slot| slot.0);
        if self.queue.holds_only(spared) {
            return None;
        }
        // Ends: a round clears every bit but that of `spared`, and there is another than `spared`.
        loop {
            if self.hand == NONE {
                self.hand = self.queue.oldest();
            }
            let slot = self.hand;
            if slot == spared || core::mem::take(&mut self.visited[slot as usize]) {
                self.hand = self.links.newer(slot);
            } else {
                self.unlink(slot);
                return Some(Slot(slot));
            }
        }
    }

    fn residents(&self) -> usize {
        self.queue.len()
    }

    fn overhead_bytes(&self) -> u64 {
        self.links.heap_bytes() + heap_bytes(&self.visited)
    }

    fn debug_check(&self) {
        let slots = self.queue.checked_slots(&self.links);
        assert!(
            self.hand == NONE || slots.contains(&self.hand),
            "the hand points outside the queue"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference;
    use super::*;

    /// The oldest first; the hand is an index into the list.
    #[derive(Debug, Default)]
    struct Reference {
        list: Vec<(Slot, bool)>,
        hand: usize,
    }

    impl Reference {
        fn place(&self, slot: Slot) -> usize {
            self.list.iter().position(|entry| entry.0 == slot).unwrap()
        }
        fn take(&mut self, place: usize) -> Slot {
            if place < self.hand {
                self.hand -= 1;
            }
            self.list.remove(place).0
        }
    }

    impl reference::Naive for Reference {
        fn insert(&mut self, slot: Slot, _key: Digest, _size_bytes: u64) {
            // A hand past the newest is at the oldest: it must not wait for the next arrival.
            if self.hand == self.list.len() {
                self.hand = 0;
            }
            self.list.push((slot, false));
        }
        fn touch(&mut self, slot: Slot) {
            let place = self.place(slot);
            self.list[place].1 = true;
        }
        fn resize(&mut self, _slot: Slot, _size_bytes: u64) {}
        fn remove(&mut self, slot: Slot) {
            let place = self.place(slot);
            self.take(place);
        }
        fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
            if self.list.iter().all(|entry| Some(entry.0) == spared) {
                return None;
            }
            loop {
                if self.hand >= self.list.len() {
                    self.hand = 0;
                }
                let (slot, visited) = self.list[self.hand];
                if Some(slot) == spared {
                    self.hand += 1;
                } else if visited {
                    self.list[self.hand].1 = false;
                    self.hand += 1;
                } else {
                    return Some(self.take(self.hand));
                }
            }
        }
    }

    #[test]
    fn random_operations_evict_as_the_reference_model_does() {
        reference::compare_random(Sieve::default, Reference::default);
    }

    #[test]
    fn committed_trace_gives_recorded_hits_and_hit_bytes() {
        reference::check_trace(
            Sieve::default,
            Reference::default,
            reference::Counts {
                hits: 13_980,
                hit_bytes: 123_932_658,
            },
        );
    }

    fn filled(slots: u32) -> Sieve {
        let mut sieve = Sieve::default();
        sieve.reserve(slots as usize);
        for slot in 0..slots {
            sieve.insert(Slot(slot), Digest(0, slot.into()), 1);
        }
        sieve
    }

    #[test]
    fn unvisited_resident_is_evicted_before_visited_one() {
        let mut sieve = filled(4);
        sieve.touch(Slot(0));
        sieve.touch(Slot(2));
        assert_eq!(sieve.evict(None), Some(Slot(1)));
        // The hand stays: it does not go back to slot 0, whose bit it has cleared.
        assert_eq!(sieve.evict(None), Some(Slot(3)));
        assert_eq!(sieve.evict(None), Some(Slot(0)));
        assert_eq!(sieve.evict(None), Some(Slot(2)));
        assert_eq!(sieve.evict(None), None);
    }

    #[test]
    fn hand_advances_when_its_resident_is_removed() {
        let mut sieve = filled(4);
        sieve.touch(Slot(0));
        assert_eq!(sieve.evict(None), Some(Slot(1)));
        sieve.remove(Slot(2));
        sieve.debug_check();
        assert_eq!(sieve.evict(None), Some(Slot(3)));
        assert_eq!(sieve.evict(Some(Slot(0))), None);
    }
}
