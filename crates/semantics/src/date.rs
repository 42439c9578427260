//! HTTP-date, RFC 9110 §5.6.7.
//!
//! All three forms are read, in any case (as RFC 9111 §4.2 requires of caches), and nothing else:
//! another zone than `GMT`, a missing or a double space make a date invalid, which for `Expires`
//! means stale. The name of the day must be one, but need not be the right one.

use crate::time::{DeltaSeconds, Timestamp};

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const DAYS_LONG: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

const SECONDS_A_DAY: i64 = 86_400;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: what four digits of a year can say.
const WRITABLE: (i64, i64) = (-62_167_219_200, 253_402_300_799);

/// Reads an HTTP-date; `None` if it is invalid. `now` places the two digits of a year in the
/// obsolete RFC 850 form: at most 50 years ahead, otherwise in the past.
#[must_use]
pub fn parse_http_date(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    match value.get(3)? {
        b',' => imf_fixdate(value),
        b' ' => asctime(value),
        _ => rfc850(value, now),
    }
}

/// How long `Retry-After` asks to wait: seconds, or until a date; none for one that is past (RFC
/// 9110 §10.2.3).
#[must_use]
pub fn parse_retry_after(value: &[u8], now: Timestamp) -> Option<DeltaSeconds> {
    DeltaSeconds::parse(value).or_else(|| Some(parse_http_date(value, now)?.since(now)))
}

