//! Runs that were made more than once: the median, and from where to where they went.

/// A number of one run, or of several that were alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repeated {
    /// The median of all; of two, what lies between them.
    pub(super) median: f64,
    /// The least and the greatest, if there is more than one.
    pub(super) range: Option<(f64, f64)>,
}

impl Repeated {
    /// `None` without a value.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self {
            median,
            range: (values.len() > 1).then_some((first, last)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_have_median_and_range_and_a_single_run_no_range() {
        let of = |values: &[f64]| Repeated::of(values.iter().copied());
        let expected = |median, range| Some(Repeated { median, range });
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0]), expected(3.0, None));
        assert_eq!(of(&[9.0, 3.0]), expected(6.0, Some((3.0, 9.0))));
        assert_eq!(of(&[9.0, 3.0, 4.0]), expected(4.0, Some((3.0, 9.0))));
    }
}
