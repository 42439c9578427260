//! Requested byte ranges, RFC 9110 §14.1 and §14.2.

use alloc::vec::Vec;

use crate::fields::field::list_elements;
use crate::fields::structured::write_decimal;

/// A run of bytes, both ends included; `first <= last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    /// The first byte, counted from 0.
    pub first: u64,
    /// The last byte.
    pub last: u64,
}

impl ByteRange {
    /// How many bytes it has; saturates.
    #[must_use]
    pub const fn length(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

/// What a `Range` field selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeOutcome {
    /// The whole representation: the field is ignored (RFC 9110 §14.2).
    Whole,
    /// One part: 206 with `Content-Range`.
    Single(ByteRange),
    /// Two or more parts that have no byte in common, in the requested order: 206 with
    /// `multipart/byteranges`.
    Multiple(Vec<ByteRange>),
    /// Nothing of what there is: 416.
    Unsatisfiable,
}

/// What this `Range` value selects of a representation of `complete_length` bytes.
///
/// The field is ignored, so that the whole is sent, if its unit is not `bytes`, if it is malformed,
/// if it has more than `ranges_max` ranges, or if two of them overlap: so no request gets more
/// bytes than there are (RFC 9110 §14.2 allows that). So is a suffix of an empty representation,
/// which no `Content-Range` could describe.
#[must_use]
pub fn select(range_value: &[u8], complete_length: u64, ranges_max: usize) -> RangeOutcome {
    let Some(set) = range_set(range_value) else {
        return RangeOutcome::Whole;
    };
    let mut single = None;
    let mut multiple = Vec::new();
    let mut count = 0;
    for spec in list_elements(set) {
        count += 1;
        let Some(spec) = RangeSpan::parse(spec) else {
            return RangeOutcome::Whole;
        };
        if count > ranges_max || spec.is_suffix_of_nothing(complete_length) {
            return RangeOutcome::Whole;
        }
        let Some(range) = spec.resolve(complete_length) else {
            continue;
        };
        match single {
            None => single = Some(range),
            Some(first) if multiple.is_empty() => multiple.extend([first, range]),
            Some(_) => multiple.push(range),
        }
    }
    match single {
        _ if count == 0 || overlap(&multiple) => RangeOutcome::Whole,
        _ if !multiple.is_empty() => RangeOutcome::Multiple(multiple),
        Some(range) => RangeOutcome::Single(range),
        None => RangeOutcome::Unsatisfiable,
    }
}

/// What follows `bytes=`.
fn range_set(value: &[u8]) -> Option<&[u8]> {
    const UNIT: &[u8] = b"bytes=";
    let (unit, set) = value.split_at_checked(UNIT.len())?;
    unit.eq_ignore_ascii_case(UNIT).then_some(set)
}

/// How many ranges a request has, as far as is known without the representation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RangeKind {
    /// The whole: there is no `Range`, or it is ignored, as its unit is not `bytes`, as it is
    /// malformed, or as the method is not `GET` (RFC 9110 §14.2).
    #[default]
    None,
    /// One range.
    One,
    /// Two or more, also where all but one lie beyond the end. So is a field that is repeated,
    /// which no RFC defines.
    Many,
}

impl RangeKind {
    /// How many ranges this `Range` value has.
    #[must_use]
    pub fn of(range_value: &[u8]) -> Self {
        let Some(set) = range_set(range_value) else {
            return Self::None;
        };
        let mut kind = Self::None;
        for spec in list_elements(set) {
            kind = match (RangeSpan::parse(spec), kind) {
                (None, _) => return Self::None,
                (Some(_), Self::None) => Self::One,
                (Some(_), Self::One | Self::Many) => Self::Many,
            };
        }
        kind
    }
}

/// The one range of this `Range` value; `None` unless it is [`RangeKind::One`].
#[must_use]
pub fn single_range(range_value: &[u8]) -> Option<RangeSpan> {
    let mut specs = list_elements(range_set(range_value)?);
    let only = RangeSpan::parse(specs.next()?)?;
    specs.next().is_none().then_some(only)
}

/// One member of a range set (RFC 9110 §14.1.2), not yet fitted to a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeSpan {
    /// `first-last` or `first-`.
    From {
        /// The first byte, counted from 0.
        first: u64,
        /// The last byte, not before the first; `u64::MAX` where it is left open.
        last: u64,
    },
    /// `-length`: the last bytes.
    Suffix {
        /// How many; may be more than there are.
        length: u64,
    },
}

