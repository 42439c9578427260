//! Curves from a sample.

use super::counts::{LruCounts, Weight, float};
use super::exact::missed;
use super::fixed_size::FixedSize;
use super::outcome::{Curve, CurvePoint, Curves, Method};
use super::plan::{CurvesError, Plan};
use super::sample::{CachePart, GROUPS, LruPart, SampledTrace, estimate};
use crate::hit_ratio::hits::{Listener, Setting, Simulation, Summary, Trace, broadcast, survey};
use crate::results::outcome::ratio;
use weir_policy::eviction::EvictionKind;

/// Makes them from a share of the keys.
///
/// # Errors
/// The trace cannot be read.
pub(super) fn sampled(
    trace: &dyn Trace,
    plan: &Plan,
    share_of_keys: f64,
    seed: u64,
) -> Result<Curves, CurvesError> {
    let sampled = SampledTrace::new(trace, share_of_keys, seed);
    let before = if plan.sizes.needs_footprint() {
        survey(&sampled, plan.rule)?
    } else {
        Summary::default()
    };
    let times = share_of_keys.recip();
    let footprint = |summary: &Summary| rounded(float(summary.footprint_bytes) * times);
    let capacities = plan.sizes.of(footprint(&before));
    let mut lru: Vec<LruPart> = Vec::new();
    if plan.policies.iter().any(|kind| plan.has_stack(*kind)) {
        lru.extend(parts(times).map(|(group, times)| LruPart {
            counts: LruCounts::new(capacities.clone()),
            group,
            times,
        }));
    }
    let others: Vec<EvictionKind> = plan.simulated().collect();
    let mut small: Vec<CachePart> = Vec::new();
    for eviction in &others {
        for setting in plan.settings(*eviction, &capacities) {
            small.extend(parts(times).map(|(group, times)| {
                CachePart {
                    cache: Simulation::new(Setting {
                        capacity_bytes: rounded(float(setting.capacity_bytes) / times),
                        ..setting
                    })
                    .sampled_from(setting.capacity_bytes),
                    group,
                    times,
                }
            }));
        }
    }
    let of_lru = lru.iter_mut().map(|part| part as &mut dyn Listener);
    let of_others = small.iter_mut().map(|part| part as &mut dyn Listener);
    let listeners = of_lru.chain(of_others).collect();
    let summary = broadcast(&sampled, plan.rule, listeners, plan.threads)?;
    let (requests, bytes) = sampled.all();

    let part = |index: usize| lru.get(index).map(|part| &part.counts);
    let groups: Vec<&LruCounts> = (1..=GROUPS as usize).filter_map(part).collect();
    let mut small = small.chunks((GROUPS as usize + 1) * capacities.len().max(1));
    let mut curves = Vec::new();
    for kind in &plan.policies {
        let values: Vec<Vec<Weight>> = if plan.has_stack(*kind) {
            part(0).map_or_else(Vec::new, |whole| lru_values(whole, &groups))
        } else {
            let caches = small.next().unwrap_or_default();
            let by_size = caches.chunks(GROUPS as usize + 1);
            by_size
                .map(|parts| parts.iter().map(CachePart::misses).collect())
                .collect()
        };
        let method = if plan.has_stack(*kind) {
            Method::SampledDistances
        } else {
            Method::SampledSimulation
        };
        curves.push(estimated(
            *kind,
            method,
            &values,
            &capacities,
            (requests, bytes),
        ));
    }
    let all = Summary {
        requests,
        bytes,
        keys: summary.keys,
        footprint_bytes: footprint(&summary),
        uniform_bytes: None,
    };
    Ok(of_sample(trace, plan, &all, share_of_keys, seed, curves))
}

/// The whole sample, then its groups, and how many keys each stands for.
fn parts(times: f64) -> impl Iterator<Item = (Option<u32>, f64)> {
    let groups = (0..GROUPS).map(move |group| (Some(group), times * f64::from(GROUPS)));
    std::iter::once((None, times)).chain(groups)
}

