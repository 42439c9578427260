//! A number beside what is published of it.

use super::published::{Bound, PublishedValue, Unit};
use serde::Serialize;

/// Percentages within so many points are as published.
pub const POINTS_MAX: f64 = 2.0;
/// Other numbers are within so many percent.
pub const PERCENT_MAX: f64 = 5.0;

/// A number of ours, what the paper has, and what is between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Ours; `None` where nothing can be said.
    pub ours: Option<f64>,
    /// The paper's, if it has one.
    pub paper: Option<PublishedValue>,
    /// Ours less the paper's: points for percentages, percent of the paper's number for others.
    /// Nothing where a bound is kept.
    pub difference: Option<f64>,
    /// It is not as published.
    pub is_off: bool,
    /// The note that says why.
    pub note: Option<usize>,
}

impl Cell {
    pub(super) fn new(ours: Option<f64>, paper: Option<PublishedValue>) -> Self {
        let difference = ours
            .zip(paper)
            .and_then(|(ours, paper)| difference(ours, &paper));
        let is_off = match paper {
            Some(paper) => ours.is_none() || difference.is_some_and(|off| is_off(off, &paper)),
            None => false,
        };
        Self {
            ours,
            paper,
            difference,
            is_off,
            note: None,
        }
    }
}

fn difference(ours: f64, paper: &PublishedValue) -> Option<f64> {
    let off = match paper.bound {
        Bound::Exactly | Bound::UpTo => ours - paper.value,
        Bound::MoreThan => (ours - paper.value).min(0.0),
        Bound::LessThan => (ours - paper.value).max(0.0),
    };
    let is_kept = off == 0.0 && matches!(paper.bound, Bound::MoreThan | Bound::LessThan);
    match paper.unit {
        _ if is_kept => None,
        Unit::Percent => Some(off),
        _ => Some(100.0 * off / paper.value),
    }
}

fn is_off(difference: f64, paper: &PublishedValue) -> bool {
    let most = match (paper.bound, paper.unit) {
        // a statement, and no number that was measured
        (Bound::MoreThan | Bound::LessThan, _) => 0.0,
        (_, Unit::Percent) => POINTS_MAX,
        _ => PERCENT_MAX,
    };
    difference.abs() > most
}

#[cfg(test)]
mod tests {
    use super::super::experiment::Kind;
    use super::*;

    fn check(unit: Unit, bound: Bound, ours: f64, expected: Option<f64>, is_off: bool) {
        let paper = PublishedValue {
            key: "a",
            kind: Kind::Modem,
            value: 40.0,
            unit,
            bound,
            place: "here",
        };
        let cell = Cell::new(Some(ours), Some(paper));
        assert_eq!((cell.difference, cell.is_off), (expected, is_off), "{ours}");
    }

    #[test]
    fn number_is_marked_off_only_beyond_its_tolerance() {
        check(Unit::Percent, Bound::Exactly, 42.0, Some(2.0), false);
        check(Unit::Percent, Bound::Exactly, 37.5, Some(-2.5), true);
        check(Unit::Percent, Bound::UpTo, 37.5, Some(-2.5), true);
        check(Unit::Seconds, Bound::Exactly, 42.0, Some(5.0), false);
        check(Unit::Seconds, Bound::Exactly, 36.0, Some(-10.0), true);
        check(Unit::Mean, Bound::MoreThan, 41.0, None, false);
        check(Unit::Mean, Bound::MoreThan, 39.0, Some(-2.5), true);
        check(Unit::Percent, Bound::LessThan, -3.0, None, false);
        check(Unit::Percent, Bound::LessThan, 40.5, Some(0.5), true);
    }

    #[test]
    fn missing_number_is_marked_off_if_the_paper_has_one() {
        let paper = PublishedValue::of("causes.cookie", Kind::Modem);
        assert!(paper.is_some());
        assert!(Cell::new(None, paper).is_off);
        assert!(!Cell::new(None, None).is_off);
    }
}
