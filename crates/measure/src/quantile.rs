//! Quantiles, by one definition: the nearest rank. The quantile `share` of `n` values is the
//! smallest value that at least `share * n` of them do not exceed, so it is always one of the
//! values.
//!
//! The median of a few repetitions ([`Spread`]) is the exception: of an even number of values it is
//! the mean of the two in the middle, because one of them alone would favour a side.

use alloc::vec::Vec;

/// The place of a quantile among counted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank<T> {
    /// The value, or the bucket of values.
    pub value: T,
    /// How many of it there are.
    pub count: u64,
    /// How many are below it.
    pub below: u64,
}

/// Finds the quantile `share`, which is clamped to 0..=1, of `total` values. `counts` are the
/// values or buckets, rising, and how many there are of each. `None` without a value.
#[expect(
    clippy::cast_precision_loss,
    reason = "a quantile of more than 2^53 values may be off by one"
)]
pub fn rank<T>(
    counts: impl IntoIterator<Item = (T, u64)>,
    total: u64,
    share: f64,
) -> Option<Rank<T>> {
    let wanted = share.clamp(0.0, 1.0) * total as f64;
    let mut below = 0;
    for (value, count) in counts {
        if count > 0 && (below + count) as f64 >= wanted {
            return Some(Rank {
                value,
                count,
                below,
            });
        }
        below += count;
    }
    None
}

/// The quantile `share`, which is clamped to 0..=1, of values that rise. `None` without a value.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and not beyond the number of values"
)]
pub fn of_sorted<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let wanted = share.clamp(0.0, 1.0) * sorted.len() as f64;
    let below = wanted as usize;
    let nearest = below + usize::from((below as f64) < wanted);
    sorted.get(nearest.saturating_sub(1)).copied()
}

/// Minimum, median and maximum of some repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The one in the middle; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` without a value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self { min, median, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_the_nearest_rank_on_both_sides_of_a_step() {
        let values: Vec<u64> = (1..=100).collect();
        let data = [
            (-1.0, 1),
            (0.0, 1),
            (0.01, 1),
            (0.010_001, 2),
            (0.5, 50),
            (0.500_001, 51),
            (0.99, 99),
            (1.0, 100),
            (2.0, 100),
        ];
        for (share, expected) in data {
            assert_eq!(of_sorted(&values, share), Some(expected), "{share}");
            let counts = values.iter().map(|value| (*value, 1));
            let found = rank(counts, 100, share).map(|rank| (rank.value, rank.below));
            assert_eq!(found, Some((expected, expected - 1)), "{share}");
        }
        assert_eq!(of_sorted::<u64>(&[], 0.5), None);
        assert_eq!(rank([(1, 0)], 0, 0.5), None);
    }

    #[test]
    fn empty_buckets_are_skipped() {
        let counts = [('a', 0), ('b', 3), ('c', 0), ('d', 1)];
        let at = |share| rank(counts, 4, share).map(|rank| rank.value);
        assert_eq!(at(0.0), Some('b'));
        assert_eq!(at(0.75), Some('b'));
        assert_eq!(at(0.76), Some('d'));
    }

    #[test]
    fn median_of_repetitions_is_the_middle_value_or_the_mean_of_the_two_middle_ones() {
        let of = |values: &[f64]| {
            Spread::of(values.iter().copied()).map(|it| (it.min, it.median, it.max))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), Some((3.0, 3.0, 3.0)));
        assert_eq!(of(&[9.0, 3.0]), Some((3.0, 6.0, 9.0)));
        assert_eq!(of(&[9.0, 3.0, 4.0]), Some((3.0, 4.0, 9.0)));
    }
}
