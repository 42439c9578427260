//! How much slower a link was than it is called.

use serde::{Deserialize, Serialize};
use weir_measure::{merge_fields, share};

/// The pauses that a link made, or many links.
///
/// A modem's packet takes 400 ms, one of a fast line 2 ms: how late a turn of a link may come
/// depends on how long it was to take. So what counts is the sum of what came on top of the pauses,
/// beside the sum of the pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTime {
    /// Times at which a link was to be read or written on.
    pub turns: u64,
    /// How long that was to take in all, in microseconds.
    pub planned_us: u64,
    /// How much longer it took because the generator had something else to do, in microseconds;
    /// without what was made good.
    pub late_us: u64,
}

impl LinkTime {
    /// A pause that began at `from_us` and was to last until `until_us` is over now. So much
    /// lateness of it will be made good.
    pub(crate) fn turn(&mut self, from_us: u64, until_us: u64, now_us: u64, made_good_us: u64) {
        let late_us = now_us.saturating_sub(until_us);
        self.turns += 1;
        self.planned_us += until_us.saturating_sub(from_us);
        self.late_us += late_us.saturating_sub(made_good_us);
    }

    /// What came on top, as a share of what was planned; 0 for a link that held nothing up.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        share(self.late_us, self.planned_us)
    }
}

merge_fields! {
    LinkTime { sum { turns, planned_us, late_us } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_share_is_uncompensated_lateness_over_planned_time() {
        let share = |planned_us: u64, late_us: u64, made_good_us| {
            let mut time = LinkTime::default();
            let until_us = 50 + planned_us;
            time.turn(50, until_us, until_us + late_us, made_good_us);
            time.late_share()
        };
        let check = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        check(share(400_000, 20_000, 0), 0.05);
        check(share(2000, 20_000, 0), 10.0);
        check(share(2000, 20_000, 10_000), 5.0);
        check(share(2000, 10_000, 10_000), 0.0);
        check(share(2000, 0, 0), 0.0);
        // nothing was to be waited for
        check(share(0, 20_000, 0), 0.0);
    }

    #[test]
    fn merged_link_time_is_the_sum_of_both_links() {
        let mut all = LinkTime::default();
        let mut one = LinkTime::default();
        one.turn(0, 1000, 1100, 0);
        all.merge(&one);
        all.merge(&one);
        let expected = LinkTime {
            turns: 2,
            planned_us: 2000,
            late_us: 200,
        };
        assert_eq!(all, expected);
    }
}
