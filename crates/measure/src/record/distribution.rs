//! Times as they are kept in a record: every bucket that is not empty, so that nothing is lost when
//! records are merged.

use crate::{Merge, quantile, ratio};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A histogram of an HDR histogram's non-empty buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// The unit of every value: `us`.
    pub unit: String,
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least; 0 if there is none.
    pub min: u64,
    /// The greatest; 0 if there is none.
    pub max: u64,
    /// `[value, count]`, the values rising: the greatest value of a bucket that is three digits
    /// wide at most.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// The least time that `share` of the values do not exceed, microseconds; within the width of a
    /// bucket, and never beyond the greatest value. `share` is clamped to 0..=1. `None` without a
    /// value.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let counts = self.buckets.iter().copied();
        let value = quantile::rank(counts, self.count, share)?.value;
        Some(value.clamp(self.min, self.max))
    }

    /// The mean, microseconds. `None` without a value.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        ratio(self.sum, self.count)
    }
}

impl Merge for Histogram {
    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.buckets.merge(&other.buckets);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            unit: "us".into(),
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
            buckets: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &value in values {
            histogram.merge(&Histogram {
                count: 1,
                sum: value,
                min: value,
                max: value,
                buckets: alloc::vec![(value, 1)],
                ..Histogram::default()
            });
        }
        histogram
    }

    #[test]
    fn quantile_is_the_nearest_rank_value() {
        let histogram = of(&[40, 10, 30, 20]);
        for (quantile, expected) in [
            (0.0, 10),
            (0.25, 10),
            (0.26, 20),
            (0.5, 20),
            (0.75, 30),
            (0.99, 40),
            (1.0, 40),
            (7.0, 40),
        ] {
            assert_eq!(
                histogram.quantile_us(quantile),
                Some(expected),
                "{quantile}"
            );
        }
        assert_eq!(of(&[]).quantile_us(0.5), None);
        assert_eq!(of(&[]).mean_us(), None);
    }

    #[test]
    fn quantile_is_capped_at_the_greatest_recorded_value() {
        let mut histogram = of(&[1000]);
        histogram.buckets = alloc::vec![(1007, 1)];
        assert_eq!(histogram.quantile_us(0.5), Some(1000));
    }

    #[test]
    fn merge_keeps_every_value_count_and_sum() {
        let mut one = of(&[5, 1, 5, 9]);
        one.merge(&of(&[2, 9, 11]));
        assert_eq!(one.buckets, [(1, 1), (2, 1), (5, 2), (9, 2), (11, 1)]);
        assert_eq!((one.count, one.sum, one.min, one.max), (7, 42, 1, 11));
        one.merge(&Histogram::default());
        assert_eq!((one.count, one.min), (7, 1));
        assert_eq!(one.mean_us(), Some(6.0));
    }
}
