//! How many bytes a second: a size and `/s`.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Ranged, check_range};
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
        if let Some(bits) = BitRate::find(text) {
            return Err(bits.refusal(text));
        }
        match text.strip_suffix("/s").filter(|size| !size.is_empty()) {
            Some(size) => size
                .parse()
                .map(Self)
                .map_err(|refusal: BadValue| BadValue {
                    suggestion: refusal.suggestion.map(|size| format!("{size}/s")),
                    ..refusal
                }),
            None => {
                let refusal = BadValue::new(format!(
                    "`{text}` is no rate: a size and `/s` are expected, such as `500KiB/s`"
                ));
                Err(match size_meant(text) {
                    Some(size) => refusal.suggesting(format!("{size}/s")),
                    None => refusal,
                })
            }
        }
    }
}

/// The size that `text` is or was meant to be, with its unit spelt out or not.
fn size_meant(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(end?);
    let unit = unit.trim().trim_end_matches("ps").trim_end_matches('/');
    let size = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => format!("{number}KiB"),
        "m" | "mb" => format!("{number}MiB"),
        "g" | "gb" => format!("{number}GiB"),
        unit => format!("{number}{unit}"),
    };
    match size.parse::<ByteSize>() {
        Ok(_) => Some(size),
        Err(refusal) => refusal.suggestion,
    }
}

/// A rate in bits, as providers of links write it. It is refused: one that is taken for bytes is
/// wrong by a factor of eight.
struct BitRate {
    /// Bits a second; `None` where the number is none, or does not fit.
    bits_s: Option<u64>,
}

impl BitRate {
    /// Of `text`, if it is one.
    fn find(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
        let (number, unit) = text.split_at(end?);
        // `MBps` is bytes
        let unit = Some(unit.trim()).filter(|unit| !unit.contains("Bps"))?;
        let unit = unit.to_ascii_lowercase();
        let prefix = BIT_UNITS.iter().find_map(|name| unit.strip_suffix(name))?;
        let scale = match prefix.trim_end() {
            "" => 1,
            "k" | "kilo" => 1000,
            "m" | "mega" => 1_000_000,
            "g" | "giga" => 1_000_000_000,
            _ => return None,
        };
        Some(Self {
            bits_s: scaled(number, scale),
        })
    }

    /// Whole KiB or MiB, and no more than was meant.
    fn refusal(&self, text: &str) -> BadValue {
        let expected = "bytes a second are expected, such as `500KiB/s`";
        let Some(bytes_s) = self.bits_s.map(|bits_s| bits_s / 8) else {
            return BadValue::new(format!("`{text}` is a rate in bits: {expected}"));
        };
        let unit_bits = [20, 10, 0].into_iter().find(|bits| bytes_s >> bits >= 16);
        let unit_bits = unit_bits.unwrap_or(0);
        let rounded = ByteSize::from_bytes(bytes_s >> unit_bits << unit_bits);
        let problem = format!("`{text}` is a rate in bits, {bytes_s} bytes a second: {expected}");
        BadValue::new(problem).suggesting(Rate(rounded).to_string())
    }
}

/// `number`, which may have a decimal point or comma, times a power of ten; `None` if it is no
/// number or does not fit.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let Some((whole, decimals)) = number.split_once(['.', ',']) else {
        return number.parse::<u64>().ok()?.checked_mul(scale);
    };
    let digits = u32::try_from(decimals.len()).ok()?;
    let divisor = 10_u64.checked_pow(digits)?;
    let part = decimals.parse::<u64>().ok()?.checked_mul(scale)? / divisor;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(scale)?
        .checked_add(part)
}

/// How bits a second are written, in lower case and without what multiplies them.
const BIT_UNITS: [&str; 4] = ["bits/s", "bit/s", "bps", "bit"];

impl Ranged for Rate {}

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
    fn rate_in_bits_is_refused_with_the_rate_in_bytes() {
        for (text, suggested) in [
            ("1 Mbit/s", Some("122KiB/s")),
            ("100Mbit/s", Some("12207KiB/s")),
            ("1000 Mbps", Some("119MiB/s")),
            ("1 GBit/s", Some("119MiB/s")),
            ("64 kbit/s", Some("8000B/s")),
            ("2.5 Mbit/s", Some("305KiB/s")),
            ("2,5 Mbit/s", Some("305KiB/s")),
            ("1.2.3 Mbit/s", None),
            ("99999999999999 Gbit/s", None),
            ("1MB/s", Some("1MiB/s")),
        ] {
            let refusal = text.parse::<Rate>().expect_err(text);
            assert_eq!(refusal.suggestion.as_deref(), suggested, "{text}");
            let is_in_bits = refusal.problem.contains("is a rate in bits");
            assert_eq!(is_in_bits, text != "1MB/s", "{refusal}");
        }
    }

    #[test]
    fn rate_without_a_second_is_refused_with_the_one_that_was_meant_if_it_is_known() {
        for (text, suggested) in [
            ("100k", Some("100KiB/s")),
            ("1MiB", Some("1MiB/s")),
            ("1M", Some("1MiB/s")),
            ("20 MBps", Some("20MiB/s")),
            ("20mib", Some("20MiB/s")),
            ("512", None),
            ("1.5M", None),
            ("fast", None),
        ] {
            let refusal = text.parse::<Rate>().expect_err(text);
            assert_eq!(refusal.suggestion.as_deref(), suggested, "{text}");
        }
    }

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
