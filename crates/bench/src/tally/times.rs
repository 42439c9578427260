//! A distribution of times, in microseconds, that merges without loss.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use weir_measure::{Merge, record};

/// The longest time that is recorded exactly, in microseconds: an hour. No client waits that long
/// for a response.
pub const LONGEST_US: u64 = 3_600_000_000;

/// Significant digits: a value is kept to a thousandth of itself.
const DIGITS: u8 = 3;

/// A distribution of times from 1 us to [`LONGEST_US`]; those outside count as the nearest of the
/// two.
///
/// Serialised as the histogram of a record, from which the same distribution comes back: merging on
/// another machine loses nothing.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "record::Histogram", into = "record::Histogram")]
pub struct Times {
    histogram: Histogram<u64>,
    sum_us: u64,
    min_us: u64,
    max_us: u64,
}

impl Times {
    /// An empty one.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts, which a test shows.
    #[must_use]
    pub fn new() -> Self {
        let mut histogram = Histogram::new_with_bounds(1, LONGEST_US, DIGITS)
            .expect("the bounds are at least a factor of two apart, and five digits are allowed");
        // a phase without a hit should not cost as much memory as one with
        histogram.auto(false);
        Self {
            histogram,
            sum_us: 0,
            min_us: u64::MAX,
            max_us: 0,
        }
    }

    /// Adds one time.
    #[inline]
    pub fn record(&mut self, us: u64) {
        self.record_many(us, 1);
    }

    /// Adds a time that was measured so often.
    pub fn record_many(&mut self, us: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.histogram
            .saturating_record_n(us.clamp(1, LONGEST_US), count);
        self.sum_us = self.sum_us.saturating_add(us.saturating_mul(count));
        self.min_us = self.min_us.min(us);
        self.max_us = self.max_us.max(us);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their sum, in microseconds, exactly.
    #[must_use]
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// Their mean, in microseconds; zero if there are none.
    #[must_use]
    pub fn mean_us(&self) -> u64 {
        self.sum_us.checked_div(self.count()).unwrap_or(0)
    }

    /// The least, exactly; `None` if there are none.
    #[must_use]
    pub fn min_us(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_us)
    }

    /// The greatest, exactly; `None` if there are none.
    #[must_use]
    pub fn max_us(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_us)
    }

    /// The least time that this share (0 to 1) of them does not exceed, to three digits; zero if
    /// there are none.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        self.histogram.value_at_quantile(share)
    }

    /// Times and how often each was measured, ascending. A time stands for all that share its first
    /// three digits.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

impl Merge for Times {
    fn merge(&mut self, other: &Self) {
        for (us, count) in other.pairs() {
            self.histogram.saturating_record_n(us, count);
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Times")
            .field("sum_us", &self.sum_us)
            .field("pairs", &self.pairs().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Times> for record::Histogram {
    fn from(times: Times) -> Self {
        Self {
            count: times.count(),
            sum: times.sum_us,
            min: times.min_us().unwrap_or(0),
            max: times.max_us,
            buckets: times.pairs().collect(),
            ..Self::default()
        }
    }
}

impl From<record::Histogram> for Times {
    fn from(record: record::Histogram) -> Self {
        let mut times = Self::new();
        for (us, count) in record.buckets {
            let us = us.clamp(1, LONGEST_US);
            times.histogram.saturating_record_n(us, count);
        }
        if record.count > 0 {
            (times.sum_us, times.min_us, times.max_us) = (record.sum, record.min, record.max);
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Times {
        let mut times = Times::new();
        for &us in values {
            times.record(us);
        }
        times
    }

    #[test]
    fn empty_distribution_has_no_minimum_or_maximum() {
        let times = Times::new();
        assert_eq!(
            (times.count(), times.min_us(), times.max_us()),
            (0, None, None)
        );
        assert_eq!((times.mean_us(), times.quantile_us(0.99)), (0, 0));
    }

    #[test]
    fn time_beyond_the_bounds_is_still_counted_and_kept_as_maximum() {
        let times = of(&[0, 2 * LONGEST_US]);
        assert_eq!(times.count(), 2);
        assert_eq!(times.max_us(), Some(2 * LONGEST_US));
        assert!(times.quantile_us(1.0) >= LONGEST_US);
    }

    proptest! {
        #[test]
        fn serialized_and_merged_distributions_lose_no_value(
            left in prop::collection::vec(0..10_000_000_u64, 0..60),
            right in prop::collection::vec(0..10_000_000_u64, 0..60),
        ) {
            let whole = of(&[left.clone(), right.clone()].concat());
            let sent = serde_json::to_string(&of(&right)).unwrap();
            let mut merged = of(&left);
            merged.merge(&serde_json::from_str(&sent).unwrap());
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(merged.sum_us(), left.iter().chain(&right).sum::<u64>());
        }
    }
}
