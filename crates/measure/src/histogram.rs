//! A histogram of times with fixed buckets.
//!
//! There are four buckets of equal width in each factor of two from 1 us to 67 s, one for what is
//! shorter and one for what is longer. They never need configuring, a record is six instructions
//! and two additions, and blocks of workers are summed bucket by bucket. A quantile that is read
//! between the limits of a bucket is at most a quarter off, and a few per cent where times are
//! spread.
//!
//! `/metrics` shows a limit for each factor of two ([`HistogramSnapshot::octaves`]): 28 lines and
//! not 106 for each source.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::counters::bump;
use crate::quantile::rank;
use crate::ratio::float;

/// Factors of two, each with a limit that `/metrics` shows: 2^0 to 2^26 microseconds, and one
/// without a limit.
pub const OCTAVES: usize = 28;

/// Buckets in a factor of two.
const STEPS: usize = 4;

/// Number of buckets: [`STEPS`] in each factor of two, one for up to 1 us, and one without a limit.
const BUCKETS: usize = (OCTAVES - 2) * STEPS + 2;

/// What the histogram of response times shows.
pub const RESPONSE_TIME_HELP: &str = "From the first byte of a request to the last of its response, by where the response came from.";

/// What the histogram of hold times shows.
pub const HOLD_TIME_HELP: &str = "How long packets of a client's connection were dropped while this front end handed it over, or tried to.";

/// Largest time that factor of two `index` holds, in microseconds; `None` for the last one, which
/// has no limit.
#[must_use]
pub const fn octave_limit_us(index: usize) -> Option<u64> {
    if index + 1 < OCTAVES {
        Some(1 << index)
    } else {
        None
    }
}

/// Largest time that bucket `index` holds, in microseconds; `None` for the last bucket, which has
/// no limit.
const fn bucket_limit_us(index: usize) -> Option<u64> {
    if index == 0 {
        return Some(1);
    }
    if index + 1 >= BUCKETS {
        return None;
    }
    let (octave, step) = ((index - 1) / STEPS, (index - 1) % STEPS);
    // times are whole: below 4 us some buckets hold none
    Some((((STEPS + 1 + step) as u64) << octave).div_ceil(STEPS as u64))
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Times in each bucket, not cumulated.
    buckets: [u64; BUCKETS],
    /// Sum of all times, microseconds.
    pub sum_us: u64,
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            sum_us: 0,
        }
    }
}

impl HistogramSnapshot {
    /// Number of times recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Times in each factor of two, not cumulated.
    #[must_use]
    pub fn octaves(&self) -> [u64; OCTAVES] {
        let mut octaves = [0; OCTAVES];
        for (index, count) in self.buckets.iter().enumerate() {
            let octave = index.div_ceil(STEPS).min(OCTAVES - 1);
            octaves[octave] += count;
        }
        octaves
    }

    /// What was recorded since `earlier`, a snapshot of the same histograms.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (count, before) in since.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.wrapping_sub(*before);
        }
        since.sum_us = since.sum_us.wrapping_sub(earlier.sum_us);
        since
    }

    /// Adds what another snapshot has.
    pub fn merge(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum = sum.wrapping_add(*count);
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
    }

    /// The quantile `share`, which is clamped to 0..=1, in microseconds: read between the limits of
    /// its bucket, as if the times in it were evenly spread. Of times without a limit it is the
    /// largest limit. `None` without a time.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        let count = self.count();
        let rank = rank(self.buckets.iter().copied().enumerate(), count, share)?;
        let index = rank.value;
        let below = index.checked_sub(1).and_then(bucket_limit_us).unwrap_or(0);
        let above = bucket_limit_us(index).unwrap_or(below);
        let wanted = share.clamp(0.0, 1.0) * float(count) - float(rank.below);
        let part = (wanted / float(rank.count)).clamp(0.0, 1.0);
        Some(float(below) + part * float(above - below))
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum = sum.wrapping_add(bucket.load(Relaxed));
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us.load(Relaxed));
    }
}

