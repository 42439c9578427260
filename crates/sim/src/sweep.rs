//! Sweeps: a run for every point of a grid, on all cores, each once.
//!
//! A [`Grid`] is some named axes with values, all words; a [`Point`] has one value of each; a
//! [`Job`] makes a run of a point and gives figures with names. What the axes mean is the job's
//! affair: here it is not known whether a cache is simulated with packets or without.
//!
//! The outcome is one Parquet file with a row a run, which [`Runs`] replaces whole whenever runs
//! have ended: it is never half written, and a run that is in it is not made again.

mod axes;
mod file;
mod grid;
mod hits_job;
mod job;
mod run;
mod run_job;
#[cfg(test)]
mod tests;

pub use file::{FileError, Runs};
pub use grid::{Axis, Grid, GridError, POINTS_MAX, Point};
pub use hits_job::HitsJob;
pub use job::{Figure, Figures, Job, Parameter};
pub use run::{Done, Progress, SweepError, sweep};
pub use run_job::RunJob;
