//! Time windows of a link: times of the day with a rate of their own.

use super::zone::Zone;
use weir_semantics::Timestamp;

/// Most time windows of a link.
pub const WINDOWS_MAX: usize = 16;

const MINUTES_A_DAY: u16 = 24 * 60;
const SECONDS_A_DAY: i64 = 86_400;

/// A time of the day in which a link has a rate of its own, or its bytes cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// When it begins, in minutes after midnight of local clocks; less than 24 hours.
    pub begin_min: u16,
    /// When it ends, in the same way; on the next day if that is not after the begin. 24 hours are
    /// midnight.
    pub end_min: u16,
    /// The days on which it begins.
    pub days: Days,
    /// Bytes a second in it; `None` for the rate of the link.
    pub rate: Option<u64>,
    /// Bytes that are moved in it are not of the quota.
    pub free: bool,
    /// Parts of fetches that were paused are completed in it. If a window of a link has this, they
    /// are in no other time.
    pub complete: bool,
    /// So many of the most popular stored responses are validated in it, if they are not fresh for
    /// long.
    pub refresh: u16,
}

/// Days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days(u8);

impl Days {
    /// Each day.
    pub const ALL: Self = Self(0x7f);

    /// No day.
    pub const NONE: Self = Self(0);

    /// These days and another one, 0 (Monday) to 6.
    #[must_use]
    pub const fn with(self, day: u8) -> Self {
        Self(self.0 | (1 << (day % 7)))
    }

    /// Whether a day of the calendar, counted from 1970-01-01, is among them.
    fn contain(self, day: i64) -> bool {
        // that was a Thursday
        let since_monday = u32::try_from((day + 3).rem_euclid(7)).unwrap_or(0);
        (self.0 >> since_monday) & 1 == 1
    }

    /// Whether both have a day.
    #[must_use]
    pub const fn intersect(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The days behind them.
    #[must_use]
    const fn next(self) -> Self {
        Self(((self.0 << 1) | (self.0 >> 6)) & 0x7f)
    }
}

impl TimeWindow {
    /// Whether it lasts over midnight.
    #[must_use]
    pub const fn passes_midnight(&self) -> bool {
        self.end_min <= self.begin_min
    }

    /// Whether `at` is in it. A begin that clocks show twice is the first one, an end that they
    /// show twice the last one; what they skip is when they are moved.
    #[must_use]
    pub fn contains(&self, zone: &Zone, at: Timestamp) -> bool {
        let today = zone.local_s(at).div_euclid(SECONDS_A_DAY);
        // clocks that are moved back over midnight show the day before once more
        (today - 1..=today + 1).any(|day| {
            let of = |day: i64, minute: u16| day * SECONDS_A_DAY + i64::from(minute) * 60;
            let last_day = day + i64::from(self.passes_midnight());
            self.days.contain(day)
                && zone.first_at(of(day, self.begin_min)) <= at
                && at < zone.last_at(of(last_day, self.end_min))
        })
    }

    /// Whether there is a time at which both are.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let parts = |window: &Self| {
            let last = if window.passes_midnight() {
                MINUTES_A_DAY
            } else {
                window.end_min
            };
            let rest = if window.passes_midnight() {
                window.end_min
            } else {
                0
            };
            [
                (window.days, window.begin_min, last),
                (window.days.next(), 0, rest),
            ]
        };
        let theirs = parts(other);
        parts(self).iter().any(|ours| {
            theirs.iter().any(|theirs| {
                ours.0.intersect(theirs.0) && ours.1.max(theirs.1) < ours.2.min(theirs.2)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const HOUR: i64 = 3600;
    /// 2026-11-27 00:00 UTC, a Friday.
    const FRIDAY: i64 = 20_784 * SECONDS_A_DAY;

    fn window(begin_h: u16, end_h: u16, days: Days) -> TimeWindow {
        TimeWindow {
            begin_min: begin_h * 60,
            end_min: end_h * 60,
            days,
            rate: None,
            free: false,
            complete: false,
            refresh: 0,
        }
    }

    fn check(window: &TimeWindow, at: i64, expected: bool) {
        let found = window.contains(&Zone::utc(), Timestamp(at));
        assert_eq!(found, expected, "{window:?} at {at}");
    }

    #[test]
    fn window_over_midnight_is_of_the_day_on_which_it_begins() {
        let nights = window(22, 6, Days::NONE.with(4));
        check(&nights, FRIDAY, false);
        check(&nights, FRIDAY + 22 * HOUR - 1, false);
        check(&nights, FRIDAY + 22 * HOUR, true);
        check(&nights, FRIDAY + 30 * HOUR - 1, true);
        check(&nights, FRIDAY + 30 * HOUR, false);
        check(&nights, FRIDAY + 46 * HOUR, false);
        let noon = window(12, 24, Days::ALL);
        check(&noon, FRIDAY + 12 * HOUR - 1, false);
        check(&noon, FRIDAY + 12 * HOUR, true);
        check(&noon, FRIDAY + 24 * HOUR - 1, true);
        check(&noon, FRIDAY + 24 * HOUR, false);
    }

    #[test]
    fn night_has_seven_or_nine_hours_when_clocks_are_moved_in_it() {
        let hours = |offsets: [i32; 2]| {
            let at = Timestamp(FRIDAY + 26 * HOUR);
            let zone = Zone::new(offsets[0], vec![(at, offsets[1])]);
            let nights = window(22, 6, Days::ALL);
            let quarters = (0..200).map(|quarter| FRIDAY + 12 * HOUR + quarter * 900);
            // the first night after noon
            let inside = quarters.map(|at| nights.contains(&zone, Timestamp(at)));
            inside.skip_while(|is| !is).take_while(|is| *is).count() / 4
        };
        assert_eq!(hours([0, 0]), 8);
        assert_eq!(hours([0, 3600]), 7);
        assert_eq!(hours([3600, 0]), 9);
    }

    #[test]
    fn windows_overlap_only_where_they_share_a_minute_of_a_day() {
        let friday = Days::NONE.with(4);
        let saturday = Days::NONE.with(5);
        let cases = [
            ((8, 12, Days::ALL), (12, 14, Days::ALL), false),
            ((8, 12, Days::ALL), (11, 14, Days::ALL), true),
            ((22, 6, friday), (5, 8, saturday), true),
            ((22, 6, friday), (6, 8, saturday), false),
            ((22, 6, friday), (5, 8, friday), false),
            (
                (22, 6, Days::NONE.with(6)),
                (0, 1, Days::NONE.with(0)),
                true,
            ),
            ((0, 24, friday), (0, 24, saturday), false),
        ];
        for (one, other, expected) in cases {
            let (one, other) = (
                window(one.0, one.1, one.2),
                window(other.0, other.1, other.2),
            );
            assert_eq!(one.overlaps(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), expected, "{other:?} {one:?}");
        }
    }
}
