//! Seconds of a generator's own time as whole microseconds.

/// Whole microseconds, rounded down; negative and unknown times are 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and a run of 2^53 us is 285 years"
)]
pub(super) fn microseconds(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::microseconds;

    #[test]
    fn microseconds_are_rounded_down_and_never_negative() {
        assert_eq!(microseconds(0.000_001_9), 1);
        assert_eq!(microseconds(4.0 * 3600.0), 14_400_000_000);
        assert_eq!(microseconds(-1.0), 0);
        assert_eq!(microseconds(f64::NAN), 0);
    }
}
