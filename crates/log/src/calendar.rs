//! The date of a line, computed once a second.

use weir_semantics::Civil;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

const DAY_S: u64 = 86_400;

/// A moment in the two spellings that the formats need, UTC.
pub struct Stamp {
    second: u64,
    millisecond: u16,
    /// `2026-11-21T08:00:00` (RFC 3339, without fraction and zone).
    rfc3339: [u8; 19],
    /// `21/Nov/2026:08:00:00 +0000` (common log format).
    clf: [u8; 26],
}

impl Default for Stamp {
    fn default() -> Self {
        Self::new()
    }
}

impl Stamp {
    /// That of 1970.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            second: 0,
            millisecond: 0,
            rfc3339: *b"1970-01-01T00:00:00",
            clf: *b"01/Jan/1970:00:00:00 +0000",
        }
    }

    /// Moves to `unix_ms`; formats only when the second is another.
    pub fn advance_to(&mut self, unix_ms: u64) {
        let millisecond = (unix_ms % 1000) as u16;
        self.millisecond = millisecond;
        let second = unix_ms / 1000;
        if second == self.second {
            return;
        }
        self.second = second;
        let date = Civil::from_days(i64::try_from(second / DAY_S).unwrap_or(i64::MAX));
        let [year, month, day] = [date.year, date.month, date.day].map(i64::unsigned_abs);
        let of_day = second % DAY_S;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        for (at, width, number) in [
            (0, 4, year),
            (5, 2, month),
            (8, 2, day),
            (11, 2, hour),
            (14, 2, minute),
            (17, 2, second),
        ] {
            put(&mut self.rfc3339[at..at + width], number);
        }
        for (at, width, number) in [
            (0, 2, day),
            (7, 4, year),
            (12, 2, hour),
            (15, 2, minute),
            (18, 2, second),
        ] {
            put(&mut self.clf[at..at + width], number);
        }
        // the month is 1 to 12
        let name = MONTHS
            .get(usize::try_from(month - 1).unwrap_or(0))
            .copied()
            .unwrap_or(MONTHS[0]);
        self.clf[3..6].copy_from_slice(name);
    }

    /// `2026-11-21T08:00:00.123Z`.
    pub fn write_rfc3339(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(&self.rfc3339);
        let mut fraction = *b".000Z";
        put(&mut fraction[1..4], self.millisecond.into());
        line.extend_from_slice(&fraction);
    }

    /// `08:00:00`, UTC.
    #[must_use]
    pub fn time_of_day(&self) -> &[u8] {
        &self.rfc3339[11..]
    }

    /// `21/Nov/2026:08:00:00 +0000`, the form of the common log format.
    #[must_use]
    pub const fn clf(&self) -> &[u8; 26] {
        &self.clf
    }
}

/// Writes the last digits of `number` over the whole of `place`.
pub fn put(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        let value = (number % 10) as u8;
        *digit = b'0' + value;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unix_ms: u64, rfc3339: &str, clf: &str) {
        let mut stamp = Stamp::new();
        stamp.advance_to(unix_ms);
        let mut text = Vec::new();
        stamp.write_rfc3339(&mut text);
        assert_eq!(String::from_utf8_lossy(&text), rfc3339);
        assert_eq!(String::from_utf8_lossy(stamp.clf()), clf);
        assert_eq!(
            String::from_utf8_lossy(stamp.time_of_day()),
            &rfc3339[11..19]
        );
    }

    #[test]
    fn timestamps_around_leap_days_match_the_calendar() {
        check(0, "1970-01-01T00:00:00.000Z", "01/Jan/1970:00:00:00 +0000");
        check(
            784_111_777_042,
            "1994-11-06T08:49:37.042Z",
            "06/Nov/1994:08:49:37 +0000",
        );
        check(
            951_782_399_999,
            "2000-02-28T23:59:59.999Z",
            "28/Feb/2000:23:59:59 +0000",
        );
        check(
            951_782_400_000,
            "2000-02-29T00:00:00.000Z",
            "29/Feb/2000:00:00:00 +0000",
        );
        check(
            951_868_800_000,
            "2000-03-01T00:00:00.000Z",
            "01/Mar/2000:00:00:00 +0000",
        );
        check(
            1_709_164_800_000,
            "2024-02-29T00:00:00.000Z",
            "29/Feb/2024:00:00:00 +0000",
        );
        check(
            1_735_689_599_000,
            "2024-12-31T23:59:59.000Z",
            "31/Dec/2024:23:59:59 +0000",
        );
        check(
            4_107_542_400_000,
            "2100-03-01T00:00:00.000Z",
            "01/Mar/2100:00:00:00 +0000",
        );
    }

    #[test]
    fn clf_stamp_follows_the_clock_even_backwards() {
        let mut stamp = Stamp::new();
        for unix_ms in [1_000, 1_999, 2_000, 1_500] {
            stamp.advance_to(unix_ms);
            assert_eq!(u64::from(stamp.clf()[19] - b'0'), unix_ms / 1000);
        }
    }
}
