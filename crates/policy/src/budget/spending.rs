//! What was spent in which period.
//!
//! A clock that is wrong has bytes counted in a period that is not the true one. So the bytes of a
//! few former periods are kept: a period that is entered a second time goes on where it was. One
//! before the present one, of which nothing is known, has spent as much as the present one; all, if
//! what was known of such a period is forgotten.
//!
//! An operator who changes the calendar has periods overlap. What was spent in the one that was
//! current is of the one that takes its place: a change grants no quota anew.

use super::period::Period;
use alloc::vec::Vec;
use weir_semantics::Timestamp;

/// Periods beside the present one that are remembered.
pub const FORMER_PERIODS_MAX: usize = 8;

/// Bytes of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeriodBytes {
    pub(super) period: Period,
    pub(super) bytes: u64,
}

/// Bytes of the present period and of former ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spending {
    pub(super) current: PeriodBytes,
    /// Bytes among those of the present period since it was entered last.
    pub(super) entered_bytes: u64,
    /// Bytes since a step of the wall clock that is not confirmed.
    pub(super) clock_step_bytes: u64,
    /// Other periods in which bytes were spent, at most [`FORMER_PERIODS_MAX`].
    pub(super) former: Vec<PeriodBytes>,
    /// The begin of the last period that is not among them for want of room.
    pub(super) forgotten: Option<Timestamp>,
}

impl Spending {
    /// Nothing is spent in `period`.
    pub(super) const fn new(period: Period) -> Self {
        Self {
            current: PeriodBytes { period, bytes: 0 },
            entered_bytes: 0,
            clock_step_bytes: 0,
            former: Vec::new(),
            forgotten: None,
        }
    }

    /// Adds bytes that were moved, after a step of the wall clock that is not confirmed
    /// or not.
    pub(super) fn add(&mut self, bytes: u64, is_after_clock_step: bool) {
        self.current.bytes = self.current.bytes.saturating_add(bytes);
        self.entered_bytes = self.entered_bytes.saturating_add(bytes);
        if is_after_clock_step {
            self.clock_step_bytes = self.clock_step_bytes.saturating_add(bytes);
        }
    }

    /// The wall clock is in `period`, which has a quota of `quota` bytes, and has no step that is
    /// not confirmed. What was spent after one is of the period before and of this one: it is not
    /// known when it was. What was spent in a later period since that was entered is of an earlier
    /// one, too: the clock was wrong.
    pub(super) fn enter(&mut self, at: Timestamp, period: Period, quota: u64) {
        let before = self.current;
        let clock_step_bytes = core::mem::take(&mut self.clock_step_bytes);
        if before.period == period {
            return;
        }
        if before.period.contains(at) {
            return self.replace(period);
        }
        let is_earlier = period.start < before.period.start;
        let among = self.former.iter().chain([&before]);
        let known = among.filter(|known| period.covers(&known.period));
        let known = known.map(|known| known.bytes).reduce(u64::saturating_add);
        let has_before = period.covers(&before.period);
        let added = match (has_before, is_earlier) {
            (true, _) => 0,
            (false, true) => self.entered_bytes,
            (false, false) => clock_step_bytes,
        };
        let bytes = match known {
            Some(bytes) => bytes.saturating_add(added),
            None if self.forgotten.is_some_and(|last| period.start <= last) => quota,
            None if is_earlier => before.bytes,
            None => added,
        };
        self.former.retain(|former| former.period != period);
        if before.bytes > 0 {
            self.remember(before);
        }
        self.current = PeriodBytes { period, bytes };
        self.entered_bytes = 0;
    }

    /// The calendar is another one: `period` takes the place of the current one, which is not over,
    /// and of the former ones in it.
    fn replace(&mut self, period: Period) {
        let mut bytes = self.current.bytes;
        self.former.retain(|former| {
            let is_in_it = period.covers(&former.period);
            if is_in_it {
                bytes = bytes.saturating_add(former.bytes);
            }
            !is_in_it
        });
        self.current = PeriodBytes { period, bytes };
    }

