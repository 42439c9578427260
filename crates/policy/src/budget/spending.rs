//! What was spent in which period.
//!
//! A clock that is wrong has bytes counted in a period that is not the true one. So the bytes of a
//! few other periods are kept: a period that is entered a second time goes on where it was. One
//! before the present one, of which nothing is known, has spent as much as the present one; all, if
//! what was known of such a period is forgotten.

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

/// Bytes of the present period and of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spending {
    pub(super) current: PeriodBytes,
    /// Bytes among those of the present period since it was entered last.
    pub(super) entered_bytes: u64,
    /// Bytes since the wall clock is doubted.
    pub(super) doubted_bytes: u64,
    /// Other periods in which bytes were spent, at most [`FORMER_PERIODS_MAX`].
    pub(super) others: Vec<PeriodBytes>,
    /// The begin of the last period that is not among them for want of room.
    pub(super) forgotten: Option<Timestamp>,
}

impl Spending {
    /// Nothing is spent in `period`.
    pub(super) const fn new(period: Period) -> Self {
        Self {
            current: PeriodBytes { period, bytes: 0 },
            entered_bytes: 0,
            doubted_bytes: 0,
            others: Vec::new(),
            forgotten: None,
        }
    }

    /// Adds bytes that were moved, while the wall clock is doubted or not.
    pub(super) fn add(&mut self, bytes: u64, is_doubted: bool) {
        self.current.bytes = self.current.bytes.saturating_add(bytes);
        self.entered_bytes = self.entered_bytes.saturating_add(bytes);
        if is_doubted {
            self.doubted_bytes = self.doubted_bytes.saturating_add(bytes);
        }
    }

    /// The wall clock is believed, and is in `period`, which has a quota of `quota` bytes. What was
    /// spent while it was doubted is of the period before and of this one: it is not known when it
    /// was. What was spent in a later period since that was entered is of an earlier one, too: the
    /// clock was wrong.
    pub(super) fn enter(&mut self, period: Period, quota: u64) {
        let before = self.current;
        let doubted_bytes = core::mem::take(&mut self.doubted_bytes);
        if before.period == period {
            return;
        }
        let is_earlier = period.start < before.period.start;
        let among = self.others.iter().chain([&before]);
        let known = among.filter(|known| period.covers(&known.period));
        let known = known.map(|known| known.bytes).reduce(u64::saturating_add);
        let has_before = period.covers(&before.period);
        let added = match (has_before, is_earlier) {
            (true, _) => 0,
            (false, true) => self.entered_bytes,
            (false, false) => doubted_bytes,
        };
        let bytes = match known {
            Some(bytes) => bytes.saturating_add(added),
            None if self.forgotten.is_some_and(|last| period.start <= last) => quota,
            None if is_earlier => before.bytes,
            None => added,
        };
        self.others.retain(|other| other.period != period);
        if before.bytes > 0 {
            self.remember(before);
        }
        self.current = PeriodBytes { period, bytes };
        self.entered_bytes = 0;
    }

    /// Keeps what was spent in a period; forgets the oldest if there are too many.
    fn remember(&mut self, before: PeriodBytes) {
        self.others.push(before);
        self.others.sort_unstable_by_key(|other| other.period.start);
        if self.others.len() > FORMER_PERIODS_MAX {
            let oldest = self.others.remove(0).period.start;
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

    fn month(number: i64) -> Period {
        period(number * 100, number * 100 + 100)
    }

    #[test]
    fn period_that_is_entered_again_goes_on_where_it_was() {
        let mut spending = Spending::new(month(1));
        spending.add(10, false);
        spending.enter(month(2), QUOTA);
        assert_eq!(spending.current.bytes, 0);
        spending.add(5, false);
        spending.enter(month(1), QUOTA);
        // the clock was wrong: what it called month 2 was in month 1
        assert_eq!(spending.current.bytes, 15);
        spending.enter(month(2), QUOTA);
        assert_eq!(spending.current.bytes, 5);
        spending.enter(month(1), QUOTA);
        assert_eq!(spending.current.bytes, 15, "nothing was spent meanwhile");
    }

    #[test]
    fn bytes_of_a_doubted_clock_are_of_both_periods() {
        let mut spending = Spending::new(month(1));
        spending.add(10, false);
        spending.add(7, true);
        spending.enter(month(2), QUOTA);
        assert_eq!(spending.current.bytes, 7);
        assert_eq!(spending.others[0].bytes, 17);
        assert_eq!(spending.doubted_bytes, 0);
    }

    #[test]
    fn unknown_earlier_period_has_spent_as_much_as_the_present_one() {
        let mut spending = Spending::new(month(5));
        spending.add(10, false);
        spending.enter(month(3), QUOTA);
        assert_eq!(spending.current.bytes, 10);
    }

    #[test]
    fn longer_period_has_spent_what_the_shorter_ones_in_it_have() {
        let mut spending = Spending::new(period(0, 10));
        spending.add(1, false);
        spending.enter(period(10, 20), QUOTA);
        spending.add(2, false);
        spending.enter(period(0, 100), QUOTA);
        assert_eq!(spending.current.bytes, 3);
        spending.add(4, false);
        spending.enter(period(20, 30), QUOTA);
        assert_eq!(spending.current.bytes, 0, "the operator has shortened it");
    }

    #[test]
    fn few_periods_are_remembered_and_the_oldest_is_left_out() {
        let mut spending = Spending::new(month(0));
        for number in 1..20 {
            spending.add(1, false);
            spending.enter(month(number), QUOTA);
        }
        assert_eq!(spending.others.len(), FORMER_PERIODS_MAX);
        let starts: Vec<_> = spending.others.iter().map(|it| it.period.start.0).collect();
        assert_eq!(starts.iter().min(), Some(&1100));
        spending.enter(month(15), QUOTA);
        assert_eq!(
            spending.current.bytes, 1,
            "remembered; nothing was spent since"
        );
        spending.enter(month(9), QUOTA);
        assert_eq!(spending.current.bytes, QUOTA, "forgotten");
    }
}
