//! Virtual dates: seconds of the vector's clock as IMF-fixdate (RFC 9110 §5.6.7).
//!
//! Written here and not taken from a cache under test: an error there must not hide itself.

/// The start of every vector: 2026-01-01 00:00:00 GMT, a Thursday, in seconds since the epoch.
pub const START_S: i64 = 1_767_225_600;

const DAY_S: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A date that is counted from a moment of the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelativeDate {
    /// Counted from the start and not from the step's time.
    from_start: bool,
    /// Seconds to add.
    offset_s: i64,
}

impl RelativeDate {
    /// Reads `@0`, `@-10`, `@+60`, `@start`, `@start-1000`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('@')?;
        let (from_start, offset) = match rest.strip_prefix("start") {
            Some(offset) => (true, offset),
            None => (false, rest),
        };
        let offset_s = match offset {
            "" if from_start => 0,
            "0" if !from_start => 0,
            _ if offset.starts_with(['+', '-']) => offset.parse().ok()?,
            _ => return None,
        };
        Some(Self {
            from_start,
            offset_s,
        })
    }

    /// The date for a step at `at_s` seconds since the start.
    pub(crate) fn render(self, at_s: u32) -> String {
        let base_s = if self.from_start { 0 } else { i64::from(at_s) };
        http_date(START_S + base_s + self.offset_s)
    }
}

/// Seconds since the epoch as IMF-fixdate, for years 1970 to 9999.
pub(crate) fn http_date(epoch_s: i64) -> String {
    let (mut days, second) = (epoch_s.div_euclid(DAY_S), epoch_s.rem_euclid(DAY_S));
    let weekday = WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let mut year = 1970;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 0;
    while days >= days_of_month(month, year) {
        days -= days_of_month(month, year);
        month += 1;
    }
    format!(
        "{weekday}, {:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        days + 1,
        MONTHS[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(month: usize, year: i64) -> i64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_date_is_written_in_imf_fixdate_format() {
        for (epoch_s, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (START_S - 1, "Wed, 31 Dec 2025 23:59:59 GMT"),
            (START_S, "Thu, 01 Jan 2026 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(epoch_s), expected);
        }
    }

    #[test]
    fn relative_date_counts_from_the_given_moment_or_from_the_start() {
        let check = |text, at_s, expected| {
            assert_eq!(
                RelativeDate::parse(text).map(|date| date.render(at_s)),
                Some(http_date(START_S + expected)),
                "{text}"
            );
        };
        check("@0", 5, 5);
        check("@-10", 5, -5);
        check("@+60", 5, 65);
        check("@start", 5, 0);
        check("@start-1000", 5, -1000);
        for text in ["@", "@5", "@start5", "@x", "@+", "@start0", "0"] {
            assert_eq!(RelativeDate::parse(text), None, "{text}");
        }
    }
}
