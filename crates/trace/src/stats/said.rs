//! What some rows say and others do not.

use hdrhistogram::Histogram;
use serde::Serialize;

/// How many rows say yes, of those that say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Rows that say yes.
    pub yes: u64,
    /// Rows that say anything; at least one.
    pub said: u64,
}

impl Share {
    /// Counts what a row says.
    pub(super) const fn add(&mut self, said: Option<bool>) {
        if let Some(yes) = said {
            self.said += 1;
            self.yes += yes as u64;
        }
    }

    /// `None` where no row said anything.
    pub(super) const fn finish(self) -> Option<Self> {
        if self.said == 0 { None } else { Some(self) }
    }

    /// From 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        weir_measure::share(self.yes, self.said)
    }
}

/// How a quantity is spread. Mean, least and greatest are exact; quantiles are within 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// A tenth are not above it.
    pub p10: u64,
    /// The median.
    pub p50: u64,
    /// Nine tenths are not above it.
    pub p90: u64,
    /// 99 of 100 are not above it.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

/// Significant digits of a histogram: quantiles are within a thousandth.
const DIGITS: u8 = 3;

/// Collects a quantity: half a megabyte at most, however many values.
#[derive(Debug, Default)]
pub(crate) struct Quantity {
    /// Made with the first value: most traces have few of the times.
    histogram: Option<Histogram<u64>>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Quantity {
    pub(crate) fn add(&mut self, value: Option<u64>) {
        let Some(value) = value else { return };
        if self.histogram.is_none() {
            self.min = value;
            self.histogram = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            // it grows as far as it must; where it cannot, the value counts as the greatest it has
            // room for
            if histogram.record(value).is_err() {
                histogram.saturating_record(value);
            }
        }
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// The `rank`th of the values in order, from 1; `None` without any.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rank that is off by one in 2^53 is no other quantile"
    )]
    pub(crate) fn at_rank(&self, rank: u64) -> Option<u64> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.value_at_quantile(rank as f64 / histogram.len() as f64))
    }

    /// What all values come to; `None` without any.
    pub(super) fn total(&self) -> Option<u64> {
        self.histogram.as_ref()?;
        Some(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean is shown with four digits"
    )]
    pub(crate) fn finish(&self) -> Option<Spread> {
        let histogram = self.histogram.as_ref()?;
        let at = |share| histogram.value_at_quantile(share).clamp(self.min, self.max);
        Some(Spread {
            count: histogram.len(),
            mean: self.sum as f64 / histogram.len() as f64,
            min: self.min,
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_absent_from_every_row_is_none_and_a_recorded_zero_is_zero() {
        assert_eq!(Share::default().finish(), None);
        assert_eq!(Quantity::default().finish(), None);
        assert_eq!(Quantity::default().total(), None);
        let mut share = Share::default();
        share.add(None);
        share.add(Some(false));
        assert_eq!(share.finish(), Some(Share { yes: 0, said: 1 }));
        let mut zero = Quantity::default();
        zero.add(None);
        zero.add(Some(0));
        assert_eq!(zero.total(), Some(0));
        assert_eq!(
            zero.finish().map(|spread| (spread.count, spread.max)),
            Some((1, 0))
        );
    }

    #[test]
    fn quantiles_tolerate_extreme_values_and_the_total_saturates() {
        let mut quantity = Quantity::default();
        for value in [5, u64::MAX, 1_000_003] {
            quantity.add(Some(value));
        }
        let spread = quantity.finish().expect("values");
        assert_eq!((spread.min, spread.p10, spread.max), (5, 5, u64::MAX));
        assert!(spread.p50.abs_diff(1_000_003) <= 1000, "{spread:?}");
        assert!(spread.p99 > u64::MAX / 2, "{spread:?}");
        assert_eq!(quantity.total(), Some(u64::MAX));
    }
}