/// Place of the bucket for `us`: the exponent of the next power of two, and the two bits behind the
/// first one.
#[inline]
fn bucket_of(us: u64) -> usize {
    let time = us.saturating_sub(1);
    let zeros = time.leading_zeros();
    let octave = (u64::BITS - zeros) as usize;
    let step = (time.wrapping_shl(zeros) >> (u64::BITS - 3)) as usize % STEPS;
    (octave * STEPS + step)
        .saturating_sub(STEPS - 1)
        .min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot of these times.
    fn of(times: impl IntoIterator<Item = u64>) -> HistogramSnapshot {
        let histogram = Histogram::new();
        times.into_iter().for_each(|us| histogram.record(us));
        let mut snapshot = HistogramSnapshot::default();
        snapshot.add(&histogram);
        snapshot
    }

    #[test]
    fn time_is_in_the_first_bucket_whose_limit_it_does_not_exceed() {
        let times = (0..5_000).chain((12..26).flat_map(|exponent| {
            let power = 1_u64 << exponent;
            [0, power / 4, power / 2, power * 3 / 4]
                .into_iter()
                .flat_map(move |more| [power + more - 1, power + more, power + more + 1])
        }));
        for us in times {
            let index = bucket_of(us);
            let limit = bucket_limit_us(index).expect("below a minute");
            assert!(
                us <= limit,
                "{us} is over the limit {limit} of its bucket {index}"
            );
            let holds = |bucket: usize| us <= bucket_limit_us(bucket).expect("has a limit");
            assert!(
                !(0..index).any(holds),
                "{us} is not over all limits before bucket {index}"
            );
        }
        for us in [(1 << 26) + 1, u64::MAX] {
            assert_eq!(bucket_of(us), BUCKETS - 1);
        }
        assert_eq!(bucket_limit_us(BUCKETS - 2), Some(67_108_864));
        assert_eq!(bucket_limit_us(BUCKETS - 1), None);
    }

    #[test]
    fn octave_counts_the_times_up_to_its_power_of_two_that_the_one_before_does_not() {
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
            let mut octaves = [0; OCTAVES];
            octaves[expected] = 1;
            assert_eq!(of([us]).octaves(), octaves, "{us}");
        }
        assert_eq!(octave_limit_us(26), Some(67_108_864));
        assert_eq!(octave_limit_us(27), None);
    }

    #[test]
    fn snapshot_has_the_count_and_the_sum_of_all_times() {
        let snapshot = of((0..99).map(|_| 3).chain([1000]));
        assert_eq!(snapshot.count(), 100);
        assert_eq!(snapshot.sum_us, 99 * 3 + 1000);
    }

    #[test]
    fn quantile_is_at_most_a_quarter_off_and_less_where_times_are_spread() {
        let mixed = (0..5_000_u32).map(|at| 10_u64.pow(at % 6 + 1) + u64::from(at));
        // the most that a quantile may be off
        let streams: [(f64, Vec<u64>); 3] = [
            (0.03, (1..=10_000).collect()),
            (0.25, vec![777; 1000]),
            (0.25, mixed.collect()),
        ];
        for (most, mut times) in streams {
            let snapshot = of(times.iter().copied());
            times.sort_unstable();
            for share in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let exact = float(crate::quantile::of_sorted(&times, share).expect("not empty"));
                let read = snapshot.quantile_us(share).expect("not empty");
                let error = (read - exact).abs() / exact;
                assert!(error <= most, "{share}: {read} and not {exact}");
            }
        }
        assert_eq!(of([]).quantile_us(0.5), None);
        assert_eq!(of([u64::MAX]).quantile_us(0.5), Some(67_108_864.0));
    }

    #[test]
    fn difference_of_two_snapshots_has_what_was_recorded_between_them() {
        let (first, second) = (of([3, 50]), of([3, 50, 60, 7_000]));
        assert_eq!(second.since(&first), of([60, 7_000]));
        let mut both = first;
        both.merge(&of([60, 7_000]));
        assert_eq!(both, second);
    }
}
