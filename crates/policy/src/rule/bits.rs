//! A set of rules, by their places in the configuration.

use core::ops::{BitAnd, BitOr, BitOrAssign};

/// Most rules of a configuration.
pub const RULES_MAX: usize = 256;

const WORDS: usize = RULES_MAX / 64;

/// A set of rules; rule `i` of the configuration is bit `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bits([u64; WORDS]);

impl Bits {
    /// No rule.
    pub const NONE: Self = Self([0; WORDS]);

    /// Adds a rule.
    ///
    /// # Panics
    ///
    /// `rule` is [`RULES_MAX`] or more.
    pub fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    /// Takes a rule out.
    ///
    /// # Panics
    ///
    /// `rule` is [`RULES_MAX`] or more.
    pub fn remove(&mut self, rule: usize) {
        self.0[rule / 64] &= !(1 << (rule % 64));
    }

    /// Whether a rule is in the set.
    #[must_use]
    pub fn contains(&self, rule: usize) -> bool {
        self.0
            .get(rule / 64)
            .is_some_and(|word| word & 1 << (rule % 64) != 0)
    }

    /// Whether there is no rule in it.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The rules in their order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..WORDS).flat_map(move |place| {
            let mut word = self.0[place];
            core::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(place * 64 + bit)
            })
        })
    }
}

impl BitAnd for Bits {
    type Output = Self;

    #[inline]
    fn bitand(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        self
    }
}

impl BitOr for Bits {
    type Output = Self;

    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for Bits {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(rules: T) -> Self {
        let mut bits = Self::NONE;
        rules.into_iter().for_each(|rule| bits.insert(rule));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_has_the_rules_put_in_and_no_other_in_their_order() {
        let rules = [0, 1, 63, 64, 127, 128, 255];
        let mut bits: Bits = rules.into_iter().rev().collect();
        assert!(bits.iter().eq(rules));
        let contained = (0..RULES_MAX).filter(|rule| bits.contains(*rule));
        assert!(contained.eq(rules));
        bits.remove(64);
        assert!(!bits.contains(64) && bits.contains(63) && !bits.contains(RULES_MAX));
        assert!(!bits.is_empty() && Bits::NONE.is_empty());
    }

    #[test]
    fn sets_are_joined_and_intersected_rule_by_rule() {
        let (one, other): (Bits, Bits) =
            ([1, 70].into_iter().collect(), Bits::from_iter([70, 200]));
        assert!((one & other).iter().eq([70]));
        assert!((one | other).iter().eq([1, 70, 200]));
    }
}
