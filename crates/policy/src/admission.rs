//! Whether a response that is stored in memory is written to disk too.
//!
//! Most responses are asked for once. Writing all of them keeps what is asked for a second time after memory has let it go;
//! writing on the second request spares a device that wears out, and costs one more fetch of each (Maggs and Sitaraman,
//! "Algorithmic nuggets in content delivery", 2015: three quarters of the targets at a content delivery network were
//! asked for once).

use crate::digest::Digest;
use alloc::boxed::Box;
use alloc::vec;

/// Which responses are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admitting {
    /// All.
    #[default]
    Always,
    /// Those that come a second time within what is remembered.
    SecondRequest,
    /// Those with at most so many bytes of content.
    Small(u64),
}

/// Bits of each of the two filters: 128 KiB.
const BITS: usize = 1 << 20;

/// Responses one filter remembers: at eight bits and two places each, one in twenty of those that never came is taken for
/// one that did, which costs a write.
const REMEMBERED_MAX: usize = BITS / 8;

/// The rule, and what it remembers: the last one to two times [`REMEMBERED_MAX`] responses.
#[derive(Clone, Debug)]
pub struct Admission {
    rule: Admitting,
    /// Those since the filters were changed, and those before; empty if nothing is to be remembered.
    recent: Filter,
    former: Filter,
}

#[derive(Clone, Debug, Default)]
struct Filter {
    words: Box<[u64]>,
    held: usize,
}

impl Admission {
    /// A policy that follows `rule`.
    #[must_use]
    pub fn new(rule: Admitting) -> Self {
        let filter = || match rule {
            Admitting::SecondRequest => Filter::new(),
            Admitting::Always | Admitting::Small(_) => Filter::default(),
        };
        Self {
            rule,
            recent: filter(),
            former: filter(),
        }
    }

    /// Whether a response of `content_bytes` (as far as that is known) that came for `key` is written.
    pub fn admits(&mut self, key: Digest, content_bytes: u64) -> bool {
        match self.rule {
            Admitting::Always => true,
            Admitting::Small(most) => content_bytes <= most,
            Admitting::SecondRequest => {
                let is_known = self.recent.holds(key) || self.former.holds(key);
                self.remember(key);
                is_known
            }
        }
    }

    fn remember(&mut self, key: Digest) {
        if self.recent.held >= REMEMBERED_MAX {
            core::mem::swap(&mut self.recent, &mut self.former);
            self.recent.clear();
        }
        self.recent.put(key);
    }
}

impl Filter {
    fn new() -> Self {
        Self {
            words: vec![0; BITS / 64].into_boxed_slice(),
            held: 0,
        }
    }

    /// The word and the bit of each of a key's two places: a digest is as good as two hashes.
    fn places(key: Digest) -> [(usize, u64); 2] {
        [key.0, key.1].map(|hash| {
            let bit = usize::try_from(hash % BITS as u64).unwrap_or(0);
            (bit / 64, 1 << (bit % 64))
        })
    }

    fn holds(&self, key: Digest) -> bool {
        let is_set = |(word, bit): (usize, u64)| self.words.get(word).is_some_and(|w| w & bit != 0);
        Self::places(key).into_iter().all(is_set)
    }

    fn put(&mut self, key: Digest) {
        for (word, bit) in Self::places(key) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
        self.held += 1;
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Digest {
        // as a hash would: odd multipliers spread the numbers over all bits
        let spread = |factor: u64| {
            let mixed = number.wrapping_add(1).wrapping_mul(factor);
            mixed ^ (mixed >> 29)
        };
        Digest(spread(0x9e37_79b9_7f4a_7c15), spread(0xc2b2_ae3d_27d4_eb4f))
    }

    #[test]
    fn first_request_is_admitted_or_the_second_is_not() {
        let mut admission = Admission::new(Admitting::SecondRequest);
        let count = REMEMBERED_MAX as u64;
        let early = (0..count)
            .filter(|at| admission.admits(key(*at), 0))
            .count();
        assert!(early < REMEMBERED_MAX / 20, "{early} at once");
        assert!((0..count).all(|at| admission.admits(key(at), u64::MAX)));
        // long ago is forgotten
        for at in count..4 * count {
            admission.admits(key(at), 0);
        }
        let late = (0..count)
            .filter(|at| admission.admits(key(*at), 0))
            .count();
        assert!(late < REMEMBERED_MAX / 8, "{late} remembered");
    }

    #[test]
    fn size_is_judged_off_by_one_or_not_at_all() {
        let mut small = Admission::new(Admitting::Small(1000));
        assert!(small.admits(key(1), 1000));
        assert!(!small.admits(key(1), 1001));
        assert!(Admission::new(Admitting::Always).admits(key(1), u64::MAX));
    }
}