    /// Keeps what was spent in a period; forgets the oldest if there are too many.
    fn remember(&mut self, before: PeriodBytes) {
        self.former.push(before);
        self.former
            .sort_unstable_by_key(|former| former.period.start);
        if self.former.len() > FORMER_PERIODS_MAX {
            let oldest = self.former.remove(0).period.start;
            self.forgotten = self.forgotten.max(Some(oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: u64 = 1000;

    fn period(start: i64, end: i64) -> Period {
        Period {
            start: Timestamp(start),
            end: Timestamp(end),
        }
    }

    /// Enters a period at its last second.
    fn enter(spending: &mut Spending, period: Period) {
        let at = Timestamp(period.end.0 - 1);
        spending.enter(at, period, QUOTA);
    }

    fn month(number: i64) -> Period {
        period(number * 100, number * 100 + 100)
    }

    #[test]
    fn period_that_is_entered_again_goes_on_where_it_was() {
        let mut spending = Spending::new(month(1));
        spending.add(10, false);
        enter(&mut spending, month(2));
        assert_eq!(spending.current.bytes, 0);
        spending.add(5, false);
        enter(&mut spending, month(1));
        // the clock was wrong: what it called month 2 was in month 1
        assert_eq!(spending.current.bytes, 15);
        enter(&mut spending, month(2));
        assert_eq!(spending.current.bytes, 5);
        enter(&mut spending, month(1));
        assert_eq!(spending.current.bytes, 15, "nothing was spent meanwhile");
    }

    #[test]
    fn bytes_after_a_step_of_the_clock_are_of_both_periods() {
        let mut spending = Spending::new(month(1));
        spending.add(10, false);
        spending.add(7, true);
        enter(&mut spending, month(2));
        assert_eq!(spending.current.bytes, 7);
        assert_eq!(spending.former[0].bytes, 17);
        assert_eq!(spending.clock_step_bytes, 0);
    }

    #[test]
    fn unknown_earlier_period_has_spent_as_much_as_the_present_one() {
        let mut spending = Spending::new(month(5));
        spending.add(10, false);
        enter(&mut spending, month(3));
        assert_eq!(spending.current.bytes, 10);
    }

    #[test]
    fn period_of_another_calendar_has_spent_what_those_have_that_it_replaces() {
        let mut spending = Spending::new(period(0, 10));
        spending.add(1, false);
        enter(&mut spending, period(10, 20));
        spending.add(2, false);
        let now = Timestamp(15);
        spending.enter(now, period(0, 100), QUOTA);
        assert_eq!(spending.current.bytes, 3, "a longer one");
        spending.add(4, false);
        spending.enter(now, period(12, 22), QUOTA);
        assert_eq!(spending.current.bytes, 7, "one that begins later");
        spending.enter(now, period(0, 100), QUOTA);
        assert_eq!(spending.current.bytes, 7, "nothing is counted twice");
        spending.enter(now, period(10, 20), QUOTA);
        enter(&mut spending, period(20, 30));
        assert_eq!(spending.current.bytes, 0, "the next one");
    }

    #[test]
    fn few_periods_are_remembered_and_the_oldest_is_left_out() {
        let mut spending = Spending::new(month(0));
        for number in 1..20 {
            spending.add(1, false);
            enter(&mut spending, month(number));
        }
        assert_eq!(spending.former.len(), FORMER_PERIODS_MAX);
        let starts: Vec<_> = spending.former.iter().map(|it| it.period.start.0).collect();
        assert_eq!(starts.iter().min(), Some(&1100));
        enter(&mut spending, month(15));
        assert_eq!(
            spending.current.bytes, 1,
            "remembered; nothing was spent since"
        );
        enter(&mut spending, month(9));
        assert_eq!(spending.current.bytes, QUOTA, "forgotten");
    }
}
