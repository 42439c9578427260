//! How many bytes a second: a size and `/s`.

use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;

/// Bytes a second, written as in `500KiB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Rate(ByteSize);

impl Rate {
    /// A head and a segment are to pass in a time that a client waits for.
    pub(in crate::config) const MIN: Self = Self::from_kib(1);
    /// More than any link has.
    pub(in crate::config) const MAX: Self = Self(ByteSize::from_gib(1 << 10));

    /// So many KiB a second.
    pub(in crate::config) const fn from_kib(kib: u64) -> Self {
        Self(ByteSize::from_kib(kib))
    }

    /// Bytes a second.
    #[must_use]
    pub const fn bytes_s(self) -> u64 {
        self.0.bytes()
    }

    /// Refuses what is outside of the range.
    pub(in crate::config) fn check(self, key: &str) -> Result<(), Invalid> {
        check_range(key, &self, &Self::MIN, &Self::MAX)
    }
}

impl std::str::FromStr for Rate {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.strip_suffix("/s").filter(|size| !size.is_empty()) {
            Some(size) => size.parse().map(Self),
            None => {
                let problem = format!("`{text}` is no rate: a size and `/s` are expected");
                Err(BadValue::new(problem).suggesting("500KiB/s"))
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl Form for Rate {
    const FORM: &'static str = "a rate, such as \"500KiB/s\"";
}

text_value!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_a_size_a_second_within_its_range() {
        for (text, expected) in [
            ("1KiB/s", Some(1024)),
            ("500KiB/s", Some(512_000)),
            ("3GiB/s", Some(3 << 30)),
            ("1KiB", None),
            ("/s", None),
            ("", None),
            ("1KiB /s", None),
        ] {
            let rate = text.parse::<Rate>();
            assert_eq!(
                rate.as_ref().ok().map(|it| it.bytes_s()),
                expected,
                "{text}"
            );
            let written = rate.map(|it| it.to_string());
            assert!(written.is_err() || written.as_deref() == Ok(text), "{text}");
        }
        for (text, is_in_range) in [
            ("1023B/s", false),
            ("1KiB/s", true),
            ("1024GiB/s", true),
            ("1025GiB/s", false),
        ] {
            let rate: Rate = text.parse().expect("a rate");
            assert_eq!(rate.check("key").is_ok(), is_in_range, "{text}");
        }
    }
}
