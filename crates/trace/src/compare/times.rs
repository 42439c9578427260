//! Response times of pairs.

use super::super::stats::{Quantity, Spread};
use super::Sides;
use serde::Serialize;

/// Microseconds from request to response head, of pairs of which both rows say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// Times that differ by no more are equal.
    pub tolerance_us: u64,
    /// Pairs with equal times.
    pub equal: u64,
    /// Pairs with different ones.
    pub different: u64,
    /// Pairs of which not both rows say.
    pub unsaid: u64,
    /// The times of each trace.
    pub each: Sides<Option<TimesOfOne>>,
    /// The median of the second trace's time less the first one's, within 0.1 %.
    pub median_difference_us: Option<i64>,
    /// Nine tenths of the pairs differ by no more than this, in whichever direction.
    pub p90_difference_us: Option<u64>,
}

/// The times of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimesOfOne {
    /// The median.
    pub median_us: u64,
    /// Nine tenths are not above it.
    pub p90_us: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    times: Times,
    a: Quantity,
    b: Quantity,
    differences: Quantity,
    /// Differences of pairs whose second time is shorter, and of the others.
    shorter: Quantity,
    longer: Quantity,
}

impl Counter {
    pub(super) fn new(tolerance_us: u64) -> Self {
        Self {
            times: Times {
                tolerance_us,
                ..Times::default()
            },
            ..Self::default()
        }
    }

    /// Counts a pair; whether it differs.
    pub(super) fn pair(&mut self, a: Option<u64>, b: Option<u64>) -> bool {
        let (Some(a), Some(b)) = (a, b) else {
            self.times.unsaid += 1;
            return false;
        };
        self.a.add(Some(a));
        self.b.add(Some(b));
        let difference = a.abs_diff(b);
        self.differences.add(Some(difference));
        let signs = if b < a {
            &mut self.shorter
        } else {
            &mut self.longer
        };
        signs.add(Some(difference));
        let is_different = difference > self.times.tolerance_us;
        self.times.equal += u64::from(!is_different);
        self.times.different += u64::from(is_different);
        is_different
    }

    pub(super) fn finish(self) -> Times {
        let one = |spread: Spread| TimesOfOne {
            median_us: spread.p50,
            p90_us: spread.p90,
        };
        Times {
            each: Sides {
                a: self.a.finish().map(one),
                b: self.b.finish().map(one),
            },
            median_difference_us: self.median(),
            p90_difference_us: self.differences.finish().map(|spread| spread.p90),
            ..self.times
        }
    }

    fn median(&self) -> Option<i64> {
        let (shorter, longer) = (self.shorter.len(), self.longer.len());
        let rank = (shorter + longer).div_ceil(2);
        let us = |value| i64::try_from(value).unwrap_or(i64::MAX);
        if rank <= shorter {
            // the largest of them comes first
            self.shorter
                .at_rank(shorter - rank + 1)
                .map(|value| -us(value))
        } else {
            self.longer.at_rank(rank - shorter).map(us)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(pairs: &[(u64, u64)]) -> Option<i64> {
        let mut counter = Counter::new(0);
        for (a, b) in pairs {
            counter.pair(Some(*a), Some(*b));
        }
        counter.finish().median_difference_us
    }

    #[test]
    fn median_difference_has_the_sign_of_the_middle_pair() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[(5, 5)]), Some(0));
        assert_eq!(median(&[(100, 10), (100, 20), (1, 500)]), Some(-80));
        assert_eq!(median(&[(100, 10), (1, 3), (1, 500)]), Some(2));
        assert_eq!(median(&[(30, 10), (30, 20), (30, 25), (9, 9)]), Some(-10));
    }

    #[test]
    fn times_within_the_tolerance_are_equal() {
        let mut counter = Counter::new(10);
        assert!(!counter.pair(Some(100), Some(110)));
        assert!(counter.pair(Some(100), Some(111)));
        assert!(counter.pair(Some(111), Some(100)));
        assert!(!counter.pair(None, Some(100)));
        let times = counter.finish();
        assert_eq!((times.equal, times.different, times.unsaid), (1, 2, 1));
        assert_eq!(times.p90_difference_us, Some(11));
    }
}
