//! The last hour by seconds and the last week by minutes, in memory that is fixed at the start.
//!
//! Both are rings of rows: a row has a time and a value for each series ([`series`]). A row is at
//! the place of its time, and counts only while its time is the one that is asked for. So a gap, a
//! restart or a clock that jumps leaves rows that are not there, never rows of another time.
//!
//! A value that is not a number is one that is not known: nothing was measured then, or no request
//! took time. Counts beyond 2^24 are rounded: this is for charts, and totals are counters.

pub mod series;

use alloc::vec;
use alloc::vec::Vec;

/// Most bytes of a history.
pub const BYTES_MAX: usize = 8 << 20;

/// The distance of two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A second; kept for an hour.
    Second,
    /// A minute; kept for a week.
    Minute,
}

impl Step {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Second, Self::Minute];

    /// Seconds from a row to the next.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
        }
    }

    /// Rows that are kept.
    #[must_use]
    pub const fn rows(self) -> usize {
        match self {
            Self::Second => 3600,
            Self::Minute => 7 * 24 * 60,
        }
    }

    /// The time of the row that has the second `at_s`.
    #[must_use]
    pub const fn begin_of(self, at_s: u64) -> u64 {
        at_s - at_s % self.seconds()
    }
}

/// The time of a row that was never put: no clock shows it. Memory of zeros is not touched before
/// it is used, so that a history takes memory as it grows.
const NEVER: u64 = 0;

/// Rows at one distance.
#[derive(Clone, Debug)]
struct Ring {
    step: Step,
    /// Seconds since 1970 UTC at which a row begins.
    times: Vec<u64>,
    /// The values of all rows.
    values: Vec<f32>,
}

impl Ring {
    fn new(step: Step, width: usize) -> Self {
        Self {
            step,
            times: vec![NEVER; step.rows()],
            values: vec![0.0; step.rows() * width],
        }
    }

    /// The place of the row that begins at `at_s`.
    fn place(&self, at_s: u64) -> usize {
        let rows = self.times.len() as u64;
        // below the number of rows, which is a usize
        usize::try_from(at_s / self.step.seconds() % rows).unwrap_or_default()
    }
}

/// The history of all series.
#[derive(Clone, Debug)]
pub struct History {
    width: usize,
    rings: [Ring; 2],
}

impl History {
    /// An empty one, of so many series.
    ///
    /// # Panics
    ///
    /// It would have more than [`BYTES_MAX`].
    #[must_use]
    pub fn new(width: usize) -> Self {
        let bytes = Self::bytes(width);
        assert!(bytes <= BYTES_MAX, "{width} series take {bytes} bytes");
        Self {
            width,
            rings: Step::ALL.map(|step| Ring::new(step, width)),
        }
    }

    /// Bytes of a history of so many series.
    #[must_use]
    pub fn bytes(width: usize) -> usize {
        let rows: usize = Step::ALL.iter().map(|step| step.rows()).sum();
        rows * (size_of::<u64>() + width * size_of::<f32>())
    }

    /// How many series it has.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    fn ring(&self, step: Step) -> &Ring {
        &self.rings[step as usize]
    }

    /// Puts a row in the place of the time that it begins at, seconds since 1970 UTC. The row that
    /// was there is an hour or a week old.
    ///
    /// # Panics
    ///
    /// `values` are not one for each series.
    pub fn push(&mut self, step: Step, at_s: u64, values: &[f32]) {
        let width = self.width;
        let ring = &mut self.rings[step as usize];
        let at_s = step.begin_of(at_s);
        let place = ring.place(at_s);
        ring.times[place] = at_s;
        ring.values[place * width..][..width].copy_from_slice(values);
    }

    /// The row that begins at `at_s`, if it is known.
    #[must_use]
    pub fn row(&self, step: Step, at_s: u64) -> Option<&[f32]> {
        let ring = self.ring(step);
        let at_s = step.begin_of(at_s);
        let place = ring.place(at_s);
        (at_s != NEVER && ring.times[place] == at_s)
            .then(|| &ring.values[place * self.width..][..self.width])
    }

    /// The times of the rows from the one with the second `from_s` to the one before `to_s`, no
    /// more than are kept: the last ones if there are more.
    pub fn times(step: Step, from_s: u64, to_s: u64) -> impl Iterator<Item = u64> {
        let (end, kept) = (step.begin_of(to_s), step.rows() as u64 * step.seconds());
        let begin = step.begin_of(from_s).max(end.saturating_sub(kept));
        (begin..end).step_by(usize::try_from(step.seconds()).unwrap_or(1))
    }

    /// Place of the row of the time `at_s` among all of its distance.
    #[must_use]
    pub fn place(&self, step: Step, at_s: u64) -> usize {
        self.ring(step).place(step.begin_of(at_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_764_230_400;

    #[test]
    fn row_is_found_at_its_time_until_another_takes_its_place() {
        let mut history = History::new(2);
        for step in Step::ALL {
            let kept = step.rows() as u64 * step.seconds();
            assert_eq!(history.row(step, NOW), None);
            history.push(step, NOW, &[1.0, 2.0]);
            assert_eq!(history.row(step, NOW), Some(&[1.0, 2.0][..]));
            assert_eq!(history.row(step, NOW + step.seconds()), None);
            // the same place, an hour or a week before and after
            assert_eq!(history.row(step, NOW - kept), None);
            assert_eq!(history.row(step, NOW + kept), None);
            history.push(step, NOW + kept, &[3.0, 4.0]);
            assert_eq!(history.row(step, NOW), None);
            assert_eq!(history.row(step, NOW + kept), Some(&[3.0, 4.0][..]));
        }
    }

    #[test]
    fn each_second_of_a_minute_leads_to_the_row_of_that_minute() {
        let mut history = History::new(1);
        let begin = Step::Minute.begin_of(NOW);
        history.push(Step::Minute, begin + 59, &[7.0]);
        assert_eq!(history.row(Step::Minute, begin), Some(&[7.0][..]));
        assert_eq!(history.row(Step::Minute, begin + 60), None);
        assert_eq!(history.row(Step::Minute, begin - 1), None);
    }

    #[test]
    fn clock_that_goes_back_hides_later_rows_and_begins_anew() {
        let mut history = History::new(1);
        history.push(Step::Second, NOW, &[1.0]);
        history.push(Step::Second, NOW - 10, &[2.0]);
        let rows = History::times(Step::Second, NOW - 12, NOW - 8);
        let rows: Vec<_> = rows.map(|at| history.row(Step::Second, at)).collect();
        assert_eq!(rows, [None, None, Some(&[2.0][..]), None]);
    }

    #[test]
    fn times_are_those_that_are_kept_at_most() {
        let all: Vec<u64> = History::times(Step::Second, 0, NOW).collect();
        assert_eq!((all.len(), all[0], all[3599]), (3600, NOW - 3600, NOW - 1));
        let week: Vec<u64> = History::times(Step::Minute, 0, NOW).collect();
        assert_eq!((week.len(), week[0]), (10_080, NOW - 7 * 86_400));
        assert_eq!(History::times(Step::Second, NOW, NOW).count(), 0);
        assert_eq!(History::times(Step::Second, NOW + 5, NOW).count(), 0);
        assert_eq!(History::times(Step::Minute, 0, 59).count(), 0);
    }

    #[test]
    fn history_of_all_series_is_within_8_mib() {
        assert!(History::bytes(series::all(&[]).len()) <= BYTES_MAX);
        assert_eq!(History::bytes(112), 13_680 * (8 + 448));
    }
}
