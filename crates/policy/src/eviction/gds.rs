//! GreedyDual-Size with cost 1: the response that is the least worth for its bytes is evicted.
//!
//! Cao, Irani: "Cost-Aware WWW Proxy Caching Algorithms", USITS 1997, section 4, `GD-Size(1)`: each
//! miss costs the same, so that the hit ratio of requests is what counts. A response of `s` bytes
//! has the value H = L + 1/s from its last request on; the one of the least H is evicted, and L
//! becomes its H. So what is not requested any more is passed by what comes, the larger the sooner.
//!
//! H is counted in whole numbers, 1/s in parts of 2^40, so that the same requests evict the same on
//! every machine. Of equal H the one whose last request is older is evicted: responses of one size
//! leave as by LRU.

use super::Eviction;
use super::{heap_bytes, lengthen, shorten};
use crate::catalog::Slot;
use crate::digest::Digest;
use alloc::vec::Vec;

/// What a response of one byte is worth; one of more bytes the part that it is of it.
const WORTH_OF_ONE_BYTE: u64 = 1 << 40;

/// L from which all values are lowered by it: far below what a number holds.
const INFLATION_MAX: u64 = 1 << 62;

/// GreedyDual-Size; 32 bytes a slot.
#[derive(Debug, Default)]
pub struct Gds {
    /// By slot; `heap` by place in the heap.
    entries: Vec<Entry>,
    residents: usize,
    /// L: the value of the last victim.
    inflation: u64,
    requests: u64,
}

/// A slot with its value, and the slot at this place of the heap.
#[derive(Clone, Copy, Debug)]
struct Entry {
    value: Value,
    worth: u64,
    /// Where the slot is in the heap.
    place: u32,
    /// The slot that is at this place of the heap: the smallest value at place 0, that of place i
    /// no larger than those of 2i + 1 and 2i + 2.
    slot: u32,
}

/// H, and the number of the request that it is from.
type Value = (u64, u64);

const VACANT: Entry = Entry {
    value: (0, 0),
    worth: 0,
    place: 0,
    slot: 0,
};

const fn worth(size_bytes: u64) -> u64 {
    match size_bytes {
        0 => WORTH_OF_ONE_BYTE,
        size_bytes => WORTH_OF_ONE_BYTE / size_bytes,
    }
}

impl Gds {
    fn slot_at(&self, place: usize) -> u32 {
        self.entries[place].slot
    }

    fn value_at(&self, place: usize) -> Value {
        self.entries[self.slot_at(place) as usize].value
    }

    #[expect(clippy::cast_possible_truncation, reason = "no more than slots")]
    fn set(&mut self, place: usize, slot: u32) {
        self.entries[place].slot = slot;
        self.entries[slot as usize].place = place as u32;
    }

    fn exchange(&mut self, place: usize, other: usize) {
        let (slot, others) = (self.slot_at(place), self.slot_at(other));
        self.set(place, others);
        self.set(other, slot);
    }

    /// The slot has been requested.
    fn renew(&mut self, slot: u32) {
        self.requests += 1;
        let entry = &mut self.entries[slot as usize];
        entry.value = (self.inflation + entry.worth, self.requests);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.value_at(parent) <= self.value_at(place) {
                return;
            }
            self.exchange(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        while let Some(child) = self.lesser_child(place) {
            if self.value_at(place) <= self.value_at(child) {
                return;
            }
            self.exchange(place, child);
            place = child;
        }
    }

    /// The place below `place` with the least value.
    fn lesser_child(&self, place: usize) -> Option<usize> {
        let children = [2 * place + 1, 2 * place + 2].into_iter();
        let children = children.filter(|child| *child < self.residents);
        children.min_by_key(|child| self.value_at(*child))
    }

    fn take(&mut self, place: usize) -> u32 {
        let slot = self.slot_at(place);
        self.residents -= 1;
        if place < self.residents {
            let last = self.slot_at(self.residents);
            self.set(place, last);
            self.rise(place);
            self.sink(self.entries[last as usize].place as usize);
        }
        slot
    }

    /// Lowers all values, so that they never overflow. Their order stays.
    fn deflate(&mut self) {
        for place in 0..self.residents {
            let slot = self.slot_at(place) as usize;
            let value = &mut self.entries[slot].value;
            value.0 = value.0.saturating_sub(self.inflation);
        }
        self.inflation = 0;
    }
}

impl Eviction for Gds {
    fn reserve(&mut self, slots: usize) {
        lengthen(&mut self.entries, slots, VACANT);
    }

    fn shrink(&mut self, slots: usize) {
        shorten(&mut self.entries, slots);
    }

    fn bytes_for(&self, slots: usize) -> u64 {
        (slots * size_of::<Entry>()) as u64
    }

    fn insert(&mut self, slot: Slot, _key: Digest, size_bytes: u64) {
        self.entries[slot.index()].worth = worth(size_bytes);
        self.renew(slot.0);
        let place = self.residents;
        self.residents += 1;
        self.set(place, slot.0);
        self.rise(place);
    }

    fn touch(&mut self, slot: Slot) {
        self.renew(slot.0);
        // it may be worth less, if it has grown
        self.rise(self.entries[slot.index()].place as usize);
        self.sink(self.entries[slot.index()].place as usize);
    }

    fn resize(&mut self, slot: Slot, size_bytes: u64) {
        self.entries[slot.index()].worth = worth(size_bytes);
    }

