//! The ghost queue: keys and sizes of the last evictions from small, nothing of the responses.
//!
//! A ring of keys in the order of their eviction, and a table from key to place in the ring (open
//! addressing, linear probing, deletion by shifting back, so that no tombstones gather). Keys are
//! halves of a keyed digest: a client cannot choose keys that crowd one part of the table, and two
//! keys meet with a chance of 2^-64. The place of a key that is taken back stays empty until the
//! ring reaches it; its size counts no more.

use super::super::heap_bytes;
use alloc::vec;
use alloc::vec::Vec;

/// No place in the ring: a free cell of the table.
const EMPTY: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Ghost {
    /// Keys in order of eviction, from `first` on, `held` of them, going round.
    ring: Vec<u64>,
    /// The size of each, 0 of those that were taken back.
    units: Vec<u32>,
    /// Their sum.
    held_units: u64,
    first: usize,
    held: usize,
    /// Places in `ring`; always with free cells.
    table: Vec<u32>,
}

impl Ghost {
    /// Remembers `key`, of `units`, as the last evicted, and of the former ones so many that all
    /// are of `limit_units` at most; none that is larger than that.
    ///
    /// As many are remembered as was reserved for, however small they are.
    pub(super) fn push(&mut self, key: u64, units: u32, limit_units: u64) {
        // Two residents may have had one key while one replaced the other: the later eviction
        // counts.
        self.take(key);
        let room = limit_units.checked_sub(u64::from(units));
        let Some(room) = room.filter(|_| !self.ring.is_empty()) else {
            return;
        };
        while self.held == self.ring.len() || self.held_units > room {
            self.forget_oldest();
        }
        let place = self.place(self.held);
        self.ring[place] = key;
        self.units[place] = units;
        self.held_units += u64::from(units);
        self.held += 1;
        self.index(key, place);
    }

    /// Whether `key` is remembered.
    pub(super) fn holds(&self, key: u64) -> bool {
        self.find(key).is_some()
    }

    /// Forgets `key`; whether it was remembered.
    pub(super) fn take(&mut self, key: u64) -> bool {
        let found = self.find(key);
        if let Some(cell) = found {
            let place = self.table[cell] as usize;
            self.held_units -= u64::from(core::mem::take(&mut self.units[place]));
            self.erase(cell);
        }
        found.is_some()
    }

    /// Room for the last `slots` evictions.
    pub(super) fn reserve(&mut self, slots: usize) {
        if slots > self.ring.len() {
            self.rebuild(slots);
        }
    }

    /// Gives back the room beyond the last `slots` evictions.
    pub(super) fn shrink(&mut self, slots: usize) {
        while self.held > slots {
            self.forget_oldest();
        }
        if slots < self.ring.len() {
            self.rebuild(slots);
        }
    }

    pub(super) fn bytes_for(slots: usize) -> u64 {
        let place = size_of::<u64>() + size_of::<u32>();
        (slots * place + cells_for(slots) * size_of::<u32>()) as u64
    }

    pub(super) fn overhead_bytes(&self) -> u64 {
        heap_bytes(&self.ring) + heap_bytes(&self.units) + heap_bytes(&self.table)
    }

    fn rebuild(&mut self, slots: usize) {
        let former_units = self.held_units;
        let former = core::mem::replace(
            self,
            Self {
                ring: vec![0; slots],
                units: vec![0; slots],
                held_units: former_units,
                first: 0,
                held: 0,
                table: vec![EMPTY; cells_for(slots)],
            },
        );
        for age in 0..former.held {
            let place = former.place(age);
            let key = former.ring[place];
            self.ring[self.held] = key;
            self.units[self.held] = former.units[place];
            if former.is_remembered_at(place) {
                self.index(key, self.held);
            }
            self.held += 1;
        }
    }

    fn forget_oldest(&mut self) {
        let place = self.first;
        if let Some(cell) = self.find(self.ring[place])
            && self.table[cell] as usize == place
        {
            self.erase(cell);
        }
        self.held_units -= u64::from(core::mem::take(&mut self.units[place]));
        self.first = self.place(1);
        self.held -= 1;
    }

    /// Whether the key at `place` is still remembered from there, and not taken back or evicted
    /// again since.
    fn is_remembered_at(&self, place: usize) -> bool {
        self.find(self.ring[place])
            .is_some_and(|cell| self.table[cell] as usize == place)
    }

    /// The place in the ring `after` the first; `after` is at most the length of the ring.
    fn place(&self, after: usize) -> usize {
        let place = self.first + after;
        if place >= self.ring.len() {
            place - self.ring.len()
        } else {
            place
        }
    }

