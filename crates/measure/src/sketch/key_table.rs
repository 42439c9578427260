//! Which counter a key has: open addressing with linear steps over a fixed table.

use super::{COUNTERS_MAX, Counter};
use alloc::boxed::Box;
use alloc::vec;

/// Slots: twice the counters and a power of two, so that a search takes two steps in the mean.
const SLOTS: usize = 2048;

/// A slot without a counter.
const FREE: u16 = u16::MAX;

const _: () = assert!(COUNTERS_MAX < SLOTS / 2 && COUNTERS_MAX < FREE as usize);

/// Places of counters by their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyTable {
    /// Empty, or [`SLOTS`] long.
    slots: Box<[u16]>,
}

impl KeyTable {
    /// Bytes of a table that has a key.
    pub(super) const BYTES: usize = SLOTS * size_of::<u16>();

    /// The place of the counter of `key`.
    pub(super) fn find(&self, key: u64, counters: &[Counter]) -> Option<u16> {
        let slot = self.slot_of(key, counters)?;
        Some(self.slots[slot])
    }

    fn slot_of(&self, key: u64, counters: &[Counter]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = home(key);
        loop {
            let at = self.slots[slot];
            if at == FREE {
                return None;
            }
            if counters[usize::from(at)].key == key {
                return Some(slot);
            }
            slot = next(slot);
        }
    }

    /// Notes that the counter at `at` is that of `key`, which the table does not have.
    pub(super) fn insert(&mut self, key: u64, at: u16) {
        if self.slots.is_empty() {
            self.slots = vec![FREE; SLOTS].into_boxed_slice();
        }
        let mut slot = home(key);
        while self.slots[slot] != FREE {
            slot = next(slot);
        }
        self.slots[slot] = at;
    }

    /// Forgets `key`, which still has its counter. What was placed behind it for lack of a slot
    /// moves up, so that no search ends too early.
    pub(super) fn remove(&mut self, key: u64, counters: &[Counter]) {
        let Some(mut hole) = self.slot_of(key, counters) else {
            return;
        };
        let mut slot = hole;
        loop {
            slot = next(slot);
            let at = self.slots[slot];
            if at == FREE {
                break;
            }
            let wanted = home(counters[usize::from(at)].key);
            // it may not move before its own slot
            let from_wanted = slot.wrapping_sub(wanted) % SLOTS;
            let from_hole = slot.wrapping_sub(hole) % SLOTS;
            if from_wanted >= from_hole {
                self.slots[hole] = at;
                hole = slot;
            }
        }
        self.slots[hole] = FREE;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "keys are digests: their low bits suffice"
)]
const fn home(key: u64) -> usize {
    key as usize % SLOTS
}

const fn next(slot: usize) -> usize {
    (slot + 1) % SLOTS
}
