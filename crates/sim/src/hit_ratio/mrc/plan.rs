//! Which curves, and how they are made.

use super::exact::exact;
use super::outcome::Curves;
use super::sample::{GROUPS, Sample};
use super::sampled::{of_keys, sampled};
use super::sizes::Sizes;
use crate::hit_ratio::hits::{Setting, Trace, TraceError, UnitSizes, admission_word};
use crate::hit_ratio::keys::KeyRule;
use std::fmt;
use std::num::NonZero;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;

/// The curves to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a response is that comes with another size.
    pub rule: KeyRule,
    /// Sizes of the cache.
    pub sizes: Sizes,
    /// A curve for each.
    pub policies: Vec<EvictionKind>,
    /// The rule of admission.
    pub admission: Rule,
    /// `None`: all keys.
    pub sample: Option<Sample>,
    /// Whether the optimum, or a bound, is drawn too; not from a sample.
    pub with_bound: bool,
    /// Whether each response counts as one byte.
    pub is_by_count: bool,
    /// Threads beside the one that reads.
    pub threads: NonZero<usize>,
}

impl Plan {
    /// Whether a policy is done by distances: only what admits everything has a stack.
    pub(super) fn has_stack(&self, kind: EvictionKind) -> bool {
        kind == EvictionKind::Lru && self.admission == Rule::Always
    }

    /// The policies that are simulated.
    pub(super) fn simulated(&self) -> impl Iterator<Item = EvictionKind> + '_ {
        let all = self.policies.iter().copied();
        all.filter(|kind| !self.has_stack(*kind))
    }

    /// A cache of each size.
    pub(super) fn settings(&self, eviction: EvictionKind, capacities: &[u64]) -> Vec<Setting> {
        let of = |capacity_bytes: &u64| Setting {
            capacity_bytes: *capacity_bytes,
            eviction,
            admission: self.admission,
        };
        capacities.iter().map(of).collect()
    }
}

/// Why there are no curves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurvesError {
    /// The trace cannot be read.
    Trace(TraceError),
    /// The plan has options that contradict each other.
    Plan(String),
}

impl fmt::Display for CurvesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::Plan(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for CurvesError {}

impl From<TraceError> for CurvesError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

/// Makes the curves. Reads the trace once, and once before that where sizes are shares of the
/// footprint.
///
/// # Errors
/// [`CurvesError`].
pub fn curves(trace: &dyn Trace, plan: &Plan) -> Result<Curves, CurvesError> {
    check(plan)?;
    let by_count = UnitSizes(trace);
    let trace = if plan.is_by_count { &by_count } else { trace };
    let made = match plan.sample {
        None => exact(trace, plan)?,
        Some(Sample::Rate { share, seed }) => sampled(trace, plan, share, seed)?,
        Some(Sample::Keys { max, seed }) => of_keys(trace, plan, max, seed)?,
    };
    Ok(Curves {
        is_by_count: plan.is_by_count,
        admission: admission_word(plan.admission),
        ..made
    })
}

fn check(plan: &Plan) -> Result<(), CurvesError> {
    let wrong = |what: &str| Err(CurvesError::Plan(what.to_owned()));
    let is_lru_alone = plan.policies.iter().all(|kind| *kind == EvictionKind::Lru);
    match plan.sample {
        Some(Sample::Rate { share, .. }) if !(share > 0.0 && share <= 1.0) => {
            wrong("a sample is a share of the keys, more than 0 and at most 1")
        }
        Some(Sample::Keys { max, .. }) if max < GROUPS * 10 => {
            wrong("a sample of so few keys says nothing; at least 100")
        }
        Some(Sample::Keys { .. }) if !is_lru_alone || plan.admission != Rule::Always => wrong(
            "a sample of so many keys is for lru without a rule of admission; take a share of the keys",
        ),
        Some(Sample::Keys { .. }) if plan.sizes.needs_footprint() => wrong(
            "a sample of so many keys needs sizes in bytes: the footprint is not known before",
        ),
        _ => Ok(()),
    }
}