/// Writes `t` as IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`. Years before 0 and after 9999 become
/// those.
pub fn write_http_date(t: Timestamp, out: &mut [u8; 29]) {
    let seconds = t.0.clamp(WRITABLE.0, WRITABLE.1);
    let (days, second_of_day) = (
        seconds.div_euclid(SECONDS_A_DAY),
        seconds.rem_euclid(SECONDS_A_DAY),
    );
    let civil = Civil::from_days(days);
    *out = *b"Day, 00 Mon 0000 00:00:00 GMT";
    // 1970-01-01 was a Thursday
    out[..3].copy_from_slice(DAYS[index((days + 4).rem_euclid(7))]);
    out[8..11].copy_from_slice(MONTHS[index(civil.month - 1)]);
    two_digits(&mut out[5..7], civil.day);
    two_digits(&mut out[12..14], civil.year / 100);
    two_digits(&mut out[14..16], civil.year % 100);
    two_digits(&mut out[17..19], second_of_day / 3600);
    two_digits(&mut out[20..22], second_of_day / 60 % 60);
    two_digits(&mut out[23..25], second_of_day % 60);
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(value: &[u8]) -> Option<Timestamp> {
    let value: &[u8; 29] = value.try_into().ok()?;
    let frame = value[3..5] == *b", " && value[7] == b' ' && value[11] == b' ' && value[16] == b' ';
    if !frame || !is_zone(&value[25..]) || !is_day(&value[..3]) {
        return None;
    }
    let civil = Civil {
        year: number(&value[12..16])?,
        month: month(&value[8..11])?,
        day: number(&value[5..7])?,
    };
    civil.at(time_of_day(&value[17..25])?)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(value: &[u8]) -> Option<Timestamp> {
    let value: &[u8; 24] = value.try_into().ok()?;
    let frame = value[7] == b' ' && value[10] == b' ' && value[19] == b' ';
    if !frame || !is_day(&value[..3]) {
        return None;
    }
    let day = if value[8] == b' ' {
        &value[9..10]
    } else {
        &value[8..10]
    };
    let civil = Civil {
        year: number(&value[20..])?,
        month: month(&value[4..7])?,
        day: number(day)?,
    };
    civil.at(time_of_day(&value[11..19])?)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let comma = value.iter().position(|&byte| byte == b',')?;
    let (day_name, rest) = value.split_at(comma);
    let rest: &[u8; 24] = rest.try_into().ok()?;
    let frame = rest[1] == b' ' && rest[4] == b'-' && rest[8] == b'-' && rest[11] == b' ';
    if !frame
        || !is_zone(&rest[20..])
        || !DAYS_LONG
            .iter()
            .any(|day| day_name.eq_ignore_ascii_case(day.as_bytes()))
    {
        return None;
    }
    let (short_year, month, day) = (
        number(&rest[9..11])?,
        month(&rest[5..8])?,
        number(&rest[2..4])?,
    );
    let second_of_day = time_of_day(&rest[12..20])?;
    let this_year = Civil::from_days(now.0.div_euclid(SECONDS_A_DAY)).year;
    let next = this_year + (short_year - this_year).rem_euclid(100);
    // more than 50 years ahead: the most recent year with these digits
    let ahead = Civil {
        year: next - 50,
        month,
        day,
    }
    .days()
        * SECONDS_A_DAY
        + second_of_day
        > now.0;
    let year = if ahead { next - 100 } else { next };
    Civil { year, month, day }.at(second_of_day)
}

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, 1 to 12.
    pub month: i64,
    /// The day of the month, 1 to 31.
    pub day: i64,
}

impl Civil {
    /// This day, that many seconds after midnight; `None` if the month has no such day.
    fn at(self, second_of_day: i64) -> Option<Timestamp> {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match self.month {
            2 if is_leap(self.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=length)
            .contains(&self.day)
            .then(|| Timestamp(self.days() * SECONDS_A_DAY + second_of_day))
    }

    /// Days from 1970-01-01 to it.
    #[must_use]
    pub const fn days(self) -> i64 {
        // years are counted from March, so that the leap day is the last of its year
        let year = if self.month <= 2 {
            self.year - 1
        } else {
            self.year
        };
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
            - 719_468
    }

    /// The day that lies so many days after 1970-01-01.
    #[must_use]
    pub const fn from_days(days: i64) -> Self {
        let shifted = days.saturating_add(719_468);
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Self {
            year: era * 400 + year_of_era + (month <= 2) as i64,
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
        }
    }
}

/// A name of three letters without regard to case: each response has one or two dates, and so their
/// names are compared three bytes at a time.
const fn packed([first, second, third]: [u8; 3]) -> u32 {
    // no byte but a letter becomes a small letter by this
    const LOWER: u32 = 0x0020_2020;
    u32::from_be_bytes([0, first, second, third]) | LOWER
}

const fn all_packed<const N: usize>(names: [&[u8; 3]; N]) -> [u32; N] {
    let mut all = [0; N];
    let mut at = 0;
    while at < N {
        all[at] = packed(*names[at]);
        at += 1;
    }
    all
}

fn is_day(name: &[u8]) -> bool {
    const NAMES: [u32; 7] = all_packed(DAYS);
    name.try_into()
        .is_ok_and(|name| NAMES.contains(&packed(name)))
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [b' ', zone @ ..] => zone
            .try_into()
            .is_ok_and(|zone| packed(zone) == packed(*b"GMT")),
        _ => false,
    }
}

/// The number of a month.
fn month(name: &[u8]) -> Option<i64> {
    const NAMES: [u32; 12] = all_packed(MONTHS);
    let name = packed(name.try_into().ok()?);
    let named = (1..).zip(NAMES).find(|(_, month)| *month == name);
    named.map(|(number, _)| number)
}

/// `08:49:37` as seconds after midnight; 60 is a leap second (RFC 9110 §5.6.7) and counts as the
/// next minute.
fn time_of_day(value: &[u8]) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = value else {
        return None;
    };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    (hour <= 23 && minute <= 59 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

#[inline]
fn number(digits: &[u8]) -> Option<i64> {
    let mut number = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number = number * 10 + i64::from(value);
    }
    Some(number)
}

fn two_digits(out: &mut [u8], number: i64) {
    const DIGITS: &[u8; 10] = b"0123456789";
    out[0] = DIGITS[index(number / 10 % 10)];
    out[1] = DIGITS[index(number % 10)];
}

fn index(small: i64) -> usize {
    usize::try_from(small).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-01-01T00:00:00Z
    const NOW: Timestamp = Timestamp(1_767_225_600);

    fn check(value: &str, expected: Option<i64>) {
        assert_eq!(
            parse_http_date(value.as_bytes(), NOW),
            expected.map(Timestamp),
            "{value:?}"
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let check = |value: &str, expected: Option<u32>| {
            let wait = parse_retry_after(value.as_bytes(), NOW);
            assert_eq!(wait, expected.map(DeltaSeconds), "{value:?}");
        };
        check("120", Some(120));
        check("0", Some(0));
        check("Thu, 01 Jan 2026 00:01:00 GMT", Some(60));
        check("Wed, 31 Dec 2025 23:59:00 GMT", Some(0));
        check("99999999999999999999", Some(DeltaSeconds::MAX.0));
        for value in ["", "-1", "1.5", "soon", "60 s"] {
            check(value, None);
        }
    }

    #[test]
    fn all_three_http_date_forms_give_the_same_time() {
        for value in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            check(value, Some(784_111_777));
            check(&value.to_ascii_uppercase(), Some(784_111_777));
            check(&value.to_ascii_lowercase(), Some(784_111_777));
        }
        check("Sun Nov 16 08:49:37 1994", Some(784_975_777));
    }

    #[test]
    fn dates_beyond_32_bits_are_valid() {
        check("Tue, 19 Jan 2038 14:14:08 GMT", Some(2_147_523_248));
        check("Sun, 21 Nov 2286 04:46:39 GMT", Some(10_000_039_599));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(WRITABLE.1));
        check("Sat, 01 Jan 0000 00:00:00 GMT", Some(WRITABLE.0));
        check("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1));
    }

    #[test]
    fn malformed_http_date_is_invalid() {
        for value in [
            "",
            "0",
            "-1",
            "foo",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 2050 02:01:18",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 18 Aug 2050 02:01:18 GMT ",
            "Xyz, 18 Aug 2050 02:01:18 GMT",
            "Thu, 18 Xyz 2050 02:01:18 GMT",
            "Thu, +8 Aug 2050 02:01:18 GMT",
            "Thursdax, 18-Aug-50 02:01:18 GMT",
            "Thu, 18-Aug-50 02:01:18 GMT",
            "Thu Aug 08 02:01:18 50",
        ] {
            check(value, None);
        }
    }

    #[test]
    fn date_and_time_numbers_are_checked_at_their_bounds() {
        for (value, valid) in [
            ("Tue, 29 Feb 2000 00:00:00 GMT", true),
            ("Thu, 29 Feb 1900 00:00:00 GMT", false),
            ("Thu, 29 Feb 2024 00:00:00 GMT", true),
            ("Thu, 29 Feb 2023 00:00:00 GMT", false),
            ("Fri, 30 Apr 2021 23:59:60 GMT", true),
            ("Fri, 30 Apr 2021 23:59:61 GMT", false),
            ("Fri, 31 Apr 2021 00:00:00 GMT", false),
            ("Fri, 00 Apr 2021 00:00:00 GMT", false),
            ("Fri, 30 Apr 2021 24:00:00 GMT", false),
            ("Fri, 30 Apr 2021 23:60:00 GMT", false),
        ] {
            assert_eq!(
                parse_http_date(value.as_bytes(), NOW).is_some(),
                valid,
                "{value:?}"
            );
        }
    }

    #[test]
    fn two_digit_year_is_at_most_fifty_years_in_the_future() {
        let year = |value: &str, now| {
            let time = parse_http_date(value.as_bytes(), now).unwrap();
            Civil::from_days(time.0.div_euclid(SECONDS_A_DAY)).year
        };
        assert_eq!(year("Thursday, 18-Aug-50 02:01:18 GMT", NOW), 2050);
        assert_eq!(year("Wednesday, 01-Jan-76 00:00:00 GMT", NOW), 2076);
        assert_eq!(year("Wednesday, 01-Jan-76 00:00:01 GMT", NOW), 1976);
        assert_eq!(year("Sunday, 06-Nov-94 08:49:37 GMT", NOW), 1994);
        // shortly before the year 2100, 10 is ten years ahead
        assert_eq!(
            year("Sunday, 06-Nov-10 08:49:37 GMT", Timestamp(4_100_000_000)),
            2110
        );
    }

    /// The reference: a calendar that turns its pages one by one.
    #[test]
    fn day_numbers_match_a_reference_calendar_for_eight_centuries() {
        let mut page = Civil {
            year: 1600,
            month: 1,
            day: 1,
        };
        let first = page.days();
        for days in first..first + 2 * 146_097 {
            let found = Civil::from_days(days);
            assert_eq!(
                (found.year, found.month, found.day),
                (page.year, page.month, page.day)
            );
            assert_eq!(page.days(), days);
            let tomorrow = Civil {
                day: page.day + 1,
                ..page
            };
            page = match (tomorrow.at(0), page.month) {
                (Some(_), _) => tomorrow,
                (None, 12) => Civil {
                    year: page.year + 1,
                    month: 1,
                    day: 1,
                },
                (None, month) => Civil {
                    month: month + 1,
                    day: 1,
                    ..page
                },
            };
        }
        assert_eq!(page.year, 2400);
    }

    #[test]
    fn time_out_of_range_is_written_as_the_nearest_writable_date() {
        let mut out = [0; 29];
        write_http_date(Timestamp(i64::MAX), &mut out);
        assert_eq!(&out, b"Fri, 31 Dec 9999 23:59:59 GMT");
        write_http_date(Timestamp(i64::MIN), &mut out);
        assert_eq!(&out, b"Sat, 01 Jan 0000 00:00:00 GMT");
        write_http_date(Timestamp(784_111_777), &mut out);
        assert_eq!(&out, b"Sun, 06 Nov 1994 08:49:37 GMT");
    }

    proptest! {
        #[test]
        fn written_http_date_parses_back(seconds in WRITABLE.0..=WRITABLE.1) {
            let mut out = [0; 29];
            write_http_date(Timestamp(seconds), &mut out);
            prop_assert_eq!(parse_http_date(&out, NOW), Some(Timestamp(seconds)));
        }

        #[test]
        fn parsing_arbitrary_bytes_at_any_time_does_not_panic(value in prop::collection::vec(any::<u8>(), 0..40), now: i64) {
            let _ = parse_http_date(&value, Timestamp(now));
        }

        #[test]
        fn parsing_an_rfc850_date_at_any_time_does_not_panic(now: i64) {
            let _ = parse_http_date(b"Sunday, 06-Nov-94 08:49:37 GMT", Timestamp(now));
        }
    }
}
