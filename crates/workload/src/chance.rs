//! Seeded chance: xoshiro256++ (Blackman and Vigna 2018), split into streams that do not depend on
//! each other.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hash::Hasher;

/// A stream of random numbers, the same for the same seed and stream number on every machine.
#[derive(Clone, Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The stream with this number of this seed. A stream draws the same whatever is drawn from the
    /// others.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self::of(mix(seed) ^ mix(mix(stream)))
    }

    /// The stream that a hash stands for.
    #[must_use]
    pub fn of(hash: u64) -> Self {
        let mut state = [0; 32];
        for (index, word) in (0_u64..).zip(state.chunks_exact_mut(8)) {
            word.copy_from_slice(&mix(hash.wrapping_add(index.wrapping_mul(GOLDEN))).to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(state))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        unit_of(self.word())
    }

    /// Uniform from 0 to `end` - 1; 0 where `end` is 0. No number is likelier than another by more
    /// than `end` in 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.word()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// True with this probability; never for 0, always for 1.
    pub fn is(&mut self, share: f64) -> bool {
        self.unit() < share
    }
}

/// The finaliser of splitmix64 (Steele, Lea and Flood 2014), from one number to one that looks
/// unrelated.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Mixes keys of maps that are hashes already, or numbers of a source: a hash of them costs more
/// and gives no more.
#[derive(Clone, Copy, Debug, Default)]
pub struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

/// The place of the share that `unit`, from 0 to 1, falls into; `None` where it is beyond their
/// sum.
pub fn chosen(shares: impl Iterator<Item = f64>, unit: f64) -> Option<usize> {
    let mut end = 0.0;
    shares
        .enumerate()
        .find(|(_, share)| {
            end += share;
            unit < end
        })
        .map(|(place, _)| place)
}

/// The 53 highest of 64 random bits as a number in [0, 1).
#[must_use]
pub const fn unit_of(word: u64) -> f64 {
    (word >> 11) as f64 / STEPS
}

/// 2^64 divided by the golden ratio, splitmix64's increment.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2^53.
const STEPS: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn draws_depend_only_on_seed_and_stream() {
        let draws = |seed, stream| {
            let mut chance = Chance::new(seed, stream);
            [chance.word(), chance.word(), chance.word()]
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
        assert_ne!(draws(1, 7), draws(7, 1));
    }

    #[test]
    fn draws_of_a_stream_do_not_depend_on_draws_of_another() {
        let mut alone = Chance::new(7, 1);
        let (mut one, mut other) = (Chance::new(7, 1), Chance::new(7, 2));
        for draws in [0, 1, 5, 2, 0, 9] {
            for _ in 0..draws {
                other.word();
            }
            assert_eq!(one.word(), alone.word());
            assert_ne!(other.word(), alone.clone().word());
        }
    }

    #[test]
    fn draws_of_a_seed_and_stream_equal_the_pinned_numbers() {
        // changes only when records made before can no longer be replayed
        let mut chance = Chance::new(1, 2);
        assert_eq!(chance.word(), PINNED[0]);
        assert_eq!(chance.word(), PINNED[1]);
    }

    const PINNED: [u64; 2] = [6_887_249_928_182_813_737, 11_185_845_979_894_928_185];

    #[test]
    fn probability_0_never_happens_and_probability_1_always_does() {
        let mut chance = Chance::new(3, 3);
        assert!((0..10_000).all(|_| !chance.is(0.0) && chance.is(1.0)));
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.below(1), 0);
    }

    #[test]
    fn mean_of_unit_draws_is_a_half() {
        let mut chance = Chance::new(5, 0);
        let sum: f64 = (0..100_000).map(|_| chance.unit()).sum();
        // four standard deviations of the mean of 100 000 uniforms
        assert!((sum / 100_000.0 - 0.5).abs() < 4.0 * 0.000_913, "{sum}");
    }

    proptest! {
        #[test]
        fn draw_is_below_its_end_and_unit_draw_is_in_0_to_1(seed: u64, stream: u64, end in 1_u64..) {
            let mut chance = Chance::new(seed, stream);
            for _ in 0..100 {
                prop_assert!(chance.below(end) < end);
                let unit = chance.unit();
                prop_assert!((0.0..1.0).contains(&unit));
            }
        }
    }
}