impl RangeSpan {
    /// Reads one member of a range set and nothing else.
    fn parse(spec: &[u8]) -> Option<Self> {
        let hyphen = spec.iter().position(|&byte| byte == b'-')?;
        match (&spec[..hyphen], &spec[hyphen + 1..]) {
            (b"", length) => Some(Self::Suffix {
                length: number(length)?,
            }),
            (first, b"") => Some(Self::From {
                first: number(first)?,
                last: u64::MAX,
            }),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::From { first, last })
            }
        }
    }

    /// The bytes it means of a representation of `complete_length` bytes, if there are any.
    #[must_use]
    pub const fn resolve(self, complete_length: u64) -> Option<ByteRange> {
        let Some(end) = complete_length.checked_sub(1) else {
            return None;
        };
        match self {
            Self::From { first, .. } if first > end => None,
            Self::From { first, last } => Some(ByteRange {
                first,
                last: if last < end { last } else { end },
            }),
            Self::Suffix { length: 0 } => None,
            Self::Suffix { length } => Some(ByteRange {
                first: complete_length.saturating_sub(length),
                last: end,
            }),
        }
    }

    /// Appends the value of a `Range` field that asks for it: `bytes=0-4`, `bytes=5-`, `bytes=-5`.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes=");
        match self {
            Self::From { first, last } => {
                write_decimal(first, out);
                out.push(b'-');
                if last != u64::MAX {
                    write_decimal(last, out);
                }
            }
            Self::Suffix { length } => {
                out.push(b'-');
                write_decimal(length, out);
            }
        }
    }

    const fn is_suffix_of_nothing(self, complete_length: u64) -> bool {
        complete_length == 0 && matches!(self, Self::Suffix { length: 1.. })
    }
}

fn overlap(ranges: &[ByteRange]) -> bool {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[1].first <= pair[0].last)
}

