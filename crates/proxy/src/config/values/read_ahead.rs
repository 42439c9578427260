//! How far a fetch may run ahead of its fastest reader: a size, or no limit.

use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::text::{BadValue, Form};
use std::fmt;
use weir_policy::fetch;

/// The policy's read-ahead limit, as a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead(pub fetch::ReadAhead);

impl ReadAhead {
    /// 64 KiB: what a thin link of 1 Mbit/s carries in half a second, and as much as the proxy
    /// reads at once.
    pub const DEFAULT: Self = Self(fetch::ReadAhead::DEFAULT);

    /// The fetch takes all that the next hop sends.
    pub const UNBOUNDED: Self = Self(fetch::ReadAhead::Unbounded);

    /// A quarter of it is the smallest receive window; below 4 KiB a window holds few full
    /// segments, and each of them costs a wake-up.
    pub const MIN: ByteSize = ByteSize::from_kib(16);

    /// No TCP window is larger (RFC 7323 §2.3).
    pub const MAX: ByteSize = ByteSize::from_gib(1);

    /// A limit of `size`.
    #[must_use]
    pub const fn of(size: ByteSize) -> Self {
        Self(fetch::ReadAhead::Bytes(size.bytes()))
    }

    /// Refuses a size outside the range; `unbounded` is always allowed.
    pub(in crate::config) fn check(self, path: &str) -> Result<(), Invalid> {
        let fetch::ReadAhead::Bytes(bytes) = self.0 else {
            return Ok(());
        };
        let size = ByteSize::from_bytes(bytes);
        check_range(path, &size, &Self::MIN, &Self::MAX).map_err(|no| {
            let hint = format!("{}, or \"{UNBOUNDED}\"", no.hint);
            Invalid { hint, ..no }
        })
    }
}

/// How no limit is written.
const UNBOUNDED: &str = "unbounded";

impl fmt::Display for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            fetch::ReadAhead::Bytes(bytes) => ByteSize::from_bytes(bytes).fmt(f),
            fetch::ReadAhead::Unbounded => f.write_str(UNBOUNDED),
        }
    }
}

impl std::str::FromStr for ReadAhead {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text == UNBOUNDED {
            return Ok(Self::UNBOUNDED);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return text.parse().map(Self::of);
        }
        let refusal = BadValue::new(format!("`{text}` is neither a size nor `{UNBOUNDED}`"));
        let is_meant = ["unlimited", "infinite", "none", "off", "no", "unbound"]
            .iter()
            .any(|slip| text.eq_ignore_ascii_case(slip));
        Err(if is_meant || text.eq_ignore_ascii_case(UNBOUNDED) {
            refusal.suggesting(UNBOUNDED)
        } else {
            refusal
        })
    }
}

impl Form for ReadAhead {
    const FORM: &'static str = "a size, such as \"64KiB\", or \"unbounded\"";
}

impl serde::Serialize for ReadAhead {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ReadAhead {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ReadAheadVisitor)
    }
}

struct ReadAheadVisitor;

impl serde::de::Visitor<'_> for ReadAheadVisitor {
    type Value = ReadAhead;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ReadAhead::FORM)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ReadAhead, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ReadAhead, E> {
        Ok(ReadAhead::of(ByteSize::from_bytes(bytes)))
    }

    fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ReadAhead, E> {
        u64::try_from(bytes)
            .map(|bytes| ReadAhead::of(ByteSize::from_bytes(bytes)))
            .map_err(|_| E::custom(format!("`{bytes}` is not a read-ahead: it is negative")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = text
            .parse::<ReadAhead>()
            .map(|read_ahead| read_ahead.to_string());
        let found = found.map_err(|refusal| refusal.to_string());
        assert_eq!(
            found,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn read_ahead_limit_is_normalized_and_a_misspelling_is_refused() {
        check("64KiB", Ok("64KiB"));
        check("65536", Ok("64KiB"));
        check("unbounded", Ok("unbounded"));
        check(
            "none",
            Err("`none` is neither a size nor `unbounded`; did you mean `unbounded`?"),
        );
        check(
            "Unbounded",
            Err("`Unbounded` is neither a size nor `unbounded`; did you mean `unbounded`?"),
        );
        check(
            "64KB",
            Err(
                "unknown unit `KB`, expected one of `B`, `KiB`, `MiB`, `GiB`, `TiB`; did you mean `64KiB`?",
            ),
        );
        check("", Err("`` is neither a size nor `unbounded`"));
    }

    #[test]
    fn unbounded_read_ahead_is_allowed_and_sizes_have_a_range() {
        let bytes = |count| ReadAhead::of(ByteSize::from_bytes(count)).check("read_ahead");
        assert!(bytes(16 << 10).is_ok());
        assert!(bytes((16 << 10) - 1).is_err());
        assert!(bytes(1 << 30).is_ok());
        assert!(bytes((1 << 30) + 1).is_err_and(|no| no.hint.ends_with("or \"unbounded\"")));
        assert!(ReadAhead::UNBOUNDED.check("read_ahead").is_ok());
    }
}
