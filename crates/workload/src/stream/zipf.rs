//! Ranks with a Zipf-like popularity: rank `k` of `n` with a chance proportional to `1 /
//! k^exponent`.
//!
//! Drawn by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", ACM TOMACS 6(3), 1996): exact for every exponent
//! and bound, without a table, and with little more than one try a draw.

use crate::Chance;
use crate::number::whole;

/// A Zipf-like law over the ranks `1..=n`.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: u64,
    /// `ranks` as a number to compute with.
    last: f64,
    exponent: f64,
    /// The hat's integral where the first rank's part begins, moved so that rank 1 is never
    /// refused.
    left: f64,
    /// The hat's integral where the last rank's part ends.
    right: f64,
    /// Draws this close to the left of their rank are taken without looking at the hat.
    squeeze: f64,
}

impl Zipf {
    /// Over `1..=ranks`, at least one rank; `exponent` is not negative, and 0 makes all ranks
    /// alike.
    #[must_use]
    pub fn new(ranks: u64, exponent: f64) -> Self {
        let ranks = ranks.max(1);
        let last = ranks as f64;
        Self {
            ranks,
            last,
            exponent,
            left: area(1.5, exponent) - 1.0,
            right: area(last + 0.5, exponent),
            squeeze: 2.0 - inverse_area(area(2.5, exponent) - height(2.0, exponent), exponent),
        }
    }

    /// A rank in `1..=ranks`.
    pub fn draw(&self, chance: &mut Chance) -> u64 {
        loop {
            let at = self.right + chance.unit() * (self.left - self.right);
            let wanted = inverse_area(at, self.exponent);
            let rank = (wanted + 0.5).floor().clamp(1.0, self.last);
            let is_taken = rank - wanted <= self.squeeze
                || at >= area(rank + 0.5, self.exponent) - height(rank, self.exponent);
            if is_taken {
                return whole::<u64>(rank).min(self.ranks);
            }
        }
    }
}

/// The hat: `x^-exponent`.
fn height(x: f64, exponent: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// The hat's integral from 1 to `x`: `(x^(1 - exponent) - 1) / (1 - exponent)`, or `ln x` where the
/// exponent is 1.
fn area(x: f64, exponent: f64) -> f64 {
    let ln_x = libm::log(x);
    grow((1.0 - exponent) * ln_x) * ln_x
}

/// The `x` whose [`area`] is given.
fn inverse_area(area: f64, exponent: f64) -> f64 {
    // below -1 there is no such x; rounding may lead there
    let scaled = (area * (1.0 - exponent)).max(-1.0);
    libm::exp(shrink(scaled) * area)
}

/// `(e^x - 1) / x`, smooth through 0.
fn grow(x: f64) -> f64 {
    if x.abs() > SERIES_BELOW {
        libm::expm1(x) / x
    } else {
        1.0 + x * 0.5 * (1.0 + x / 3.0 * (1.0 + x * 0.25))
    }
}

/// `ln(1 + x) / x`, smooth through 0.
fn shrink(x: f64) -> f64 {
    if x.abs() > SERIES_BELOW {
        libm::log1p(x) / x
    } else {
        1.0 - x * (0.5 - x * (1.0 / 3.0 - x * 0.25))
    }
}

/// Where the quotients lose their digits and the first terms of their series are exact enough.
const SERIES_BELOW: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranks: u64, exponent: f64) {
        const DRAWS: u32 = 50_000;
        let law = Zipf::new(ranks, exponent);
        let mut chance = Chance::new(7, 0);
        let mut counts = std::collections::BTreeMap::<u64, u32>::new();
        for _ in 0..DRAWS {
            let rank = law.draw(&mut chance);
            assert!((1..=ranks).contains(&rank));
            *counts.entry(rank).or_default() += 1;
        }
        let weight = |rank: u64| libm::pow(rank as f64, -exponent);
        let whole: f64 = (1..=ranks).map(weight).sum();
        for rank in [1, 2, 3, 10, 100].into_iter().filter(|rank| *rank <= ranks) {
            let expected = f64::from(DRAWS) * weight(rank) / whole;
            let found = f64::from(counts.get(&rank).copied().unwrap_or(0));
            let slack = 5.0 * expected.sqrt() + 1.0;
            assert!(
                (found - expected).abs() < slack,
                "rank {rank} of {ranks}, exponent {exponent}: {found} draws, {expected} expected"
            );
        }
    }

    #[test]
    fn rank_is_drawn_in_proportion_to_its_weight() {
        for ranks in [1, 2, 5, 1000, 100_000] {
            for exponent in [0.0, 0.6, 0.8, 1.0, 1.2, 2.0] {
                check(ranks, exponent);
            }
        }
    }
}
