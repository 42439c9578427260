//! How values are spread: mean, percentiles and density from bins of one percent's width.
//!
//! Bins are found by shifting, so that the same values make the same spread on every machine.

use serde::Serialize;
use weir_measure::quantile;

/// Bins between a number and its double.
const BINS_A_DOUBLING: u64 = 64;
const BITS: u32 = BINS_A_DOUBLING.ilog2();

/// Counted values: microseconds, or whatever is counted.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// A spread in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The 10th percentile.
    pub p10_us: u64,
    /// The 25th percentile.
    pub p25_us: u64,
    /// The median.
    pub median_us: u64,
    /// The 75th percentile.
    pub p75_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The largest.
    pub max_us: u64,
    /// The density, where there is any.
    pub density: Vec<Bin>,
}

/// A bin of the density: an eighth of a doubling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The smallest value in it.
    pub from_us: u64,
    /// The smallest value beyond it.
    pub to_us: u64,
    /// Which part of all values is in it.
    pub share: f64,
}

/// Bins of the density in a doubling.
const DENSITY_A_DOUBLING: u64 = 8;

impl Spread {
    /// Counts `value`.
    pub fn add(&mut self, value: u64) {
        let bin = bin_of(value);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// How many were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// The value below which `share` of all are, as exact as a bin is wide; within it values are
    /// taken to be spread evenly.
    #[must_use]
    pub fn at(&self, share: f64) -> u64 {
        let counts = self.counts.iter().copied().enumerate();
        let Some(rank) = quantile::rank(counts, self.count, share) else {
            return self.max;
        };
        let (from, to) = (from_of(rank.value), from_of(rank.value + 1));
        let wanted = share * self.count as f64 - rank.below as f64;
        let inside = (wanted / rank.count as f64).clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, reason = "no wider than its bin")]
        let value = from + ((to - from) as f64 * inside) as u64;
        value.min(to - 1).min(self.max)
    }

    /// In a few numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            mean_us: self.mean(),
            p10_us: self.at(0.10),
            p25_us: self.at(0.25),
            median_us: self.at(0.50),
            p75_us: self.at(0.75),
            p90_us: self.at(0.90),
            p99_us: self.at(0.99),
            max_us: self.max,
            density: self.density(),
        }
    }

    fn density(&self) -> Vec<Bin> {
        let step = usize::try_from(BINS_A_DOUBLING / DENSITY_A_DOUBLING).unwrap_or(1);
        let mut density = Vec::new();
        for (place, counts) in self.counts.chunks(step).enumerate() {
            let count: u64 = counts.iter().sum();
            if count > 0 {
                density.push(Bin {
                    from_us: from_of(place * step),
                    to_us: from_of((place + 1) * step),
                    share: count as f64 / self.count as f64,
                });
            }
        }
        density
    }
}

/// The bin of a value: below 64 each has its own, then 64 in each doubling.
fn bin_of(value: u64) -> usize {
    let bin = if value < BINS_A_DOUBLING {
        value
    } else {
        let shift = value.ilog2() - BITS;
        u64::from(shift) * BINS_A_DOUBLING + (value >> shift)
    };
    usize::try_from(bin).unwrap_or(usize::MAX)
}

/// The smallest value of a bin.
fn from_of(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < 2 * BINS_A_DOUBLING {
        return bin;
    }
    let shift = bin / BINS_A_DOUBLING - 1;
    let mantissa = u128::from(bin % BINS_A_DOUBLING + BINS_A_DOUBLING);
    u64::try_from(mantissa << shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_contiguous_and_do_not_overlap() {
        for bin in 0..3000 {
            let (from, to) = (from_of(bin), from_of(bin + 1));
            assert!(from < to, "{bin}");
            assert_eq!((bin_of(from), bin_of(to - 1)), (bin, bin), "{bin}");
        }
        assert_eq!(bin_of(u64::MAX), 58 * 64 + 63);
    }

    #[test]
    fn percentile_is_within_one_bin_width_of_the_exact_value() {
        let mut spread = Spread::default();
        for value in 1..=100_000 {
            spread.add(value);
        }
        assert!((spread.mean() - 50_000.5).abs() < 1e-9);
        for (share, exact) in [(0.1, 10_000.0), (0.5, 50_000.0), (0.99, 99_000.0)] {
            let found = spread.at(share) as f64;
            assert!((found / exact - 1.0).abs() < 0.016, "{share}: {found}");
        }
        assert_eq!(spread.at(1.0), 100_000);
        let density: f64 = spread.summary().density.iter().map(|bin| bin.share).sum();
        assert!((density - 1.0).abs() < 1e-9);
    }

    #[test]
    fn empty_distribution_has_count_zero_and_no_density() {
        let summary = Spread::default().summary();
        assert_eq!((summary.count, summary.median_us), (0, 0));
        assert!(summary.density.is_empty());
    }
}
