//! How the next hops of a route share its requests.

use crate::config::route::Route;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::value::Form;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::span::Span;
use std::collections::BTreeSet;
use weir_policy::route::policy::{
    LoadFactor, LoadLimits, MappedMax, PolicyKind, PolicyRules, ReplicaMs,
};
use weir_policy::route::{Balancing, NODES_MAX, Weight};

impl Form for PolicyKind {
    const FORM: &'static str = Self::FORM;
}

const WEIGHTS_FORM: &str = "a list of integers from 1 to 65535, such as [1, 3]";
const LOAD_FACTOR_PCT_MAX: u16 = 1000;
const LOAD_MAX: u32 = 1_000_000;
const TARGETS_MAX: u32 = 1 << 24;
const REPLICA_TIME_MAX: Span = Span::from_hours(1);

/// The settings of a route about it.
pub(super) fn settings() -> Vec<Setting> {
    let rules = PolicyRules::PRESET_1999;
    let LoadLimits { low, high } = rules.limits;
    vec![
        Setting::new::<PolicyKind>(
            "route[].policy",
            &[
                "How the next hops share the requests. `in-turn`: one after the other. `least`: fewest outstanding requests.",
                "`two-choices`: of two at random the one with less outstanding requests times response time.",
                "`hash`: by the target, so that each target has one next hop, and another Weir chooses the same.",
                "`bounded-hash`: the same, until a next hop has `load_factor_pct` of the mean.",
                "`replicated-hash`: the same, with targets of high rate at several next hops.",
                "`lard`: a target stays with its next hop until that is overloaded; `lard-r`: the same with several next hops a target;",
                "`extended-lard`: the same by costs (the papers of 1998 and 1999).",
                "Next hops that do not cache want `in-turn`, `least` or `two-choices`, next hops that cache one of the others.",
                "Outstanding requests and response times are those of this process.",
            ],
        )
        .by_default(&PolicyKind::InTurn),
        Setting {
            form: WEIGHTS_FORM,
            ..Setting::new::<Vec<u16>>(
                "route[].weights",
                &[
                    "The share of each next hop, in the order of `next_hops`: one of weight 3 gets three times the requests of one of weight 1.",
                    "Without it, all have 1. `two-choices` keeps it within 2 %.",
                ],
            )
        },
        Setting::new::<u16>(
            "route[].load_factor_pct",
            &[
                "With `bounded-hash` and `replicated-hash`: the most outstanding requests of a next hop, in per cent of the mean.",
                "HAProxy's `hash-balance-factor`. The less, the more requests leave the next hop that has their responses.",
            ],
        )
        .by_default(&rules.load_factor.pct())
        .within(&101, &LOAD_FACTOR_PCT_MAX),
        Setting::new::<u32>(
            "route[].load_low",
            &["With `lard` and `lard-r`: a next hop with fewer outstanding requests is idle. `T_low` of the paper."],
        )
        .by_default(&low)
        .within(&1, &LOAD_MAX),
        Setting::new::<u32>(
            "route[].load_high",
            &[
                "With `lard` and `lard-r`: a next hop with more outstanding requests is overloaded, and its targets may move to an idle one;",
                "with twice as many, to any. More than `load_low`. `T_high` of the paper.",
            ],
        )
        .by_default(&high)
        .within(&2, &LOAD_MAX),
        Setting::new::<Span>(
            "route[].replica_time",
            &["With `lard-r`: a target that had the same next hops for so long loses one of several. `K` of the paper."],
        )
        .by_default(&Span::from_millis(rules.replica_ms.0))
        .within(&Span::ZERO, &REPLICA_TIME_MAX),
        Setting::new::<u32>(
            "route[].targets_max",
            &[
                "With `lard`, `lard-r` and `extended-lard`: targets whose next hops are remembered; the least recently used is forgotten.",
                "Each takes 28 to 64 bytes, beside `memory`.",
            ],
        )
        .by_default(&rules.mapped_max.get())
        .within(&1, &TARGETS_MAX),
    ]
}

