//! Durations, written with their unit: `30s`, `250ms`, `3min`, `800us`.

use crate::config::setting::Ranged;
use crate::config::values::quantity::{self, Unit};
use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;
use std::time::Duration;

/// A length of time in whole microseconds. A plain integer is refused in files: it would not say of
/// what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    microseconds: u64,
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self::from_millis(0);

    /// `count` microseconds.
    #[must_use]
    pub const fn from_micros(count: u64) -> Self {
        Self {
            microseconds: count,
        }
    }

    /// `count` milliseconds; saturates.
    #[must_use]
    pub const fn from_millis(count: u64) -> Self {
        Self::from_micros(count.saturating_mul(US_PER_MS))
    }

    /// `count` seconds; saturates.
    #[must_use]
    pub const fn from_secs(count: u64) -> Self {
        Self::from_micros(count.saturating_mul(US_PER_SECOND))
    }

    /// `count` minutes; saturates.
    #[must_use]
    pub const fn from_mins(count: u64) -> Self {
        Self::from_micros(count.saturating_mul(US_PER_MINUTE))
    }

    /// `count` hours; saturates.
    #[must_use]
    pub const fn from_hours(count: u64) -> Self {
        Self::from_micros(count.saturating_mul(US_PER_HOUR))
    }

    /// `count` days of 24 hours; saturates.
    #[must_use]
    pub const fn from_days(count: u64) -> Self {
        Self::from_micros(count.saturating_mul(US_PER_DAY))
    }

    /// The length in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.microseconds
    }

    /// The length in milliseconds, rounded up: a limit below a millisecond is not one of 0.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.microseconds.div_ceil(US_PER_MS)
    }

    /// The length in whole seconds, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.microseconds / US_PER_SECOND
    }

    /// The length as the standard library has it.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_micros(self.microseconds)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.as_duration()
    }
}

impl Ranged for Span {}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.microseconds, UNITS, "s")
    }
}

impl std::str::FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        quantity::parse(text, "duration", UNITS).map(Self::from_micros)
    }
}

impl Form for Span {
    const FORM: &'static str = "a duration with its unit, such as \"30s\" or \"250ms\"";
}

text_value!(Span);

const US_PER_MS: u64 = 1000;
const US_PER_SECOND: u64 = 1000 * US_PER_MS;
const US_PER_MINUTE: u64 = 60 * US_PER_SECOND;
const US_PER_HOUR: u64 = 60 * US_PER_MINUTE;
const US_PER_DAY: u64 = 24 * US_PER_HOUR;

const UNITS: &[Unit] = &[
    Unit {
        name: "us",
        scale: 1,
        slips: &["usec", "micros", "microseconds"],
    },
    Unit {
        name: "ms",
        scale: US_PER_MS,
        slips: &["msec", "millis", "milliseconds"],
    },
    Unit {
        name: "s",
        scale: US_PER_SECOND,
        slips: &["sec", "secs", "second", "seconds"],
    },
    Unit {
        name: "min",
        scale: US_PER_MINUTE,
        slips: &["m", "mins", "minute", "minutes"],
    },
    Unit {
        name: "h",
        scale: US_PER_HOUR,
        slips: &["hr", "hour", "hours"],
    },
    Unit {
        name: "d",
        scale: US_PER_DAY,
        slips: &["day", "days"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(u64, &str), &str>) {
        let found = text
            .parse::<Span>()
            .map(|span| (span.as_micros(), span.to_string()))
            .map_err(|refusal| refusal.to_string());
        let expected = expected
            .map(|(microseconds, normal)| (microseconds, normal.to_owned()))
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn duration_is_displayed_in_the_largest_exact_unit() {
        check("250ms", Ok((250_000, "250ms")));
        check("1000ms", Ok((1_000_000, "1s")));
        check("999ms", Ok((999_000, "999ms")));
        check("60s", Ok((60_000_000, "1min")));
        check("61s", Ok((61_000_000, "61s")));
        check("3min", Ok((180_000_000, "3min")));
        check("24h", Ok((86_400_000_000, "1d")));
        check("0ms", Ok((0, "0s")));
        check("800us", Ok((800, "800us")));
        check("1000us", Ok((1000, "1ms")));
        check("1500us", Ok((1500, "1500us")));
    }

    #[test]
    fn duration_beyond_u64_microseconds_is_refused() {
        check(
            "18446744073709551615us",
            Ok((u64::MAX, "18446744073709551615us")),
        );
        check(
            "18446744073710s",
            Err("`18446744073710s` is larger than any duration can be"),
        );
    }

    #[test]
    fn fraction_of_a_millisecond_is_rounded_up() {
        let span = Span::from_micros(1);
        assert_eq!((span.as_micros(), span.as_millis()), (1, 1));
        assert_eq!(span.as_duration(), Duration::from_micros(1));
        assert_eq!(Span::from_micros(1001).as_millis(), 2);
        assert_eq!(Span::from_millis(3).as_millis(), 3);
    }

    #[test]
    fn duration_without_a_known_unit_is_refused() {
        let units = "expected one of `us`, `ms`, `s`, `min`, `h`, `d`";
        check(
            "30",
            Err("`30` is not a duration: its unit is missing (us, ms, s, min, h, d)"),
        );
        check(
            "3m",
            Err(&format!("unknown unit `m`, {units}; did you mean `3min`?")),
        );
        check(
            "30S",
            Err(&format!("unknown unit `S`, {units}; did you mean `30s`?")),
        );
        check("3KiB", Err(&format!("unknown unit `KiB`, {units}")));
        check(
            "1.5s",
            Err("`1.5s` is not a duration: a whole number and its unit are expected"),
        );
        assert!(serde_json::from_str::<Span>("30").is_err());
    }
}
