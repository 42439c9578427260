//! Counts as numbers to compute with.

/// A count as a number with a fraction.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, and are shown with a few digits"
)]
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// A part by its whole; `None` of nothing.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

/// A part of a whole, from 0 to 1; 0 of nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    ratio(part, whole).unwrap_or(0.0)
}
