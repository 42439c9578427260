//! A latency histogram with fixed buckets.
//!
//! Bucket `i` holds the times of at most 2^i microseconds that the bucket before does not hold: 1
//! us, 2 us, 4 us ... 67 s, and one bucket for what is longer. A factor of two is coarse, but it
//! never needs configuring, a record is three instructions and two additions, and blocks of workers
//! are summed bucket by bucket.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::counters::bump;

/// Number of buckets: limits 2^0 to 2^26 microseconds, and one without a limit.
pub const BUCKETS: usize = 28;

/// What the histogram of response times shows.
pub const RESPONSE_TIME_HELP: &str = "From the first byte of a request to the last of its response, by where the response came from.";

/// Largest time that bucket `index` holds, in microseconds; `None` for the last bucket, which has
/// no limit.
#[must_use]
pub const fn bucket_limit_us(index: usize) -> Option<u64> {
    if index + 1 < BUCKETS {
        Some(1 << index)
    } else {
        None
    }
}

/// Times of one worker; one thread writes, any may read.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Histogram {
    /// All zero.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_us: AtomicU64::new(0),
        }
    }

    /// Records one time in microseconds. Only the owner may call this.
    #[inline]
    pub fn record(&self, us: u64) {
        bump(&self.buckets[bucket_of(us)], 1);
        bump(&self.sum_us, us);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The sum of some workers' histograms at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Times in each bucket, not cumulated.
    pub buckets: [u64; BUCKETS],
    /// Sum of all times, microseconds.
    pub sum_us: u64,
}

impl HistogramSnapshot {
    /// Number of times recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum = sum.wrapping_add(bucket.load(Relaxed));
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us.load(Relaxed));
    }
}

/// Place of the bucket for `us`: the exponent of the next power of two.
#[inline]
fn bucket_of(us: u64) -> usize {
    let exponent = u64::BITS - us.saturating_sub(1).leading_zeros();
    (exponent as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_in_the_bucket_of_its_next_power_of_two() {
        let data = [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (1 << 26, 26),
            ((1 << 26) + 1, 27),
            (u64::MAX, 27),
        ];
        for (us, expected) in data {
            assert_eq!(bucket_of(us), expected, "{us}");
            if let Some(limit) = bucket_limit_us(expected) {
                assert!(us <= limit, "{us} is over its bucket's limit");
            }
        }
        assert_eq!(bucket_limit_us(26), Some(67_108_864));
        assert_eq!(bucket_limit_us(27), None);
    }

    #[test]
    fn snapshot_has_the_count_and_the_sum_of_all_times() {
        let histogram = Histogram::new();
        for _ in 0..99 {
            histogram.record(3);
        }
        histogram.record(1000);
        let mut snapshot = HistogramSnapshot::default();
        snapshot.add(&histogram);
        assert_eq!(snapshot.count(), 100);
        assert_eq!(snapshot.sum_us, 99 * 3 + 1000);
    }
}