/// The weight of each next hop, in their order.
pub(crate) fn weights(route: &Route) -> impl Iterator<Item = Weight> + '_ {
    let weights = route.weights.iter().copied().map(Weight::new);
    let weights = weights.map(|weight| weight.unwrap_or(Weight::ONE));
    weights.chain(std::iter::repeat(Weight::ONE))
}

/// What the policy of a route that was checked is made with.
pub(crate) fn compile(route: &Route) -> Balancing {
    let preset = PolicyRules::PRESET_1999;
    let factor = route.load_factor_pct.and_then(LoadFactor::from_pct);
    let (low, high) = limits(route);
    Balancing {
        policy: route.policy,
        rules: PolicyRules {
            load_factor: factor.unwrap_or(preset.load_factor),
            limits: LoadLimits { low, high },
            replica_ms: route
                .replica_time
                .map_or(preset.replica_ms, |time| ReplicaMs(time.as_millis())),
            mapped_max: route.targets_max.map_or(preset.mapped_max, MappedMax::new),
            ..preset
        },
    }
}

fn limits(route: &Route) -> (u32, u32) {
    let LoadLimits { low, high } = LoadLimits::ASPLOS_1998;
    let low = route.load_low.unwrap_or(low);
    (low, route.load_high.unwrap_or(high))
}

/// Refuses next hops and weights that do not fit, and numbers outside their ranges.
pub(super) fn check(index: usize, route: &Route) -> Result<(), Invalid> {
    let path = |key: &str| format!("route[{index}].{key}");
    check_next_hops(&path("next_hops"), &route.next_hops)?;
    check_weights(&path("weights"), route)?;
    let range = |key: &str, value: Option<u32>, minimum: u32, maximum: u32| match value {
        Some(value) => check_range(&path(key), &value, &minimum, &maximum),
        None => Ok(()),
    };
    let factor = route.load_factor_pct.map(u32::from);
    range("load_factor_pct", factor, 101, LOAD_FACTOR_PCT_MAX.into())?;
    range("load_low", route.load_low, 1, LOAD_MAX)?;
    range("load_high", route.load_high, 2, LOAD_MAX)?;
    range("targets_max", route.targets_max, 1, TARGETS_MAX)?;
    if let Some(time) = &route.replica_time {
        check_range(&path("replica_time"), time, &Span::ZERO, &REPLICA_TIME_MAX)?;
    }
    let (low, high) = limits(route);
    if low >= high {
        let key = if route.load_high.is_some() {
            "load_high"
        } else {
            "load_low"
        };
        return Err(Invalid::new(
            path(key),
            format!("`load_low` is {low} and `load_high` {high}"),
            "use a `load_high` that is more than `load_low`",
        ));
    }
    Ok(())
}

fn check_next_hops(path: &str, hops: &[NextHopUrl]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (place, hop) in hops.iter().enumerate() {
        if !seen.insert(hop) {
            return Err(Invalid::new(
                format!("{path}[{place}]"),
                format!("{hop} is named twice"),
                "name it once, with a larger number in `weights`",
            ));
        }
    }
    if hops.len() > NODES_MAX {
        return Err(Invalid::new(
            path,
            format!("{} next hops are more than {NODES_MAX}", hops.len()),
            "use several routes",
        ));
    }
    Ok(())
}

fn check_weights(path: &str, route: &Route) -> Result<(), Invalid> {
    let (weights, hops) = (route.weights.len(), route.next_hops.len());
    if weights != 0 && weights != hops {
        return Err(Invalid::new(
            path,
            format!("there are {weights} weights for {hops} next hops"),
            "give one weight for each of `next_hops`, in their order",
        ));
    }
    match route.weights.iter().position(|weight| *weight == 0) {
        Some(place) => Err(Invalid::new(
            format!("{path}[{place}]"),
            "a next hop of weight 0 gets no request",
            "use a weight from 1 to 65535, or leave the next hop out",
        )),
        None => Ok(()),
    }
}
