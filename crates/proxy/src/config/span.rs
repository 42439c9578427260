//! Durations, written with their unit: `30s`, `250ms`, `3min`.

use super::quantity::{self, Unit};
use super::value::{BadValue, Form, text_value};
use std::fmt;
use std::time::Duration;

/// A length of time in whole milliseconds. A plain integer is refused in files: it would not say of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    milliseconds: u64,
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self::from_millis(0);

    /// `count` milliseconds.
    #[must_use]
    pub const fn from_millis(count: u64) -> Self {
        Self {
            milliseconds: count,
        }
    }

    /// `count` seconds; saturates.
    #[must_use]
    pub const fn from_secs(count: u64) -> Self {
        Self::from_millis(count.saturating_mul(MS_PER_SECOND))
    }

    /// `count` minutes; saturates.
    #[must_use]
    pub const fn from_mins(count: u64) -> Self {
        Self::from_millis(count.saturating_mul(MS_PER_MINUTE))
    }

    /// `count` hours; saturates.
    #[must_use]
    pub const fn from_hours(count: u64) -> Self {
        Self::from_millis(count.saturating_mul(MS_PER_HOUR))
    }

    /// `count` days of 24 hours; saturates.
    #[must_use]
    pub const fn from_days(count: u64) -> Self {
        Self::from_millis(count.saturating_mul(MS_PER_DAY))
    }

    /// The length in milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.milliseconds
    }

    /// The length in whole seconds, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.milliseconds / MS_PER_SECOND
    }

    /// The length as the standard library has it.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.as_duration()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.milliseconds, UNITS, "s")
    }
}

impl std::str::FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        quantity::parse(text, "duration", UNITS).map(Self::from_millis)
    }
}

impl Form for Span {
    const FORM: &'static str = "a duration with its unit, such as \"30s\" or \"250ms\"";
}

text_value!(Span);

const MS_PER_SECOND: u64 = 1000;
const MS_PER_MINUTE: u64 = 60 * MS_PER_SECOND;
const MS_PER_HOUR: u64 = 60 * MS_PER_MINUTE;
const MS_PER_DAY: u64 = 24 * MS_PER_HOUR;

const UNITS: &[Unit] = &[
    Unit {
        name: "ms",
        scale: 1,
        slips: &["msec", "millis", "milliseconds"],
    },
    Unit {
        name: "s",
        scale: MS_PER_SECOND,
        slips: &["sec", "secs", "second", "seconds"],
    },
    Unit {
        name: "min",
        scale: MS_PER_MINUTE,
        slips: &["m", "mins", "minute", "minutes"],
    },
    Unit {
        name: "h",
        scale: MS_PER_HOUR,
        slips: &["hr", "hour", "hours"],
    },
    Unit {
        name: "d",
        scale: MS_PER_DAY,
        slips: &["day", "days"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(u64, &str), &str>) {
        let found = text
            .parse::<Span>()
            .map(|span| (span.as_millis(), span.to_string()))
            .map_err(|refusal| refusal.to_string());
        let expected = expected
            .map(|(milliseconds, normal)| (milliseconds, normal.to_owned()))
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn duration_is_written_back_in_another_unit_than_the_largest_exact_one() {
        check("250ms", Ok((250, "250ms")));
        check("1000ms", Ok((1000, "1s")));
        check("999ms", Ok((999, "999ms")));
        check("60s", Ok((60_000, "1min")));
        check("61s", Ok((61_000, "61s")));
        check("3min", Ok((180_000, "3min")));
        check("24h", Ok((86_400_000, "1d")));
        check("0ms", Ok((0, "0s")));
    }

    #[test]
    fn duration_beyond_u64_milliseconds_is_accepted() {
        check(
            "18446744073709551615ms",
            Ok((u64::MAX, "18446744073709551615ms")),
        );
        check(
            "18446744073709552s",
            Err("`18446744073709552s` is larger than any duration can be"),
        );
    }

    #[test]
    fn duration_without_a_known_unit_is_accepted() {
        let units = "expected one of `ms`, `s`, `min`, `h`, `d`";
        check(
            "30",
            Err("`30` is not a duration: its unit is missing (ms, s, min, h, d)"),
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
