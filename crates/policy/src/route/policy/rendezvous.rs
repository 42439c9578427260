//! Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights by the logarithm method of
//! Schindelhauer and Schomaker 2005).
//!
//! Each node has a distance to each target: `-ln(h) / w`, with `h` a hash of both in (0, 1] and `w`
//! the node's weight. The nodes in the order of their distances are the *rendezvous order* of the
//! target. There is no table: front ends that know the same nodes have the same order. A node is
//! first for `w` of the sum of all weights, and if it leaves, only its targets move.
//!
//! The logarithm is computed with whole numbers, so that it is equal on all machines.

use crate::route::cluster::{Node, TargetKey};
use core::cmp::Ordering;

/// A node's distance to a target. Distances are compared and seldom computed: that of a smaller
/// hash and weight is the larger one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distance {
    hash: u64,
    weight: u16,
    /// Decides between equal distances, so that they do not depend on the order of nodes.
    key: u64,
}

impl Distance {
    pub(super) fn of(target: TargetKey, node: &Node) -> Self {
        Self {
            hash: mix(target.0 ^ node.key.0),
            weight: node.weight.get(),
            key: node.key.0,
        }
    }

    /// In parts of 2^32 of the distance of a hash of 1/2 and a weight of 1, rounded down.
    pub(super) fn parts(self) -> u64 {
        minus_log2(self.hash) / u64::from(self.weight)
    }

    fn by_logarithm(&self, other: &Self) -> Ordering {
        // below 2^39 x 2^16
        let own = minus_log2(self.hash) * u64::from(other.weight);
        let others = minus_log2(other.hash) * u64::from(self.weight);
        own.cmp(&others)
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_hash = other.hash.cmp(&self.hash);
        let by_distance = match (by_hash, other.weight.cmp(&self.weight)) {
            (_, Ordering::Equal) => by_hash,
            (Ordering::Equal, by_weight) => by_weight,
            (by_hash, by_weight) if by_hash == by_weight => by_hash,
            _ => self.by_logarithm(other).then(by_hash),
        };
        by_distance.then(self.key.cmp(&other.key))
    }
}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Distance {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Distance {}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014; Stafford's variant 13).
pub(in crate::route) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// `-log2(hash / 2^64)` in parts of 2^32; 64 for a hash of 0.
///
/// The logarithm of the mantissa is interpolated between 257 values: it is at most 3 x 10^-6 off.
fn minus_log2(hash: u64) -> u64 {
    let hash = hash | 1;
    let zeros = hash.leading_zeros();
    // without its highest bit: what is behind the binary point of a number in [1, 2)
    let mantissa = (hash << zeros) << 1;
    let index = (mantissa >> 56) as usize;
    let rest = (mantissa >> 24) & u64::from(u32::MAX);
    let (low, high) = (LOG2[index], LOG2[index + 1]);
    let log = low + (((high - low) * rest) >> 32);
    ((u64::from(zeros) + 1) << 32) - log
}

const STEPS: usize = 256;

/// `log2(1 + index / 256)` in parts of 2^32.
static LOG2: [u64; STEPS + 1] = {
    let mut table = [0; STEPS + 1];
    let mut index = 0;
    while index < STEPS {
        table[index] = log2((1 << 63) + ((index as u64) << 55));
        index += 1;
    }
    table[STEPS] = 1 << 32;
    table
};

/// `log2(value / 2^63)` in parts of 2^32, for a value of 2^63 or more: a bit for each squaring.
const fn log2(value: u64) -> u64 {
    let mut value = value as u128;
    let mut log = 0;
    let mut bit = 0;
    while bit < 32 {
        value = (value * value) >> 63;
        log <<= 1;
        if value >= 1 << 64 {
            value >>= 1;
            log |= 1;
        }
        bit += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of hashes and weights in every order of the two.
    #[test]
    fn distances_are_in_the_order_of_logarithm_by_weight() {
        let mut random = 1;
        let mut draw = |weight_max: u64| {
            random = mix(random + 1);
            Distance {
                hash: random,
                weight: u16::try_from(1 + (random >> 7) % weight_max).unwrap(),
                key: random,
            }
        };
        for _ in 0..20_000 {
            let (one, other) = (draw(4), draw(4));
            assert_eq!(
                one.cmp(&other),
                one.by_logarithm(&other),
                "{one:?} {other:?}"
            );
            assert_eq!(other.cmp(&one), one.cmp(&other).reverse());
        }
    }

    #[test]
    fn logarithm_is_within_3e_6_of_the_exact_one() {
        let check = |hash: u64| {
            #[expect(clippy::cast_precision_loss, reason = "compared within 3e-6")]
            let (got, exact) = (
                minus_log2(hash) as f64 / 4_294_967_296.0,
                64.0 - (hash as f64).log2(),
            );
            assert!((got - exact).abs() < 3e-6, "{hash:#x}: {got} {exact}");
        };
        for hash in [1, 3, u64::MAX, 1 << 63, (1 << 63) - 1] {
            check(hash);
        }
        let mut hash = 1;
        for _ in 0..100_000 {
            hash = mix(hash) | 1;
            check(hash);
            check(hash >> (hash % 64) | 1);
        }
    }

    #[test]
    fn logarithm_falls_as_the_hash_grows() {
        let mut hash = 1_u64;
        while let Some(next) = hash.checked_add(1 + hash / 1000) {
            assert!(minus_log2(next) <= minus_log2(hash), "{hash:#x}");
            hash = next;
        }
        assert_eq!(minus_log2(0), 64 << 32);
        assert_eq!(minus_log2(u64::MAX), 1);
    }
}
