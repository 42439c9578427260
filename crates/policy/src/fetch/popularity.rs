//! How often a target was requested lately, and the chance that it is requested again.
//!
//! Counts are kept in a count-min sketch with conservative update, aged by halving (`TinyLFU`,
//! Einziger, Friedman, Manes 2017): four rows of four-bit counters, of which a key's smallest is
//! read. It holds no keys, its memory is fixed, and it never says less than was noted since it was
//! last aged, up to 15. A digest is a keyed hash already, so its halves index the rows (Kirsch and
//! Mitzenmacher 2006) and no client can aim at a counter.
//!
//! The chance is learnt from the same counts: of all keys requested `n` times, how many were
//! requested once more? For each `n` from 1 to 15 that share is estimated as
//!
//! ```text
//! (asked again at n  +  K x share over all n) / (reached n  +  K)                 K = 32 observations
//! ```
//!
//! which is Laplace's rule with the share of all keys in the place of 1/2: a class that was hardly
//! ever seen answers as the average does. Before anything was seen that average is a third, which
//! weighs 64 observations: a guess on the low side, soon outweighed. Both tallies are halved with
//! the sketch, so "again" means: before the sketch has forgotten it. A key that was requested
//! recently counts as not requested again: the estimate is a little low, which is the side that
//! fetches less.
//!
//! This is for the slow path. Hits need not pay for it: a driver that notes misses only should also
//! note the *first* hit of each stored response, or the learnt share is that of requests which miss
//! twice.

use crate::digest::Digest;
use alloc::boxed::Box;
use alloc::vec;

/// A chance in 1024 parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chance(u16);

impl Chance {
    /// It does not happen.
    pub const NEVER: Self = Self(0);
    /// It does.
    pub const CERTAIN: Self = Self(1024);

    /// `part` of `whole`, rounded down; certain if it is as much or more; never if `whole` is 0.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::NEVER;
        }
        let parts = u128::from(part.min(whole)) * 1024 / u128::from(whole);
        Self(u16::try_from(parts).unwrap_or(1024))
    }

    /// In parts of 1024.
    #[must_use]
    pub const fn per_1024(self) -> u16 {
        self.0
    }

    /// The expected part of `bytes`.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> u64 {
        let expected = u128::from(bytes) * u128::from(self.0) / 1024;
        u64::try_from(expected).unwrap_or(bytes)
    }
}

/// The sketch, and the tallies the chance is estimated from.
#[derive(Clone, Debug)]
pub struct Popularity {
    /// Rows one after the other, sixteen counters a word.
    words: Box<[u64]>,
    /// Counters a row; a power of two.
    width: u64,
    noted: u64,
    /// How many keys reached so many requests; index 0 is not used.
    reached: [u64; CLASSES],
    /// How many keys with so many requests were requested once more.
    again: [u64; CLASSES],
}

impl Popularity {
    /// What a proxy gives it by default, in bytes: 65 536 counters a row.
    pub const DEFAULT_BYTES: usize = 128 * 1024;

    /// An empty sketch of `bytes` rounded down to a power of two, and 2 KiB at least.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(BYTES_MIN);
        let words = (1_usize << bytes.ilog2()) / size_of::<u64>();
        Self {
            words: vec![0; words].into_boxed_slice(),
            width: words as u64 * COUNTERS_A_WORD / ROWS as u64,
            noted: 0,
            reached: [0; CLASSES],
            again: [0; CLASSES],
        }
    }

    /// What it holds on the heap, in bytes; it never changes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// `key` was requested.
    pub fn note(&mut self, key: Digest) {
        let places = self.places(key);
        let asked = self.least(places);
        let class = class(asked);
        if asked > 0 {
            self.again[class] += 1;
        }
        self.reached[(class + 1).min(CLASSES - 1)] += 1;
        // conservative: only the smallest counters of a key are too small
        for (word, shift) in places {
            if u64::from(asked) == (self.words[word] >> shift) & COUNT_MAX && asked < ASKED_MAX {
                self.words[word] += 1 << shift;
            }
        }
        self.noted += 1;
        if self.noted >= self.width * NOTES_A_COUNTER {
            self.age();
        }
    }

    /// How often `key` was requested lately, 0 to 15; an upper bound, since keys share counters.
    #[must_use]
    pub fn asked(&self, key: Digest) -> u32 {
        self.least(self.places(key))
    }

    /// The chance that `key` is requested again. One that was never noted counts as requested once:
    /// by the present request.
    #[must_use]
    pub fn again(&self, key: Digest) -> Chance {
        let class = class(self.asked(key).max(1));
        let reached: u64 = self.reached.iter().sum();
        let again: u64 = self.again.iter().sum();
        let prior = Chance::of(
            again + Self::FIRST_GUESS.of_bytes(FIRST_GUESS_WEIGHT),
            reached + FIRST_GUESS_WEIGHT,
        );
        // in 1024 parts, so that the prior's share of a small weight is not rounded away
        let part = self.again[class] * 1024 + u64::from(prior.per_1024()) * PRIOR_WEIGHT;
        Chance::of(part, (self.reached[class] + PRIOR_WEIGHT) * 1024)
    }

    /// A third.
    const FIRST_GUESS: Chance = Chance(341);

    /// The key's counter in each row: its word, and where in that it begins.
    fn places(&self, key: Digest) -> [(usize, u64); ROWS] {
        // an odd step reaches every counter of a power of two
        let (mut hash, step) = (key.0, key.1 | 1);
        let mut row_begins = 0;
        [(); ROWS].map(|()| {
            let counter = row_begins + ((hash ^ (hash >> 32)) & (self.width - 1));
            hash = hash.wrapping_add(step);
            row_begins += self.width;
            let word = usize::try_from(counter / COUNTERS_A_WORD).unwrap_or(0);
            (word, counter % COUNTERS_A_WORD * COUNTER_BITS)
        })
    }

    fn least(&self, places: [(usize, u64); ROWS]) -> u32 {
        let counts = places.map(|(word, shift)| (self.words[word] >> shift) & COUNT_MAX);
        let least = counts.into_iter().min().unwrap_or(0);
        u32::try_from(least).unwrap_or(ASKED_MAX)
    }

    /// Halves every count, so that what was popular once is forgotten.
    fn age(&mut self) {
        for word in &mut self.words {
            *word = (*word >> 1) & HALVED;
        }
        for tally in self.reached.iter_mut().chain(&mut self.again) {
            *tally /= 2;
        }
        self.noted /= 2;
    }
}

fn class(asked: u32) -> usize {
    (asked as usize).min(CLASSES - 1)
}

const ROWS: usize = 4;
const COUNTER_BITS: u64 = 4;
const COUNTERS_A_WORD: u64 = 64 / COUNTER_BITS;
const COUNT_MAX: u64 = 15;
const ASKED_MAX: u32 = 15;
const CLASSES: usize = 16;
/// Each counter of a word without its highest bit.
const HALVED: u64 = 0x7777_7777_7777_7777;
/// `TinyLFU`'s sample: ten notes for each counter of a row, then counts are halved.
const NOTES_A_COUNTER: u64 = 10;
const PRIOR_WEIGHT: u64 = 32;
const FIRST_GUESS_WEIGHT: u64 = 64;
const BYTES_MIN: usize = 2048;

#[cfg(test)]
mod tests;