/// `1*DIGIT`; saturates, as a position beyond every representation is valid.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |number: u64, digit: &u8| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    };
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    /// Selects of ten bytes, with at most four ranges.
    fn check(value: &str, expected: &RangeOutcome) {
        assert_eq!(&select(value.as_bytes(), 10, 4), expected, "{value:?}");
    }

    #[test]
    fn single_range_is_clamped_to_the_content_length() {
        for (value, first, last) in [
            ("bytes=0-1", 0, 1),
            ("BYTES=0-1", 0, 1),
            ("bytes= 0-1 ,", 0, 1),
            ("bytes=1-", 1, 9),
            ("bytes=9-9", 9, 9),
            ("bytes=0-99999999999999999999999999", 0, 9),
            ("bytes=-1", 9, 9),
            ("bytes=-10", 0, 9),
            ("bytes=-11", 0, 9),
            ("bytes=-99999999999999999999999999", 0, 9),
            ("bytes=10-,3-4", 3, 4),
        ] {
            check(value, &RangeOutcome::Single(range(first, last)));
        }
    }

    #[test]
    fn range_beyond_the_end_is_unsatisfiable() {
        for value in [
            "bytes=10-",
            "bytes=10-11",
            "bytes=-0",
            "bytes=99999999999999999999999999-",
            "bytes=10-,-0",
        ] {
            check(value, &RangeOutcome::Unsatisfiable);
        }
    }

    #[test]
    fn malformed_overlapping_or_excessive_ranges_are_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1-0",
            "bytes=0-1;2-3",
            "bytes=+1-2",
            "bytes=0-1-2",
            "bytes 0-1",
            "lines=0-1",
            "bytes=0 - 1",
            "bytes=0-1,x",
            "bytes=0x0-1",
            "bytes =0-1",
            "bytes=--1",
            "bytes=0-,0-",
            "bytes=0-4,4-5",
            "bytes=5-6,0-5",
            "bytes=-5,0-5",
            "bytes=0-0,2-2,4-4,6-6,8-8",
            "bytes=10-,11-,12-,13-,14-",
        ] {
            check(value, &RangeOutcome::Whole);
        }
    }

    #[test]
    fn multiple_ranges_keep_their_order() {
        check(
            "bytes=5-6,0-4",
            &RangeOutcome::Multiple(vec![range(5, 6), range(0, 4)]),
        );
        check(
            "bytes=0-0,2-2,4-4,-1",
            &RangeOutcome::Multiple(vec![range(0, 0), range(2, 2), range(4, 4), range(9, 9)]),
        );
    }

    #[test]
    fn suffix_range_of_empty_content_selects_the_whole() {
        assert_eq!(select(b"bytes=-5", 0, 4), RangeOutcome::Whole);
        assert_eq!(select(b"bytes=-0", 0, 4), RangeOutcome::Unsatisfiable);
        assert_eq!(select(b"bytes=0-", 0, 4), RangeOutcome::Unsatisfiable);
        assert_eq!(select(b"bytes=0-1", 10, 0), RangeOutcome::Whole);
    }

    fn check_single(value: &str, kind: RangeKind, expected: Option<RangeSpan>) {
        let value = value.as_bytes();
        assert_eq!(RangeKind::of(value), kind, "{value:?}");
        assert_eq!(single_range(value), expected, "{value:?}");
    }

    #[test]
    fn single_multiple_and_invalid_ranges_are_distinguished() {
        let from = |first, last| Some(RangeSpan::From { first, last });
        let suffix = |length| Some(RangeSpan::Suffix { length });
        check_single("bytes=0-0", RangeKind::One, from(0, 0));
        check_single("Bytes= 2-5 ,,", RangeKind::One, from(2, 5));
        check_single("bytes=5-", RangeKind::One, from(5, u64::MAX));
        check_single("bytes=-5", RangeKind::One, suffix(5));
        check_single("bytes=-0", RangeKind::One, suffix(0));
        for several in [
            "bytes=0-1,2-3",
            "bytes=0-,-0",
            "bytes=0-0,0-0",
            "bytes=-1,-1,-1",
        ] {
            check_single(several, RangeKind::Many, None);
        }
        for ignored in [
            "",
            "bytes=",
            "bytes=,",
            "bytes=1-0",
            "bytes=x",
            "lines=0-1",
            "bytes 0-1",
        ] {
            check_single(ignored, RangeKind::None, None);
        }
        // one member that is malformed spoils the field
        assert_eq!(RangeKind::of(b"bytes=0-1,x"), RangeKind::None);
        assert_eq!(RangeKind::of(b"bytes=x,0-1"), RangeKind::None);
    }

    #[test]
    fn range_span_resolves_within_the_content_length() {
        let resolve = |value: &[u8], length| single_range(value).unwrap().resolve(length);
        assert_eq!(resolve(b"bytes=2-5", 6), Some(range(2, 5)));
        assert_eq!(resolve(b"bytes=2-5", 5), Some(range(2, 4)));
        assert_eq!(resolve(b"bytes=2-5", 3), Some(range(2, 2)));
        assert_eq!(resolve(b"bytes=2-5", 2), None);
        assert_eq!(resolve(b"bytes=2-", 10), Some(range(2, 9)));
        assert_eq!(resolve(b"bytes=-3", 10), Some(range(7, 9)));
        assert_eq!(resolve(b"bytes=-3", 2), Some(range(0, 1)));
        assert_eq!(resolve(b"bytes=-0", 10), None);
        for nothing in [&b"bytes=0-"[..], b"bytes=-3", b"bytes=0-0"] {
            assert_eq!(resolve(nothing, 0), None);
        }
    }

    proptest! {
        #[test]
        fn written_range_span_parses_back(value in "bytes=([0-9]{1,4}-[0-9]{0,4}|-[0-9]{1,4})") {
            if let Some(span) = single_range(value.as_bytes()) {
                let mut out = Vec::new();
                span.write(&mut out);
                prop_assert_eq!(single_range(&out), Some(span));
            }
        }

        #[test]
        fn range_span_and_select_agree_on_a_single_range(value in "bytes=([0-9]{1,2}-[0-9]{0,2}|-[0-9]{1,2})", length in 1..50u64) {
            let selected = match select(value.as_bytes(), length, 1) {
                RangeOutcome::Single(range) => Some(range),
                _ => None,
            };
            let resolved = single_range(value.as_bytes()).and_then(|span| span.resolve(length));
            prop_assert_eq!(selected, resolved);
        }

        #[test]
        fn selected_ranges_never_exceed_the_content_length(value in "bytes=([0-9]{0,2}-[0-9]{0,2},){0,6}", length in 0..50u64) {
            let ranges = match select(value.as_bytes(), length, 8) {
                RangeOutcome::Whole | RangeOutcome::Unsatisfiable => vec![],
                RangeOutcome::Single(range) => vec![range],
                RangeOutcome::Multiple(ranges) => ranges,
            };
            prop_assert!(ranges.iter().all(|range| range.first <= range.last && range.last < length));
            prop_assert!(ranges.iter().map(|range| range.length()).sum::<u64>() <= length);
        }
    }
}