    /// The cell where the search for `key` begins.
    fn home(&self, key: u64) -> usize {
        // The high half of the product picks among any number of cells, without a division.
        let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        usize::try_from((spread * self.table.len() as u64) >> 32).unwrap_or(0)
    }

    fn next(&self, cell: usize) -> usize {
        if cell + 1 == self.table.len() {
            0
        } else {
            cell + 1
        }
    }

    fn find(&self, key: u64) -> Option<usize> {
        if self.table.is_empty() {
            return None;
        }
        let mut cell = self.home(key);
        while self.table[cell] != EMPTY {
            if self.ring[self.table[cell] as usize] == key {
                return Some(cell);
            }
            cell = self.next(cell);
        }
        None
    }

    fn index(&mut self, key: u64, place: usize) {
        let mut cell = self.home(key);
        while self.table[cell] != EMPTY {
            cell = self.next(cell);
        }
        self.table[cell] = u32::try_from(place).unwrap_or(EMPTY);
    }

    /// Frees `hole` and moves back those behind it that could then no longer be found.
    fn erase(&mut self, mut hole: usize) {
        let cells = self.table.len();
        let distance = |from: usize, to: usize| {
            if to >= from {
                to - from
            } else {
                to + cells - from
            }
        };
        let mut cell = self.next(hole);
        while self.table[cell] != EMPTY {
            let home = self.home(self.ring[self.table[cell] as usize]);
            if distance(home, cell) >= distance(hole, cell) {
                self.table[hole] = self.table[cell];
                hole = cell;
            }
            cell = self.next(cell);
        }
        self.table[hole] = EMPTY;
    }

    /// Compares the table with the ring; for tests.
    pub(super) fn debug_check(&self) {
        assert!(self.held <= self.ring.len(), "more held than there is room");
        let indexed = self.table.iter().filter(|place| **place != EMPTY).count();
        let remembered = (0..self.held).filter(|age| self.is_remembered_at(self.place(*age)));
        assert_eq!(remembered.count(), indexed, "table and ring differ");
        let units = self.units.iter().copied().map(u64::from);
        assert_eq!(units.sum::<u64>(), self.held_units, "sizes do not add up");
    }
}

/// Cells of the table for `slots` keys: never more than two thirds in use.
const fn cells_for(slots: usize) -> usize {
    if slots == 0 { 0 } else { slots + slots / 2 + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::super::reference::Random;
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn random_operations_match_a_reference_list() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut ghost = Ghost::default();
            let mut list: VecDeque<(Option<u64>, u32)> = VecDeque::new();
            let slots = 1 + random.index(24);
            ghost.reserve(slots);
            for step in 0..300 {
                // Few keys, so that they come back; in two clusters, so that probes collide and go
                // round.
                let key = random.below(40) * [1, u64::MAX / 40][random.index(2)];
                let is_there = list.iter().any(|(held, _)| *held == Some(key));
                for one in list.iter_mut().filter(|(held, _)| *held == Some(key)) {
                    *one = (None, 0);
                }
                if random.below(3) == 0 {
                    assert_eq!(ghost.take(key), is_there, "seed {seed} step {step}");
                } else {
                    let units = u32::try_from(random.below(4)).expect("small");
                    let limit = random.below(2 * slots as u64 + 1);
                    ghost.push(key, units, limit);
                    let sum = |list: &VecDeque<(Option<u64>, u32)>| {
                        list.iter().map(|(_, units)| u64::from(*units)).sum::<u64>()
                    };
                    if u64::from(units) <= limit {
                        list.push_back((Some(key), units));
                        while list.len() > slots || sum(&list) > limit {
                            list.pop_front();
                        }
                    }
                }
                ghost.debug_check();
                let remembered = list.iter().filter(|(held, _)| held.is_some()).count();
                let indexed = ghost.table.iter().filter(|p| **p != EMPTY).count();
                assert_eq!(indexed, remembered, "seed {seed} step {step}");
            }
        }
    }

    #[test]
    fn growing_keeps_all_keys_and_shrinking_keeps_the_youngest() {
        let mut ghost = Ghost::default();
        ghost.reserve(4);
        for key in 0..6 {
            ghost.push(key, 1, 4);
        }
        ghost.reserve(8);
        ghost.debug_check();
        ghost.shrink(3);
        ghost.debug_check();
        let remembered: Vec<u64> = (0..8).filter(|key| ghost.take(*key)).collect();
        assert_eq!(remembered, [3, 4, 5]);
    }

    #[test]
    fn ghost_without_room_remembers_no_key() {
        let mut ghost = Ghost::default();
        ghost.push(1, 1, 10);
        assert!(!ghost.take(1));
        ghost.reserve(1);
        ghost.push(1, 1, 0);
        assert!(!ghost.take(1));
        ghost.push(1, 1, 10);
        assert!(ghost.take(1));
    }
}
