//! What is done at a point of a grid.

use super::grid::Point;
use std::collections::BTreeMap;

/// Makes runs.
pub trait Job: Sync {
    /// The axes that it knows, in the order of the file's columns.
    fn parameters(&self) -> Vec<Parameter>;

    /// What is the same for all runs and distinguishes this sweep from another: the trace, the
    /// seed. Becomes columns of words.
    fn about(&self) -> BTreeMap<String, String>;

    /// Makes the run of a point: a value for each of its parameters. Each run gives the same
    /// figures, in the same order.
    ///
    /// # Errors
    /// Why it cannot be made.
    fn run(&self, point: &Point) -> Result<Figures, String>;
}

/// An axis that a job knows.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// In flags and columns.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Where the grid does not have it.
    pub default: &'static str,
    /// Says what is wrong with a value.
    pub check: fn(&str) -> Result<(), String>,
}

/// Figures of a run, named with their units.
pub type Figures = Vec<(&'static str, Figure)>;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A count, or bytes, or microseconds.
    Whole(u64),
    /// A ratio, or a time in another unit.
    Real(f64),
}
