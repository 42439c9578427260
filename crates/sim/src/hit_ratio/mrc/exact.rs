//! Curves from all keys.

use super::counts::{LruCounts, Weight};
use super::outcome::{Curve, CurvePoint, Curves, Method};
use super::plan::{CurvesError, Plan};
use super::reference::Reference;
use super::sample::LruPart;
use crate::hit_ratio::hits::{Listener, Simulation, Summary, Trace, broadcast, survey};
use crate::results::outcome::ratio;
use weir_policy::eviction::EvictionKind;

/// Makes them; what the plan says of a whole trace is filled in later.
///
/// # Errors
/// The trace cannot be read.
pub(super) fn exact(trace: &dyn Trace, plan: &Plan) -> Result<Curves, CurvesError> {
    let before = if plan.sizes.needs_footprint() || plan.with_bound {
        survey(trace, plan.rule)?
    } else {
        Summary::default()
    };
    let capacities = plan.sizes.of(before.footprint_bytes);
    let mut lru = LruPart {
        counts: LruCounts::new(capacities.clone()),
        group: None,
        times: 1.0,
    };
    let settings = plan
        .simulated()
        .flat_map(|eviction| plan.settings(eviction, &capacities));
    let mut simulations: Vec<Simulation> = settings.map(Simulation::new).collect();
    let mut reference = Reference::of(plan, &before, &capacities);
    let mut listeners: Vec<&mut dyn Listener> = Vec::new();
    if plan.policies.iter().any(|kind| plan.has_stack(*kind)) {
        listeners.push(&mut lru);
    }
    listeners.extend(reference.listener());
    listeners.extend(
        simulations
            .iter_mut()
            .map(|cache| cache as &mut dyn Listener),
    );
    let summary = broadcast(trace, plan.rule, listeners, plan.threads)?;

    let mut simulated = simulations.chunks(capacities.len().max(1));
    let mut curves: Vec<Curve> = Vec::new();
    for kind in &plan.policies {
        curves.push(if plan.has_stack(*kind) {
            stack_curve(*kind, &lru.counts, &capacities)
        } else {
            let caches = simulated.next().unwrap_or_default();
            simulated_curve(*kind, caches, &capacities)
        });
    }
    let (curve, notes) = reference.curve(&summary, &capacities);
    curves.extend(curve);
    Ok(Curves {
        trace: trace.name(),
        keys_by: plan.rule.to_string(),
        admission: String::new(),
        is_by_count: false,
        requests: summary.requests,
        bytes: summary.bytes,
        keys: summary.keys,
        footprint_bytes: summary.footprint_bytes,
        sampled_share: 1.0,
        seed: None,
        least_miss_ratio: ratio(summary.keys, summary.requests),
        least_byte_miss_ratio: ratio(summary.footprint_bytes, summary.bytes),
        curves,
        notes,
    })
}

fn stack_curve(kind: EvictionKind, counts: &LruCounts, capacities: &[u64]) -> Curve {
    let asked = counts.asked();
    let points = capacities.iter().zip(counts.hits());
    Curve {
        name: kind.to_string(),
        method: Method::StackDistances,
        points: points
            .map(|(capacity, hits)| {
                let missed = missed(asked, hits);
                let requests = missed.requests / asked.requests.max(1.0);
                CurvePoint::exact(*capacity, requests, missed.bytes / asked.bytes.max(1.0))
            })
            .collect(),
    }
}

/// Requested bytes that were no hit.
pub(super) fn missed(asked: Weight, hits: Weight) -> Weight {
    Weight {
        requests: asked.requests - hits.requests,
        bytes: asked.bytes - hits.bytes,
    }
}

fn simulated_curve(kind: EvictionKind, caches: &[Simulation], capacities: &[u64]) -> Curve {
    let points = capacities.iter().zip(caches);
    Curve {
        name: kind.to_string(),
        method: Method::Simulation,
        points: points
            .map(|(capacity, cache)| {
                let totals = cache.totals();
                let misses = ratio(totals.requests - totals.hits, totals.requests);
                let bytes = ratio(totals.bytes - totals.hit_bytes, totals.bytes);
                CurvePoint::exact(*capacity, misses, bytes)
            })
            .collect(),
    }
}
