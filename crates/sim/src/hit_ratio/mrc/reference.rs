//! The line beside the curves: the optimum or a bound.

use super::outcome::{Curve, CurvePoint, Method};
use super::plan::Plan;
use crate::hit_ratio::bound::{FlowBound, Optimum};
use crate::hit_ratio::hits::{Listener, Summary};
use crate::results::outcome::ratio;

/// The line that no cache can be under.
pub(super) enum Reference {
    None,
    Optimum(Optimum, u64),
    Flow(FlowBound),
}

impl Reference {
    /// For a trace that is this.
    pub(super) fn of(plan: &Plan, summary: &Summary, capacities: &[u64]) -> Self {
        match (plan.with_bound, summary.uniform_bytes) {
            (false, _) => Self::None,
            (true, Some(bytes)) => Self::Optimum(Optimum::default(), bytes.max(1)),
            (true, None) => Self::Flow(FlowBound::new(capacities.to_vec())),
        }
    }

    /// What has to read the trace.
    pub(super) fn listener(&mut self) -> Option<&mut dyn Listener> {
        match self {
            Self::None => None,
            Self::Optimum(optimum, _) => Some(optimum),
            Self::Flow(bound) => Some(bound),
        }
    }

    /// The line, or why there is none.
    pub(super) fn curve(
        &self,
        summary: &Summary,
        capacities: &[u64],
    ) -> (Option<Curve>, Vec<String>) {
        let line = |name: &str, method, hits: Vec<(u64, u64)>| {
            let points = capacities
                .iter()
                .zip(hits)
                .map(|(capacity, (hits, bytes))| {
                    let misses = ratio(summary.requests.saturating_sub(hits), summary.requests);
                    let missed = ratio(summary.bytes.saturating_sub(bytes), summary.bytes);
                    CurvePoint::exact(*capacity, misses, missed)
                });
            let curve = Curve {
                name: name.to_owned(),
                method,
                points: points.collect(),
            };
            (Some(curve), Vec::new())
        };
        match self {
            Self::None => (None, Vec::new()),
            Self::Flow(bound) => line("bound (PFOO-L)", Method::Bound, bound.hits()),
            Self::Optimum(optimum, size) => {
                let counts: Vec<u64> = capacities.iter().map(|bytes| bytes / size).collect();
                match optimum.hits(&counts) {
                    Err(error) => (None, vec![format!("no optimum: {error}")]),
                    Ok(hits) => {
                        let hits = hits.into_iter().map(|hits| (hits, hits * size)).collect();
                        line("optimum (MIN)", Method::Optimum, hits)
                    }
                }
            }
        }
    }
}
