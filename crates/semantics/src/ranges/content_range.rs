//! `Content-Range`: which part of a representation a message carries, RFC 9110 §14.4.

use alloc::vec::Vec;

use crate::fields::field::trim_ows;
use crate::fields::structured::write_decimal;
use crate::ranges::range::{ByteRange, number};

/// `Content-Range` in bytes, RFC 9110 §14.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes 0-4/10`: which part this is; `complete_length` is `None` where it says `*`.
    Part {
        /// The part.
        range: ByteRange,
        /// The length of the whole, greater than `range.last`.
        complete_length: Option<u64>,
    },
    /// `bytes */10`: no part of this whole, in a 416.
    Unsatisfied {
        /// The length of the whole.
        complete_length: u64,
    },
}

impl ContentRange {
    /// Reads the field's value. `None` if the unit is not `bytes`, if it is malformed, if a number
    /// does not fit 64 bits, or if it contradicts itself (RFC 9110 §14.4): such a part must not be
    /// combined with anything.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(5)?;
        if !unit.eq_ignore_ascii_case(b"bytes") || !matches!(rest, [b' ' | b'\t', ..]) {
            return None;
        }
        let rest = trim_ows(rest);
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let (range, length) = (&rest[..slash], &rest[slash + 1..]);
        let complete_length = if length == b"*" {
            None
        } else {
            Some(exact_number(length)?)
        };
        if range == b"*" {
            return complete_length.map(|complete_length| Self::Unsatisfied { complete_length });
        }
        let hyphen = range.iter().position(|&byte| byte == b'-')?;
        let range = ByteRange {
            first: exact_number(&range[..hyphen])?,
            last: exact_number(&range[hyphen + 1..])?,
        };
        let consistent =
            range.first <= range.last && complete_length.is_none_or(|length| range.last < length);
        consistent.then_some(Self::Part {
            range,
            complete_length,
        })
    }

    /// Appends the field's value.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        let complete_length = match self {
            Self::Part {
                range,
                complete_length,
            } => {
                write_decimal(range.first, out);
                out.push(b'-');
                write_decimal(range.last, out);
                *complete_length
            }
            Self::Unsatisfied { complete_length } => {
                out.push(b'*');
                Some(*complete_length)
            }
        };
        out.push(b'/');
        match complete_length {
            Some(length) => write_decimal(length, out),
            None => out.push(b'*'),
        }
    }
}

/// `1*DIGIT` within 64 bits; the number of bytes up to it must fit too.
fn exact_number(digits: &[u8]) -> Option<u64> {
    number(digits).filter(|&number| number < u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    fn check_content_range(value: &str, expected: Option<ContentRange>) {
        assert_eq!(ContentRange::parse(value.as_bytes()), expected, "{value:?}");
    }

    #[test]
    fn malformed_or_contradictory_content_range_is_refused() {
        let part = |first, last, complete_length| ContentRange::Part {
            range: range(first, last),
            complete_length,
        };
        check_content_range("bytes 0-4/10", Some(part(0, 4, Some(10))));
        check_content_range("Bytes 4-9/10", Some(part(4, 9, Some(10))));
        check_content_range("bytes 0-4/*", Some(part(0, 4, None)));
        check_content_range(
            "bytes */10",
            Some(ContentRange::Unsatisfied {
                complete_length: 10,
            }),
        );
        for value in [
            "",
            "bytes",
            "bytes */*",
            "bytes 4-10/10",
            "bytes 5-4/10",
            "bytes=0-4/10",
            "bytes 0-4",
            "bytes 0-/10",
            "lines 0-4/10",
            "bytes 0-4/",
            "bytes -4/10",
            "bytes 0-4/1 0",
            "bytes 0-4/18446744073709551616",
            "bytes0-4/10",
        ] {
            check_content_range(value, None);
        }
    }

    proptest! {
        #[test]
        fn written_content_range_parses_back(first in 0..u64::MAX / 2, more in 0..1000u64, rest in prop::option::of(1..1000u64)) {
            let last = first + more;
            let written = ContentRange::Part { range: range(first, last), complete_length: rest.map(|rest| last + rest) };
            let mut out = Vec::new();
            written.write(&mut out);
            prop_assert_eq!(ContentRange::parse(&out), Some(written));
        }
    }
}
