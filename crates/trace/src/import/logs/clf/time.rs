//! `17/May/2015:10:05:03 +0000`.

use crate::import::logs::number::{decimals_us, unsigned};
use jiff::civil::DateTime;
use jiff::tz::Offset;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Reads times, of which many in a row are the same.
#[derive(Default)]
pub(super) struct Clock {
    text: Vec<u8>,
    us: i64,
}

impl Clock {
    /// Microseconds since 1970.
    pub(super) fn read(&mut self, text: &[u8]) -> Option<i64> {
        if text != self.text || text.is_empty() {
            self.us = read(text)?;
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        Some(self.us)
    }
}

/// Whether it has the shape of one; it may still be none.
pub(super) fn is_like_one(text: &[u8]) -> bool {
    matches!(text, [_, _, b'/', _, _, _, b'/', _, _, _, _, b':', ..])
}

/// Microseconds since 1970. Decimals of a second are read where the log has them.
pub(super) fn read(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked("17/May/2015:10:05:03".len())?;
    let colons = [2, 6, 11, 14, 17].map(|at| date[at]);
    if colons != *b"//:::" {
        return None;
    }
    let month = MONTHS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(&date[3..6]))?;
    let part = |from: usize, to: usize| i8::try_from(unsigned(&date[from..to])?).ok();
    let year = i16::try_from(unsigned(&date[7..11])?).ok()?;
    let civil = DateTime::new(
        year,
        i8::try_from(month + 1).ok()?,
        part(0, 2)?,
        part(12, 14)?,
        part(15, 17)?,
        // a leap second is the one before it
        part(18, 20)?.min(59),
        0,
    )
    .ok()?;
    let (decimals_us, zone) = decimals(rest)?;
    let at = offset(zone)?.to_timestamp(civil).ok()?;
    Some(at.as_microsecond() + decimals_us)
}

/// `.123 +0000`: the decimals in microseconds, and what follows them.
fn decimals(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    if end == 0 {
        return None;
    }
    let us = decimals_us(&digits[..end]).cast_signed();
    Some((us, &digits[end..]))
}

fn offset(zone: &[u8]) -> Option<Offset> {
    let &[b' ', sign @ (b'+' | b'-'), ref digits @ ..] = zone else {
        return None;
    };
    if digits.len() != 4 {
        return None;
    }
    let hours = i32::try_from(unsigned(&digits[..2])?).ok()?;
    let minutes = i32::try_from(unsigned(&digits[2..])?).ok()?;
    let seconds = hours * 3600 + minutes * 60;
    Offset::from_seconds(if sign == b'-' { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(read(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn zone_offset_is_subtracted_to_give_utc() {
        check("01/Jul/1995:00:00:01 -0400", Some(804_571_201_000_000));
        check("01/Jul/1995:00:00:01 +0000", Some(804_556_801_000_000));
        check("01/Jul/1995:00:00:01 +0530", Some(804_537_001_000_000));
        check("01/Jul/1995:00:00:01.25 +0000", Some(804_556_801_250_000));
        check("29/feb/2016:23:59:60 +0000", Some(1_456_790_399_000_000));
    }

    #[test]
    fn malformed_or_impossible_time_is_refused() {
        for text in [
            "",
            "01/Jul/1995:00:00:01",
            "01/Jul/1995:00:00:01 0000",
            "01/Jul/1995:00:00:01 +000",
            "01/Jul/1995:00:00:01 +9900",
            "01/Jul/1995:00:00:01. +0000",
            "31/Jun/1995:00:00:01 +0000",
            "29/Feb/2015:00:00:01 +0000",
            "01/Jux/1995:00:00:01 +0000",
            "01/Jul/1995 00:00:01 +0000",
            "01/Jul/1995:24:00:01 +0000",
            "+1/Jul/1995:00:00:01 +0000",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn clock_reads_equal_times_equal_and_different_times_different() {
        let mut clock = Clock::default();
        assert_eq!(clock.read(b""), None);
        let first = clock.read(b"01/Jul/1995:00:00:01 +0000");
        assert_eq!(clock.read(b"x"), None);
        assert_eq!(clock.read(b"01/Jul/1995:00:00:01 +0000"), first);
        assert_ne!(clock.read(b"01/Jul/1995:00:00:02 +0000"), first);
    }
}
