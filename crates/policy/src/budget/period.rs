//! The periods of a quota: days, weeks and months of the calendar of a time zone.

use super::zone::Zone;
use crate::choice;
use weir_semantics::{Civil, Timestamp};

const SECONDS_A_DAY: i64 = 86_400;

choice! {
    /// How often a quota is given.
    #[derive(PartialOrd, Ord)]
    pub enum Every {
        /// From midnight to midnight.
        Day = "day",
        /// Seven days.
        Week = "week",
        /// A month of the calendar.
        Month = "month",
    }
}

/// Which periods a quota has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodRules {
    /// How long they are.
    pub every: Every,
    /// The day on which they begin: of a month 1 to 28, of a week 1 (Monday) to 7, of a day 1.
    pub starts: u8,
}

/// A span of time with a quota of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first second.
    pub start: Timestamp,
    /// The first second behind it.
    pub end: Timestamp,
}

impl Every {
    /// The last day on which a period may begin.
    #[must_use]
    pub const fn starts_max(self) -> u8 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 28,
        }
    }
}

impl PeriodRules {
    /// The period that `at` is in. Each period begins at the first instant of its first day, also
    /// where clocks are moved at midnight.
    #[must_use]
    pub fn containing(self, zone: &Zone, at: Timestamp) -> Period {
        let begin = |day: i64| zone.first_at(day.saturating_mul(SECONDS_A_DAY));
        let today = zone.local_s(at).div_euclid(SECONDS_A_DAY);
        let mut first = self.first_day(today);
        // clocks that are moved back over midnight show the day before once more
        if begin(first) > at {
            first = self.first_day(first - 1);
        }
        while begin(self.next_first_day(first)) <= at {
            first = self.next_first_day(first);
        }
        Period {
            start: begin(first),
            end: begin(self.next_first_day(first)),
        }
    }

    /// The first day of the period that `day` is in; days are counted from 1970-01-01.
    fn first_day(self, day: i64) -> i64 {
        match self.every {
            Every::Day => day,
            Every::Week => {
                // 1970-01-01 was a Thursday
                let since_monday = day + 3;
                day - (since_monday - (i64::from(self.starts) - 1)).rem_euclid(7)
            }
            Every::Month => {
                let date = Civil::from_days(day);
                let starts = i64::from(self.starts);
                let is_begun = date.day >= starts;
                let month = Civil {
                    day: starts,
                    ..date
                };
                let first = if is_begun {
                    month
                } else {
                    previous_month(month)
                };
                first.days()
            }
        }
    }

    fn next_first_day(self, first: i64) -> i64 {
        match self.every {
            Every::Day => first + 1,
            Every::Week => first + 7,
            Every::Month => next_month(Civil::from_days(first)).days(),
        }
    }
}

impl Period {
    /// Whether `at` is in it.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// Whether all of `other` is in it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

const fn previous_month(date: Civil) -> Civil {
    match date.month {
        1 => Civil {
            year: date.year - 1,
            month: 12,
            ..date
        },
        month => Civil {
            month: month - 1,
            ..date
        },
    }
}

const fn next_month(date: Civil) -> Civil {
    match date.month {
        12 => Civil {
            year: date.year + 1,
            month: 1,
            ..date
        },
        month => Civil {
            month: month + 1,
            ..date
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const HOUR: i64 = 3600;
    const DAY: i64 = SECONDS_A_DAY;
    /// 2026-11-27 00:00 UTC, a Friday.
    const FRIDAY: i64 = 20_784 * DAY;

    fn check(every: Every, starts: u8, at: i64, expected: (i64, i64)) {
        let rules = PeriodRules { every, starts };
        let period = rules.containing(&Zone::utc(), Timestamp(at));
        let found = (period.start.0, period.end.0);
        assert_eq!(found, expected, "{every} from {starts} at {at}");
    }

    #[test]
    fn period_begins_on_the_day_that_is_configured() {
        for at in [FRIDAY, FRIDAY + 1, FRIDAY + DAY - 1] {
            check(Every::Day, 1, at, (FRIDAY, FRIDAY + DAY));
            check(Every::Week, 1, at, (FRIDAY - 4 * DAY, FRIDAY + 3 * DAY));
            check(Every::Week, 5, at, (FRIDAY, FRIDAY + 7 * DAY));
            check(Every::Week, 6, at, (FRIDAY - 6 * DAY, FRIDAY + DAY));
            check(Every::Month, 1, at, (FRIDAY - 26 * DAY, FRIDAY + 4 * DAY));
            check(Every::Month, 27, at, (FRIDAY, FRIDAY + 30 * DAY));
            check(Every::Month, 28, at, (FRIDAY - 30 * DAY, FRIDAY + DAY));
        }
        check(Every::Month, 27, FRIDAY - 1, (FRIDAY - 31 * DAY, FRIDAY));
    }

    #[test]
    fn month_of_december_ends_with_the_year() {
        let december = FRIDAY + 4 * DAY;
        let expected = (december, december + 31 * DAY);
        check(Every::Month, 1, december + 30 * DAY, expected);
        let january = december + 31 * DAY;
        check(Every::Month, 1, january, (january, january + 31 * DAY));
    }

    #[test]
    fn day_begins_where_clocks_go_on_when_they_skip_midnight() {
        // from 00:00 to 01:00 on that Friday
        let zone = Zone::new(0, vec![(Timestamp(FRIDAY), 3600)]);
        let rules = PeriodRules {
            every: Every::Day,
            starts: 1,
        };
        let before = rules.containing(&zone, Timestamp(FRIDAY - 1));
        assert_eq!(before.end, Timestamp(FRIDAY));
        let day = rules.containing(&zone, Timestamp(FRIDAY));
        assert_eq!((day.end.0 - day.start.0) / HOUR, 23);
    }

    #[test]
    fn day_begins_once_where_clocks_are_moved_back_over_midnight() {
        // from 00:30 to 23:30 of the day before
        let back = Timestamp(FRIDAY + HOUR / 2);
        let zone = Zone::new(0, vec![(back, -3600)]);
        let rules = PeriodRules {
            every: Every::Day,
            starts: 1,
        };
        let day = rules.containing(&zone, Timestamp(FRIDAY));
        assert_eq!((day.end.0 - day.start.0) / HOUR, 25);
        for at in [FRIDAY, back.0 - 1, back.0, back.0 + HOUR, FRIDAY + DAY] {
            assert_eq!(rules.containing(&zone, Timestamp(at)), day, "{at}");
        }
    }

    #[test]
    fn day_that_a_zone_skips_has_no_quota() {
        // from the end of the 29th to the begin of the 31st, as Samoa did in 2011
        let zone = Zone::new(0, vec![(Timestamp(FRIDAY), 24 * 3600)]);
        let rules = PeriodRules {
            every: Every::Day,
            starts: 1,
        };
        let before = rules.containing(&zone, Timestamp(FRIDAY - 1));
        let after = rules.containing(&zone, Timestamp(FRIDAY));
        assert_eq!(before.end, after.start);
        assert_eq!(after.end.0 - after.start.0, DAY);
    }
}
