//! Heavy hitters of a stream in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi,
//! "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
//!
//! A sketch has a fixed number of counters. A key that it has no counter for takes that of the
//! smallest count, and inherits this count as its error. So a count is never below the true weight,
//! and above it by at most its error; a key without a counter weighs at most the smallest count.
//!
//! Weights are bytes as well as requests. The lists of equal counts of the paper are for steps of
//! one; here the counters are in a heap. Keys are digests under a secret, so that a client cannot
//! aim keys at one slot of the table. Names of keys are the caller's, which learns of each key that
//! is replaced.
//!
//! [`SpaceSaving::halve`] halves every count, so that the sketch forgets: with a halving each ten
//! minutes, what was counted an hour ago weighs 1/64.

mod key_table;
mod merged;

pub use merged::{HeavyHitter, Merged, merge};

use alloc::vec::Vec;
use key_table::KeyTable;

/// Counters of a sketch: of a total weight W the error is at most W / 1000.
pub const COUNTERS_MAX: usize = 1000;

/// What became of a key that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It had a counter.
    Known,
    /// It got a counter that was free.
    New,
    /// It got the counter of another key, which the sketch has no more.
    Replaced {
        /// That key.
        key: u64,
    },
}

/// A counter of the sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counter {
    key: u64,
    /// At least the true weight of the key.
    count: u64,
    /// The true weight is at least `count - error`.
    error: u64,
    /// Its place in the heap.
    place: u16,
}

/// The heavy hitters of one stream.
///
/// At most [`COUNTERS_MAX`] counters of 32 bytes, 2 bytes a place of the heap, and 4 KiB for the
/// table of keys: 38 KiB. Nothing is allocated before the first key.
#[derive(Clone, Debug, Default)]
pub struct SpaceSaving {
    counters: Vec<Counter>,
    /// Places in `counters`, a heap: the smallest count is the first one.
    heap: Vec<u16>,
    table: KeyTable,
    /// Weight of all that was added, halved as the counts are.
    total: u64,
}

impl SpaceSaving {
    /// Most bytes that a sketch has allocated.
    pub const BYTES_MAX: usize =
        COUNTERS_MAX * (size_of::<Counter>() + size_of::<u16>()) + KeyTable::BYTES;

    /// Without a key.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `weight` to `key`. A weight of zero still gives the key a counter. Counts saturate.
    pub fn add(&mut self, key: u64, weight: u64) -> Added {
        self.total = self.total.saturating_add(weight);
        if let Some(at) = self.table.find(key, &self.counters) {
            let counter = &mut self.counters[usize::from(at)];
            counter.count = counter.count.saturating_add(weight);
            let place = usize::from(counter.place);
            self.sift_down(place);
            return Added::Known;
        }
        if self.counters.len() < COUNTERS_MAX {
            return self.add_new(key, weight);
        }
        let at = self.heap[0];
        let replaced = self.counters[usize::from(at)].key;
        self.table.remove(replaced, &self.counters);
        let counter = &mut self.counters[usize::from(at)];
        counter.key = key;
        counter.error = counter.count;
        counter.count = counter.count.saturating_add(weight);
        self.table.insert(key, at);
        self.sift_down(0);
        Added::Replaced { key: replaced }
    }

    fn add_new(&mut self, key: u64, weight: u64) -> Added {
        if self.counters.capacity() == 0 {
            self.counters.reserve_exact(COUNTERS_MAX);
            self.heap.reserve_exact(COUNTERS_MAX);
        }
        // one for each counter, in both
        let place = place_of(self.counters.len());
        self.counters.push(Counter {
            key,
            count: weight,
            error: 0,
            place,
        });
        self.heap.push(place);
        self.table.insert(key, place);
        self.sift_up(usize::from(place));
        Added::New
    }

    /// Halves what was counted so far. Counts are rounded up and what is certain of them is rounded
    /// down: the bound holds for the halved weights without rounding.
    pub fn halve(&mut self) {
        for counter in &mut self.counters {
            let certain = (counter.count - counter.error) / 2;
            counter.count = counter.count.div_ceil(2);
            counter.error = counter.count - certain;
        }
        self.total = self.total.div_ceil(2);
    }

    /// Weight of all that was added, halved as the counts are and rounded up.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The most that a key without a counter can weigh: the smallest count, or zero while there are
    /// free counters.
    #[must_use]
    pub fn weight_max_of_others(&self) -> u64 {
        match self.heap.first() {
            Some(at) if self.counters.len() == COUNTERS_MAX => {
                self.counters[usize::from(*at)].count
            }
            _ => 0,
        }
    }

    /// All keys with a counter, in no order.
    pub fn rows(&self) -> impl Iterator<Item = HeavyHitter> + '_ {
        self.counters.iter().map(|counter| HeavyHitter {
            key: counter.key,
            count: counter.count,
            error: counter.error,
        })
    }

    /// Count and error of `key`, if it has a counter.
    fn row(&self, key: u64) -> Option<HeavyHitter> {
        let counter = self.counters[usize::from(self.table.find(key, &self.counters)?)];
        Some(HeavyHitter {
            key,
            count: counter.count,
            error: counter.error,
        })
    }

    fn count_at(&self, place: usize) -> u64 {
        self.counters[usize::from(self.heap[place])].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.counters[usize::from(self.heap[place])].place = place_of(place);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.count_at(parent) <= self.count_at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let is_right = right < self.heap.len() && self.count_at(right) < self.count_at(left);
            let child = if is_right { right } else { left };
            if self.count_at(place) <= self.count_at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "places are below COUNTERS_MAX"
)]
const fn place_of(index: usize) -> u16 {
    index as u16
}
