//! Quantiles of positive numbers without keeping them: counts in buckets a hundredth wide.

use weir_measure::quantile;
use weir_workload::whole;

/// Counts by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    counts: Vec<u64>,
    count: u64,
}

impl Buckets {
    pub(super) fn add(&mut self, value: f64) {
        let above = libm::log(value.max(LEAST) / LEAST) * STEPS;
        let place = whole::<usize>(above).min(PLACES_MAX - 1);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
    }

    /// The middle of the bucket in which the quantile lies; within half a hundredth.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let counts = self.counts.iter().copied().enumerate();
        let place = quantile::rank(counts, self.count, share)?.value;
        if place == 0 {
            return Some(0.0);
        }
        Some(LEAST * libm::exp((place as f64 + 0.5) / STEPS))
    }
}

/// A microsecond, where values are seconds; what is below is nothing.
const LEAST: f64 = 1e-6;

/// Buckets a factor of e.
const STEPS: f64 = 100.0;

/// Up to 10^20 times the least.
const PLACES_MAX: usize = 4700;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_within_one_percent_of_the_exact_value() {
        let mut buckets = Buckets::default();
        assert_eq!(buckets.quantile(0.5), None);
        for value in 1..=10_000_u32 {
            buckets.add(f64::from(value));
        }
        for share in [0.1, 0.5, 0.9, 1.0] {
            let found = buckets.quantile(share).unwrap();
            assert!(
                (found / (share * 10_000.0) - 1.0).abs() < 0.01,
                "{share}: {found}"
            );
        }
    }

    #[test]
    fn quantile_of_zero_is_zero_and_of_infinity_a_large_value() {
        let mut buckets = Buckets::default();
        buckets.add(0.0);
        assert_eq!(buckets.quantile(0.5), Some(0.0));
        buckets.add(f64::INFINITY);
        assert!(buckets.quantile(1.0).unwrap() > 1e12);
    }
}
