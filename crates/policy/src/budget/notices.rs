//! What operators are told of a link when it changes.

use super::link::LinkReport;
use super::period::Period;

/// A quota is near its end from so many percent of it on.
pub const NEAR_PERCENT: u8 = 80;

/// A change of a link that an operator is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A period of the quota has begun.
    PeriodBegun,
    /// [`NEAR_PERCENT`] of the quota are spent.
    NearEnd,
    /// The quota is spent.
    Spent,
    /// The wall clock was stepped: no period begins until it is confirmed.
    ClockStep,
    /// The wall clock is used again.
    ClockConfirmed,
}

/// What an operator has been told of a link, so that each change is told once a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notices {
    period: Option<Period>,
    /// Bytes of the quota that was told of.
    quota_bytes: u64,
    is_near: bool,
    is_spent: bool,
    is_after_step: bool,
}

impl Notices {
    /// Of a link that is `report` now: what it is at the start is told elsewhere.
    #[must_use]
    pub fn new(report: &LinkReport) -> Self {
        let mut notices = Self {
            period: report.quota.map(|quota| quota.period),
            quota_bytes: report.quota.map_or(0, |quota| quota.bytes),
            is_near: false,
            is_spent: false,
            is_after_step: report.is_after_clock_step,
        };
        // the first look is of the same report
        notices.look(report).for_each(drop);
        notices
    }

    /// What has changed until `report`: at most one notice of the clock, of the period, and of how
    /// much is spent.
    pub fn look(&mut self, report: &LinkReport) -> impl Iterator<Item = Notice> + use<> {
        let is_after_step = report.is_after_clock_step;
        let of_clock = match (self.is_after_step, is_after_step) {
            (false, true) => Some(Notice::ClockStep),
            (true, false) => Some(Notice::ClockConfirmed),
            _ => None,
        };
        self.is_after_step = is_after_step;
        let Some(quota) = &report.quota else {
            (self.period, self.is_near, self.is_spent) = (None, false, false);
            return [of_clock, None, None].into_iter().flatten();
        };
        let is_new = self.period.is_some_and(|period| period != quota.period);
        self.period = Some(quota.period);
        let is_changed = self.quota_bytes != quota.bytes;
        self.quota_bytes = quota.bytes;
        let percent = u128::from(quota.spent_bytes) * 100 / u128::from(quota.bytes.max(1));
        let is_near = percent >= u128::from(NEAR_PERCENT);
        if is_new || is_changed || !is_near {
            (self.is_near, self.is_spent) = (false, false);
        }
        let of_bytes = if quota.is_spent && !self.is_spent {
            Some(Notice::Spent)
        } else if is_near && !self.is_near && !quota.is_spent {
            Some(Notice::NearEnd)
        } else {
            None
        };
        self.is_near |= is_near;
        // a free window makes it usable for a while, and changes nothing
        self.is_spent |= quota.is_spent;
        let begun = is_new.then_some(Notice::PeriodBegun);
        [of_clock, begun, of_bytes].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::QuotaReport;
    use super::super::rules::WhenSpent;
    use super::*;
    use alloc::vec::Vec;
    use weir_semantics::Timestamp;

    fn report(day: i64, spent_bytes: u64, is_spent: bool) -> LinkReport {
        LinkReport {
            rate: None,
            window: None,
            is_free: false,
            is_after_clock_step: false,
            quota: Some(QuotaReport {
                bytes: 1000,
                spent_bytes,
                booked_bytes: spent_bytes,
                period: Period {
                    start: Timestamp(day * 86_400),
                    end: Timestamp((day + 1) * 86_400),
                },
                then: WhenSpent::Refuse,
                is_spent,
            }),
        }
    }

    /// The notices of each of `reports` behind the first.
    fn notices(reports: &[LinkReport]) -> Vec<Vec<Notice>> {
        let mut notices = Notices::new(&reports[0]);
        let rest = reports[1..].iter();
        rest.map(|report| notices.look(report).collect()).collect()
    }

    #[test]
    fn each_step_of_a_quota_is_told_once_a_period() {
        let reports = [
            report(0, 0, false),
            report(0, 799, false),
            report(0, 800, false),
            report(0, 900, false),
            report(0, 1000, true),
            // a free window
            report(0, 1000, false),
            report(0, 1000, true),
            report(1, 0, false),
            report(1, 1000, true),
        ];
        let expected: [&[Notice]; 8] = [
            &[],
            &[Notice::NearEnd],
            &[],
            &[Notice::Spent],
            &[],
            &[],
            &[Notice::PeriodBegun],
            &[Notice::Spent],
        ];
        assert_eq!(notices(&reports), expected);
    }

    #[test]
    fn quota_that_is_raised_is_told_again_when_it_is_near_its_end() {
        let mut raised = report(0, 1000, false);
        let Some(quota) = &mut raised.quota else {
            return;
        };
        quota.bytes = 2000;
        let mut near = raised;
        if let Some(quota) = &mut near.quota {
            quota.spent_bytes = 1600;
        }
        let reports = [report(0, 1000, true), raised, near];
        let expected: [&[Notice]; 2] = [&[], &[Notice::NearEnd]];
        assert_eq!(notices(&reports), expected);
    }

    #[test]
    fn quota_that_is_changed_is_told_again_when_it_is_spent() {
        let of = |bytes: u64, spent_bytes: u64| {
            let mut report = report(0, spent_bytes, spent_bytes >= bytes);
            if let Some(quota) = &mut report.quota {
                quota.bytes = bytes;
            }
            report
        };
        // by less than a quarter: it stays near its end
        let raised = [of(1000, 1000), of(1200, 1000), of(1200, 1200)];
        let expected: [&[Notice]; 2] = [&[Notice::NearEnd], &[Notice::Spent]];
        assert_eq!(notices(&raised), expected);
        let lowered = [of(1200, 1000), of(1000, 1000), of(1000, 1000)];
        let expected: [&[Notice]; 2] = [&[Notice::Spent], &[]];
        assert_eq!(notices(&lowered), expected);
    }

    #[test]
    fn step_of_the_clock_is_told_once_and_so_is_its_end() {
        let after_step = LinkReport {
            is_after_clock_step: true,
            ..report(0, 0, false)
        };
        let good = report(0, 0, false);
        let found = notices(&[good, after_step, after_step, good, good]);
        let expected: [&[Notice]; 4] = [&[Notice::ClockStep], &[], &[Notice::ClockConfirmed], &[]];
        assert_eq!(found, expected);
    }
}