    fn remove(&mut self, slot: Slot) {
        self.take(self.entries[slot.index()].place as usize);
    }

    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let is_spared = |place: usize| spared == Some(Slot(self.slot_at(place)));
        let place = match self.residents {
            0 => return None,
            _ if is_spared(0) => self.lesser_child(0)?,
            _ => 0,
        };
        self.inflation = self.value_at(place).0;
        let victim = self.take(place);
        if self.inflation > INFLATION_MAX {
            self.deflate();
        }
        Some(Slot(victim))
    }

    fn residents(&self) -> usize {
        self.residents
    }

    fn overhead_bytes(&self) -> u64 {
        heap_bytes(&self.entries)
    }

    fn debug_check(&self) {
        for place in 0..self.residents {
            let slot = self.slot_at(place);
            assert_eq!(
                self.entries[slot as usize].place as usize, place,
                "slot {slot} is not where it says"
            );
            assert!(
                place == 0 || self.value_at((place - 1) / 2) <= self.value_at(place),
                "slot {slot} is worth less than the one above it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lru::Lru;
    use super::super::reference;
    use super::*;

    /// The oldest request first, with H and the size.
    #[derive(Debug, Default)]
    struct Reference {
        list: Vec<(Slot, u64, u64)>,
        inflation: u64,
    }

    impl Reference {
        fn place(&self, slot: Slot) -> usize {
            self.list.iter().position(|entry| entry.0 == slot).unwrap()
        }
    }

    impl reference::Naive for Reference {
        fn insert(&mut self, slot: Slot, _key: Digest, size_bytes: u64) {
            let value = self.inflation + (1 << 40) / size_bytes.max(1);
            self.list.push((slot, value, size_bytes));
        }
        fn touch(&mut self, slot: Slot) {
            let (slot, _, size_bytes) = self.list.remove(self.place(slot));
            self.insert(slot, Digest(0, 0), size_bytes);
        }
        fn resize(&mut self, slot: Slot, size_bytes: u64) {
            let place = self.place(slot);
            self.list[place].2 = size_bytes;
        }
        fn remove(&mut self, slot: Slot) {
            self.list.remove(self.place(slot));
        }
        fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
            let others = self.list.iter().enumerate();
            let others = others.filter(|(_, entry)| Some(entry.0) != spared);
            // the first of equal ones
            let (place, _) = others.min_by_key(|(_, entry)| entry.1)?;
            let (slot, value, _) = self.list.remove(place);
            self.inflation = value;
            Some(slot)
        }
    }

    #[test]
    fn random_operations_evict_as_the_reference_model_does() {
        reference::compare_random(Gds::default, Reference::default);
    }

    #[test]
    fn committed_trace_gives_recorded_hits_and_hit_bytes() {
        reference::check_trace(
            Gds::default,
            Reference::default,
            reference::Counts {
                hits: 13_093,
                hit_bytes: 109_548_895,
            },
        );
    }

    fn filled(sizes: &[u64]) -> Gds {
        let mut gds = Gds::default();
        gds.reserve(sizes.len());
        for (slot, size_bytes) in (0..).zip(sizes) {
            gds.insert(Slot(slot), Digest(0, slot.into()), *size_bytes);
        }
        gds
    }

    #[test]
    fn larger_response_is_evicted_first_and_a_small_one_ages() {
        let mut gds = filled(&[100, 5000, 1000]);
        assert_eq!(gds.evict(None), Some(Slot(1)));
        // L is 1/5000: what has 900 bytes comes with more than 1/1000
        gds.insert(Slot(1), Digest(0, 1), 900);
        assert_eq!(gds.evict(None), Some(Slot(2)));
        assert_eq!(gds.evict(None), Some(Slot(1)));
        // L is 1/5000 + 1/900: with 1/120 it is still less than 1/100
        gds.insert(Slot(1), Digest(0, 1), 120);
        assert_eq!(gds.evict(None), Some(Slot(1)));
        assert_eq!(gds.evict(Some(Slot(0))), None);
        assert_eq!(gds.evict(None), Some(Slot(0)));
        assert_eq!(gds.evict(None), None);
    }

    #[test]
    fn responses_of_one_size_are_evicted_as_by_lru() {
        let mut random = reference::Random::new(7);
        let (mut gds, mut lru) = (filled(&[7; 50]), Lru::default());
        lru.reserve(50);
        (0..50).for_each(|slot| lru.insert(Slot(slot), Digest(0, 0), 7));
        for _ in 0..2000 {
            let slot = Slot(u32::try_from(random.below(50)).unwrap());
            gds.touch(slot);
            lru.touch(slot);
            if random.below(3) == 0 {
                let victim = gds.evict(None).unwrap();
                assert_eq!(lru.evict(None), Some(victim));
                gds.insert(victim, Digest(0, 0), 7);
                lru.insert(victim, Digest(0, 0), 7);
            }
        }
    }

    #[test]
    fn values_are_lowered_before_they_overflow_and_keep_their_order() {
        let mut gds = filled(&[1, 2, 3]);
        gds.inflation = INFLATION_MAX;
        gds.touch(Slot(2));
        gds.touch(Slot(0));
        gds.touch(Slot(1));
        assert_eq!(gds.evict(None), Some(Slot(2)));
        assert_eq!(gds.inflation, 0, "lowered by the value of the victim");
        gds.debug_check();
        assert_eq!(gds.evict(None), Some(Slot(1)));
        assert_eq!(gds.evict(None), Some(Slot(0)));
    }
}
