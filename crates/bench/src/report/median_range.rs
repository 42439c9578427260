//! Runs that were made more than once: the median, and from where to where they went.

use weir_measure::quantile::Spread;

/// A number of one run, or of several that were alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianRange {
    /// The median of all; of two, what lies between them.
    pub(super) median: f64,
    /// The least and the greatest, if there is more than one.
    pub(super) range: Option<(f64, f64)>,
}

impl MedianRange {
    /// `None` without a value.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut count = 0;
        let spread = Spread::of(values.inspect(|_| count += 1))?;
        Some(Self {
            median: spread.median,
            range: (count > 1).then_some((spread.min, spread.max)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_have_median_and_range_and_a_single_run_no_range() {
        let of = |values: &[f64]| MedianRange::of(values.iter().copied());
        let expected = |median, range| Some(MedianRange { median, range });
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), expected(3.0, None));
        assert_eq!(of(&[9.0, 3.0]), expected(6.0, Some((3.0, 9.0))));
        assert_eq!(of(&[9.0, 3.0, 4.0]), expected(4.0, Some((3.0, 9.0))));
    }
}