/// Misses and missed bytes, by size, of the whole sample and of each group.
fn lru_values(whole: &LruCounts, groups: &[&LruCounts]) -> Vec<Vec<Weight>> {
    let misses = |counts: &LruCounts| -> Vec<Weight> {
        let asked = counts.asked();
        let hits = counts.hits().into_iter();
        hits.map(|hits| missed(asked, hits)).collect()
    };
    let all: Vec<Vec<Weight>> = std::iter::once(whole)
        .chain(groups.iter().copied())
        .map(misses)
        .collect();
    let sizes = all.first().map_or(0, Vec::len);
    (0..sizes)
        .map(|size| all.iter().map(|part| part[size]).collect())
        .collect()
}

fn estimated(
    kind: EvictionKind,
    method: Method,
    values: &[Vec<Weight>],
    capacities: &[u64],
    (requests, bytes): (u64, u64),
) -> Curve {
    let points = capacities.iter().zip(values).map(|(capacity, parts)| {
        let of = |value: fn(&Weight) -> f64, whole: u64| {
            let share = |part: &Weight| value(part) / float(whole.max(1));
            let (first, groups) = parts.split_first()?;
            let groups: Vec<f64> = groups.iter().map(share).collect();
            Some(estimate(share(first), &groups))
        };
        let (misses, missed) = (of(|it| it.requests, requests)?, of(|it| it.bytes, bytes)?);
        Some(CurvePoint {
            capacity_bytes: *capacity,
            miss_ratio: misses.value,
            byte_miss_ratio: missed.value,
            miss_ratio_error: Some(misses.error),
            byte_miss_ratio_error: Some(missed.error),
        })
    });
    Curve {
        name: kind.to_string(),
        method,
        points: points.flatten().collect(),
    }
}

/// Makes them from so many keys.
///
/// # Errors
/// The trace cannot be read.
pub(super) fn of_keys(
    trace: &dyn Trace,
    plan: &Plan,
    max: u32,
    seed: u64,
) -> Result<Curves, CurvesError> {
    let capacities = plan.sizes.of(0);
    let mut sample = FixedSize::new(plan.rule, max, seed, &capacities);
    sample.read(trace)?;
    let groups: Vec<&LruCounts> = sample.groups.iter().collect();
    let values = lru_values(&sample.whole, &groups);
    let all = Summary {
        requests: sample.requests,
        bytes: sample.bytes,
        keys: sample.keys(),
        footprint_bytes: rounded(sample.footprint_bytes()),
        uniform_bytes: None,
    };
    let asked = (sample.requests, sample.bytes);
    let curves = plan
        .policies
        .iter()
        .map(|kind| estimated(*kind, Method::SampledDistances, &values, &capacities, asked));
    let curves = curves.collect();
    Ok(of_sample(trace, plan, &all, sample.share(), seed, curves))
}

/// `all.keys` are those of the sample.
fn of_sample(
    trace: &dyn Trace,
    plan: &Plan,
    all: &Summary,
    share_of_keys: f64,
    seed: u64,
    curves: Vec<Curve>,
) -> Curves {
    let first = float(all.keys) / share_of_keys / float(all.requests.max(1));
    let first_bytes = ratio(all.footprint_bytes, all.bytes);
    let mut notes = vec![format!(
        "estimated from {} keys; an error is half of a 95 % interval, from {GROUPS} groups of them",
        all.keys
    )];
    if plan.with_bound {
        notes.push("no optimum and no bound: a sample has none".to_owned());
    }
    Curves {
        trace: trace.name(),
        keys_by: plan.rule.to_string(),
        admission: String::new(),
        is_by_count: false,
        requests: all.requests,
        bytes: all.bytes,
        keys: all.keys,
        footprint_bytes: all.footprint_bytes,
        sampled_share: share_of_keys,
        seed: Some(seed),
        least_miss_ratio: first.min(1.0),
        least_byte_miss_ratio: first_bytes.min(1.0),
        curves,
        notes,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and below 2^63 where footprints are"
)]
fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}
