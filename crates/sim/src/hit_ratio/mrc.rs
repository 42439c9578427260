//! Miss-ratio curves: how many requests would miss, at which size of the cache.
//!
//! Least recently used is exact at all sizes from one pass; other policies are simulated at each.
//! Both can be done with a sample of the keys instead, and then say how far they may be off.

mod counts;
mod drawing;
mod exact;
mod fixed_size;
mod outcome;
mod page;
mod plan;
mod reference;
mod sample;
mod sampled;
mod sizes;
mod stack;
#[cfg(test)]
mod tests;

pub use drawing::{Ordinate, svg};
pub use outcome::{Curve, CurvePoint, Curves, Method};
pub use page::html;
pub use plan::{CurvesError, Plan, curves};
pub use sample::{GROUPS, Sample};
pub(crate) use sample::{STUDENT_T, group, rank, threshold};
pub use sizes::{SIZES_MAX, Size, Sizes};
