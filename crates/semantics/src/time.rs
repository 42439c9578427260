//! Points and spans of time at the resolution of HTTP: whole seconds (RFC 9110 §5.6.7, RFC 9111
//! §1.2.2).

/// Seconds since 1970-01-01T00:00:00Z, leap seconds not counted; the resolution of an HTTP-date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Seconds from `earlier` to this time; zero if `earlier` is later, saturates at
    /// [`DeltaSeconds::MAX`].
    #[must_use]
    pub const fn since(self, earlier: Self) -> DeltaSeconds {
        let seconds = self.0.saturating_sub(earlier.0);
        if seconds <= 0 {
            DeltaSeconds::ZERO
        } else {
            DeltaSeconds::from_secs(seconds.unsigned_abs())
        }
    }

    /// The time `delta` later; saturates.
    #[must_use]
    pub const fn plus(self, delta: DeltaSeconds) -> Self {
        // widening, and `From` is not const
        Self(self.0.saturating_add(delta.0 as i64))
    }
}

/// A non-negative number of seconds, RFC 9111 §1.2.2 `delta-seconds`; 0 to 2^31, larger values
/// saturate there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeltaSeconds(pub u32);

impl DeltaSeconds {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// 2^31 seconds (68 years): what RFC 9111 §1.2.2 has a cache use for everything larger, "as
    /// good as for ever".
    pub const MAX: Self = Self(1 << 31);

    /// `seconds` as a span; saturates at [`DeltaSeconds::MAX`].
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        if seconds >= Self::MAX.0 as u64 {
            return Self::MAX;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than 2^31, checked above"
        )]
        Self(seconds as u32)
    }

    /// The span in seconds.
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// The sum; saturates at [`DeltaSeconds::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self::from_secs(self.0 as u64 + other.0 as u64)
    }

    /// The difference; zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Reads `1*DIGIT`; saturates. `None` for anything else, a sign, a fraction and the empty
    /// string included.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        let mut seconds: u64 = 0;
        for byte in value {
            if !byte.is_ascii_digit() {
                return None;
            }
            seconds = seconds
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'));
        }
        Some(Self::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: Option<u32>) {
        assert_eq!(
            DeltaSeconds::parse(input.as_bytes()).map(|d| d.0),
            expected,
            "{input:?}"
        );
    }

    #[test]
    fn delta_seconds_are_digits_only_and_saturate() {
        check("0", Some(0));
        check("003600", Some(3600));
        check("2147483647", Some(2_147_483_647));
        check("2147483648", Some(2_147_483_648));
        check("2147483649", Some(2_147_483_648));
        check("99999999999999999999999999", Some(2_147_483_648));
        for invalid in ["", "-1", "+1", "1.0", "1 ", " 1", "a1", "1a", "'1'", "0x1"] {
            check(invalid, None);
        }
    }

    #[test]
    fn time_difference_is_never_negative() {
        assert_eq!(Timestamp(5).since(Timestamp(3)), DeltaSeconds(2));
        assert_eq!(Timestamp(5).since(Timestamp(5)), DeltaSeconds::ZERO);
        assert_eq!(Timestamp(3).since(Timestamp(5)), DeltaSeconds::ZERO);
        assert_eq!(
            Timestamp(i64::MAX).since(Timestamp(i64::MIN)),
            DeltaSeconds::MAX
        );
    }

    #[test]
    fn time_sums_and_differences_saturate() {
        assert_eq!(
            DeltaSeconds(1).saturating_sub(DeltaSeconds(2)),
            DeltaSeconds::ZERO
        );
        assert_eq!(
            DeltaSeconds::MAX.saturating_add(DeltaSeconds(1)),
            DeltaSeconds::MAX
        );
        assert_eq!(
            Timestamp(i64::MAX).plus(DeltaSeconds(1)),
            Timestamp(i64::MAX)
        );
        assert_eq!(Timestamp(-1).plus(DeltaSeconds(1)), Timestamp(0));
    }
}
