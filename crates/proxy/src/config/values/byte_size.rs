//! Sizes in bytes, written with binary units: `64KiB`, `1MiB`.
//!
//! Decimal units (`MB`) are refused: half the world reads them as 10^6 and half as 2^20.

use crate::config::setting::Ranged;
use crate::config::values::quantity::{self, Unit};
use crate::config::values::text::{BadValue, Form};
use std::fmt;

/// A number of bytes. In a file either a text with a unit or a plain integer, which is bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// `count` bytes.
    #[must_use]
    pub const fn from_bytes(count: u64) -> Self {
        Self(count)
    }

    /// `count` times 2^10 bytes; saturates.
    #[must_use]
    pub const fn from_kib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 10))
    }

    /// `count` times 2^20 bytes; saturates.
    #[must_use]
    pub const fn from_mib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 20))
    }

    /// `count` times 2^30 bytes; saturates.
    #[must_use]
    pub const fn from_gib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 30))
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The size in bytes as a length in memory; `usize::MAX` if it does not fit.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Ranged for ByteSize {
    /// One that is whole units was written with one, or might have been.
    fn with_unit(&self, minimum: &Self, maximum: &Self) -> Option<String> {
        if self >= minimum || self.0 == 0 || self.0.is_multiple_of(1 << 10) {
            return None;
        }
        let sizes = UNITS.iter().map(|unit| self.0.checked_mul(unit.scale));
        let mut sizes = sizes.map_while(|bytes| bytes.map(Self));
        let meant = sizes.find(|size| size >= minimum && size <= maximum);
        meant.map(|size| size.to_string())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(f, self.0, UNITS, "B")
    }
}

impl std::str::FromStr for ByteSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return quantity::parse(&format!("{text}B"), "size", UNITS).map(Self);
        }
        quantity::parse(text, "size", UNITS).map(Self)
    }
}

impl Form for ByteSize {
    const FORM: &'static str = "a size, such as \"64KiB\" or \"256MiB\"";
}

impl serde::Serialize for ByteSize {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl serde::de::Visitor<'_> for SizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ByteSize::FORM)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
        Ok(ByteSize(bytes))
    }

    fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
        u64::try_from(bytes)
            .map(ByteSize)
            .map_err(|_| E::custom(format!("`{bytes}` is not a size: it is negative")))
    }
}

const UNITS: &[Unit] = &[
    Unit {
        name: "B",
        scale: 1,
        slips: &["bytes", "byte"],
    },
    Unit {
        name: "KiB",
        scale: 1 << 10,
        slips: &["K", "k", "KB", "kB", "kb"],
    },
    Unit {
        name: "MiB",
        scale: 1 << 20,
        slips: &["M", "m", "MB", "mb"],
    },
    Unit {
        name: "GiB",
        scale: 1 << 30,
        slips: &["G", "g", "GB", "gb"],
    },
    Unit {
        name: "TiB",
        scale: 1 << 40,
        slips: &["T", "t", "TB", "tb"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(u64, &str), &str>) {
        let found = text
            .parse::<ByteSize>()
            .map(|size| (size.bytes(), size.to_string()))
            .map_err(|refusal| refusal.to_string());
        let expected = expected
            .map(|(bytes, normal)| (bytes, normal.to_owned()))
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn size_is_displayed_in_the_largest_exact_unit() {
        check("64KiB", Ok((65_536, "64KiB")));
        check("65536", Ok((65_536, "64KiB")));
        check("65537", Ok((65_537, "65537B")));
        check("1024KiB", Ok((1 << 20, "1MiB")));
        check("1023KiB", Ok((1023 << 10, "1023KiB")));
        check("1536MiB", Ok((1536 << 20, "1536MiB")));
        check("2 GiB", Ok((2 << 30, "2GiB")));
        check("0", Ok((0, "0B")));
        check("2048TiB", Ok((2048 << 40, "2048TiB")));
    }

    #[test]
    fn size_beyond_u64_is_refused() {
        check(
            "18446744073709551615",
            Ok((u64::MAX, "18446744073709551615B")),
        );
        check(
            "18446744073709551616",
            Err("`18446744073709551616B` is larger than any size can be"),
        );
        check(
            "16777216TiB",
            Err("`16777216TiB` is larger than any size can be"),
        );
        check("16777215TiB", Ok((16_777_215 << 40, "16777215TiB")));
    }

    #[test]
    fn malformed_size_or_unknown_unit_is_refused() {
        let shape = |text: &str| {
            format!("`{text}` is not a size: a whole number and its unit are expected")
        };
        for text in ["", "KiB", "-1KiB", "1.5MiB", "+1B", "½KiB", " 1KiB"] {
            check(text, Err(&shape(text)));
        }
        check(
            "64MB",
            Err(
                "unknown unit `MB`, expected one of `B`, `KiB`, `MiB`, `GiB`, `TiB`; did you mean `64MiB`?",
            ),
        );
        check(
            "64s",
            Err("unknown unit `s`, expected one of `B`, `KiB`, `MiB`, `GiB`, `TiB`"),
        );
    }

    #[test]
    fn size_without_a_unit_below_its_minimum_suggests_the_smallest_unit_that_fits() {
        let (minimum, maximum) = (ByteSize::from_mib(1), ByteSize::from_gib(4096));
        let meant = |bytes: u64| ByteSize(bytes).with_unit(&minimum, &maximum);
        assert_eq!(meant(64).as_deref(), Some("64MiB"));
        assert_eq!(meant(1500).as_deref(), Some("1500KiB"));
        for plain in [0, 64 << 10, 1 << 20, (1 << 20) + 1] {
            assert_eq!(meant(plain), None, "{plain}");
        }
        let narrow = |bytes: u64| ByteSize(bytes).with_unit(&minimum, &minimum);
        assert_eq!(narrow(64), None);
    }

    #[test]
    fn plain_integer_in_a_file_is_read_as_bytes() {
        let read = |json: &str| {
            serde_json::from_str::<ByteSize>(json).map_err(|refusal| refusal.to_string())
        };
        assert_eq!(read("4096"), Ok(ByteSize::from_kib(4)));
        assert_eq!(read("\"4KiB\""), Ok(ByteSize::from_kib(4)));
        assert!(read("-1").is_err_and(|message| message.contains("negative")));
        assert!(read("1.5").is_err_and(|message| message.contains("a size, such as")));
    }
}
