//! How the next hops of a route share its requests, and the constants of policies in any table.

use crate::config::route::Route;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::text::Form;
use crate::config::values::time::span::Span;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use weir_policy::connections::hand_off::HandOffKind;
use weir_policy::route::policy::{
    CostRules, LoadFactor, LoadLimits, MappedMax, PolicyKind, PolicyRules, ReplicaMs,
};
use weir_policy::route::{Balancing, ChoiceFor, NODES_MAX, RampMs, Weight};

impl Form for PolicyKind {
    const FORM: &'static str = Self::FORM;
}

impl Form for HandOffKind {
    const FORM: &'static str = Self::FORM;
}

impl Form for ChoiceFor {
    const FORM: &'static str = Self::FORM;
}

impl Form for Preset {
    const FORM: &'static str = Self::FORM;
}

const WEIGHTS_FORM: &str = "a list of integers from 1 to 65535, such as [1, 3]";
const LOAD_FACTOR_PCT_MAX: u16 = 1000;
const LOAD_MAX: u32 = 1_000_000;
const TARGETS_MAX: u32 = 1 << 24;
const REPLICA_TIME_MAX: Span = Span::from_hours(1);
const RAMP_MAX: Span = Span::from_hours(1);

weir_policy::choice! {
    /// Constants of all policies, by a name.
    pub enum Preset {
        /// Those of the papers: ASPLOS'98 for `lard` and `lard-r`, USENIX'99 for `extended-lard`.
        Papers = "1999",
    }
}

/// The constants of a table: those that are absent are those of the preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constants {
    pub(crate) preset: Option<Preset>,
    pub(crate) load_factor_pct: Option<u16>,
    pub(crate) load_low: Option<u32>,
    pub(crate) load_high: Option<u32>,
    pub(crate) replica_time: Option<Span>,
    pub(crate) load_idle: Option<u32>,
    pub(crate) load_overload: Option<u32>,
    pub(crate) miss_cost: Option<u32>,
    pub(crate) disk_busy: Option<u32>,
    pub(crate) targets_max: Option<u32>,
}

/// Declares a table of the configuration with the constants of policies among its keys, between
/// those of the first and the second braces.
macro_rules! with_constants {
    ($(#[$outer:meta])* pub struct $name:ident { $($own:tt)* } { $($behind:tt)* }) => {
        $(#[$outer])*
        pub struct $name {
            $($own)*
            /// The name of constants; absent for `1999`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub preset: Option<$crate::config::route::balancing::Preset>,
            /// The most requests of one, in per cent of the mean; absent for the default, as all
            /// that follow.
            #[serde(
                default,
                skip_serializing_if = "Option::is_none",
                deserialize_with = "crate::config::route::balancing::per_cent"
            )]
            pub load_factor_pct: Option<u16>,
            /// Below so many requests one is idle.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub load_low: Option<u32>,
            /// Above so many requests one is overloaded.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub load_high: Option<u32>,
            /// How long a target keeps several of them.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub replica_time: Option<$crate::config::values::time::span::Span>,
            /// Up to so many requests load costs nothing.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub load_idle: Option<u32>,
            /// Above so many requests load costs infinitely.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub load_overload: Option<u32>,
            /// The cost of a miss, in requests.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub miss_cost: Option<u32>,
            /// The reads and fetches that wait from which a disk is busy.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub disk_busy: Option<u32>,
            /// How many targets are remembered.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub targets_max: Option<u32>,
            $($behind)*
        }

        impl $name {
            /// The constants of its policy.
            pub(crate) const fn constants(&self) -> $crate::config::route::balancing::Constants {
                $crate::config::route::balancing::Constants {
                    preset: self.preset,
                    load_factor_pct: self.load_factor_pct,
                    load_low: self.load_low,
                    load_high: self.load_high,
                    replica_time: self.replica_time,
                    load_idle: self.load_idle,
                    load_overload: self.load_overload,
                    miss_cost: self.miss_cost,
                    disk_busy: self.disk_busy,
                    targets_max: self.targets_max,
                }
            }
        }
    };
}

/// The settings of the constants in a table, of policies that choose among what is named by the
/// second and third argument.
macro_rules! constants_settings {
    ($table:literal, $one:literal, $many:literal) => {
        $crate::config::route::balancing::settings_of([
            (
                concat!($table, ".preset"),
                &[concat!(
                    "The constants of the policy by a name: `1999` are those of the papers, and the default. Each of the ",
                    "following replaces one of them.",
                )],
            ),
            (
                concat!($table, ".load_factor_pct"),
                &[
                    concat!("With `bounded-hash` and `replicated-hash`: the most outstanding requests of a ", $one, ", in per cent of the mean."),
                    concat!("HAProxy's `hash-balance-factor`. The less, the more requests leave the ", $one, " that has their responses."),
                    "Up to `load_high` it has no effect.",
                ],
            ),
            (
                concat!($table, ".load_low"),
                &[concat!("With `lard` and `lard-r`: a ", $one, " with fewer outstanding requests is idle. `T_low` of the paper.")],
            ),
            (
                concat!($table, ".load_high"),
                &[
                    concat!("With `lard` and `lard-r`: a ", $one, " with more outstanding requests is overloaded, and its targets may move to an idle one;"),
                    "with twice as many, to any. More than `load_low`. `T_high` of the paper.",
                    concat!("With `bounded-hash` and `replicated-hash`, a ", $one, " has so many whatever the others have: of few requests, chance has"),
                    "more at some. With 2, and a `load_low` of 1, the mean alone bounds them.",
                ],
            ),
            (
                concat!($table, ".replica_time"),
                &[concat!("With `lard-r`: a target that had the same ", $many, " for so long loses one of several. `K` of the paper.")],
            ),
            (
                concat!($table, ".load_idle"),
                &[concat!("With `extended-lard`: load costs nothing at a ", $one, " with no more outstanding requests. `L_idle` of the paper.")],
            ),
            (
                concat!($table, ".load_overload"),
                &[concat!("With `extended-lard`: a ", $one, " with more outstanding requests gets none while others have fewer. More than `load_idle`. `L_overload`.")],
            ),
            (
                concat!($table, ".miss_cost"),
                &["With `extended-lard`: what a miss costs, in outstanding requests: for so many more, a target moves. `MissCost`."],
            ),
            (
                concat!($table, ".disk_busy"),
                &[
                    "With `extended-lard`: with fewer reads that wait for its disk and fetches that wait for an origin, a node of a cluster",
                    "keeps a copy of what it fetches from another one, and reads what is on its disk; with as many it does not, and asks a node",
                    "that has in memory what is on its disk. With fewer requests that wait for a response to begin, the next hop of a route",
                    "gets the next request of a connection, too, wherever its target is kept.",
                ],
            ),
            (
                concat!($table, ".targets_max"),
                &[
                    concat!("With `lard`, `lard-r` and `extended-lard`: targets whose ", $many, " are remembered; the least recently used is forgotten."),
                    "Each takes 28 to 64 bytes, beside `memory`.",
                ],
            ),
        ])
    };
}

pub(in crate::config) use {constants_settings, with_constants};

/// Reads a whole number of per cent. Other proxies have the factor itself, such as 1.25.
///
/// # Errors
///
/// What is no such number, with what was probably meant.
pub(in crate::config) fn per_cent<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<u16>, D::Error> {
    struct PerCent;

    impl Visitor<'_> for PerCent {
        type Value = u16;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an integer, in per cent")
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<u16, E> {
            u16::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<u16, E> {
            u16::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<u16, E> {
            let pct = if value < 10.0 { value * 100.0 } else { value };
            Err(E::custom(format!(
                "`{value}` is not an integer, in per cent; did you mean `{pct:.0}`?"
            )))
        }
    }

    from.deserialize_u16(PerCent).map(Some)
}

/// The settings of a route about how it is balanced.
pub(super) fn settings() -> Vec<Setting> {
    let mut settings = vec![
        Setting::new::<PolicyKind>(
            "route[].policy",
            &[
                "How the next hops share the requests. `in-turn`: one after the other. `least`: fewest outstanding requests.",
                "`two-choices`: of two at random the one with less outstanding requests times response time.",
                "`hash`: by the target, so that each target has one next hop, and another Weir chooses the same.",
                "`bounded-hash`: the same, until a next hop has `load_high` and `load_factor_pct` of the mean.",
                "`replicated-hash`: the same, with targets of high rate at several next hops.",
                "`lard`: a target stays with its next hop until that is overloaded; `lard-r`: the same with several next hops a target;",
                "`extended-lard`: the same by costs (the papers of 1998 and 1999).",
                "Next hops that do not cache want `in-turn`, `least` or `two-choices`, next hops that cache one of the others.",
                "Outstanding requests and response times are those of this process.",
            ],
        )
        .by_default(&PolicyKind::InTurn),
        Setting::new::<ChoiceFor>(
            "route[].choice_for",
            &[
                "What the policy chooses a next hop for. `request`: each request of a client's connection may go to another one.",
                "`connection`: the requests of a connection go where its first one went, as long as nothing is known against that next hop:",
                "it accepts connections, passes its probes, and is still in the route. Not with `hash`, `bounded-hash` and `replicated-hash`.",
            ],
        )
        .by_default(&ChoiceFor::Request),
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
    ];
    settings.extend(constants_settings!("route[]", "next hop", "next hops"));
    settings.push(
        Setting::new::<Span>(
            "route[].ramp",
            &[
                "A next hop that a reload has added, or that was ejected, begins with a tenth of its share, and has the whole after so",
                "long: its cache is to be filled, its connections are to be opened. With 0 it has its share at once.",
            ],
        )
        .by_default(&Span::ZERO)
        .within(&Span::ZERO, &RAMP_MAX),
    );
    settings
}

/// A key and what it means.
type KeyAbout = (&'static str, &'static [&'static str]);

/// The settings of constants, by their keys in the order of [`Constants`].
pub(in crate::config) fn settings_of(keys: [KeyAbout; 10]) -> Vec<Setting> {
    let rules = PolicyRules::PRESET_1999;
    let LoadLimits { low, high } = rules.limits;
    let costs = rules.costs;
    let [
        preset,
        factor,
        load_low,
        load_high,
        replica_time,
        idle,
        overload,
        miss_cost,
        disk_busy,
        targets_max,
    ] = keys;
    let requests = |(key, about): KeyAbout, default: u32, minimum: u32| {
        Setting::new::<u32>(key, about)
            .by_default(&default)
            .within(&minimum, &LOAD_MAX)
    };
    vec![
        Setting::new::<Preset>(preset.0, preset.1).by_default(&Preset::Papers),
        Setting::new::<u16>(factor.0, factor.1)
            .by_default(&rules.load_factor.pct())
            .within(&101, &LOAD_FACTOR_PCT_MAX),
        requests(load_low, low, 1),
        requests(load_high, high, 2),
        Setting::new::<Span>(replica_time.0, replica_time.1)
            .by_default(&Span::from_millis(rules.replica_ms.0))
            .within(&Span::ZERO, &REPLICA_TIME_MAX),
        requests(idle, costs.idle, 0),
        requests(overload, costs.overload, 1),
        requests(miss_cost, costs.miss_cost, 1),
        requests(disk_busy, costs.disk_busy, 0),
        Setting::new::<u32>(targets_max.0, targets_max.1)
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

impl Constants {
    /// What a policy with these constants, which were checked, is made with.
    pub(crate) fn balancing(&self, policy: PolicyKind) -> Balancing {
        let preset = match self.preset {
            None | Some(Preset::Papers) => PolicyRules::PRESET_1999,
        };
        let factor = self.load_factor_pct.and_then(LoadFactor::from_pct);
        let replica_ms = self.replica_time.map(|time| ReplicaMs(time.as_millis()));
        let (low, high) = self.limits();
        let (idle, overload) = self.costs();
        Balancing {
            policy,
            ramp: RampMs::default(),
            rules: PolicyRules {
                load_factor: factor.unwrap_or(preset.load_factor),
                limits: LoadLimits { low, high },
                replica_ms: replica_ms.unwrap_or(preset.replica_ms),
                costs: CostRules {
                    idle,
                    overload,
                    miss_cost: self.miss_cost.unwrap_or(preset.costs.miss_cost),
                    disk_busy: self.disk_busy.unwrap_or(preset.costs.disk_busy),
                },
                mapped_max: self.targets_max.map_or(preset.mapped_max, MappedMax::new),
            },
        }
    }

    fn limits(&self) -> (u32, u32) {
        let LoadLimits { low, high } = PolicyRules::PRESET_1999.limits;
        let low = self.load_low.unwrap_or(low);
        (low, self.load_high.unwrap_or(high))
    }

    fn costs(&self) -> (u32, u32) {
        let CostRules { idle, overload, .. } = PolicyRules::PRESET_1999.costs;
        let idle = self.load_idle.unwrap_or(idle);
        (idle, self.load_overload.unwrap_or(overload))
    }

    /// Refuses numbers outside their ranges; `path` makes the path of a key.
    pub(in crate::config) fn check(&self, path: impl Fn(&str) -> String) -> Result<(), Invalid> {
        let range = |key: &str, value: Option<u32>, minimum: u32, maximum: u32| match value {
            Some(value) => check_range(&path(key), &value, &minimum, &maximum),
            None => Ok(()),
        };
        let factor = self.load_factor_pct.map(u32::from);
        range("load_factor_pct", factor, 101, LOAD_FACTOR_PCT_MAX.into())?;
        range("load_low", self.load_low, 1, LOAD_MAX)?;
        range("load_high", self.load_high, 2, LOAD_MAX)?;
        range("load_idle", self.load_idle, 0, LOAD_MAX)?;
        range("load_overload", self.load_overload, 1, LOAD_MAX)?;
        range("miss_cost", self.miss_cost, 1, LOAD_MAX)?;
        range("disk_busy", self.disk_busy, 0, LOAD_MAX)?;
        range("targets_max", self.targets_max, 1, TARGETS_MAX)?;
        if let Some(time) = &self.replica_time {
            check_range(&path("replica_time"), time, &Span::ZERO, &REPLICA_TIME_MAX)?;
        }
        let in_order = |less: (&str, u32), more: (&str, u32), is_more_set: bool| {
            if less.1 < more.1 {
                return Ok(());
            }
            Err(Invalid::new(
                path(if is_more_set { more.0 } else { less.0 }),
                format!("`{}` is {} and `{}` {}", less.0, less.1, more.0, more.1),
                format!("use a `{}` that is more than `{}`", more.0, less.0),
            ))
        };
        let (low, high) = self.limits();
        in_order(
            ("load_low", low),
            ("load_high", high),
            self.load_high.is_some(),
        )?;
        let (idle, overload) = self.costs();
        in_order(
            ("load_idle", idle),
            ("load_overload", overload),
            self.load_overload.is_some(),
        )
    }
}

/// Refuses next hops and weights that do not fit, and numbers outside their ranges.
pub(super) fn check(index: usize, route: &Route) -> Result<(), Invalid> {
    let path = |key: &str| format!("route[{index}].{key}");
    check_next_hops(&path("next_hops"), &route.next_hops)?;
    check_weights(&path("weights"), route)?;
    check_choice_for(path("choice_for"), route)?;
    check_range(&path("ramp"), &route.ramp, &Span::ZERO, &RAMP_MAX)?;
    route.constants().check(path)
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

/// With a policy by the target alone, the first request of a connection would choose for targets
/// that other next hops keep. The mappings of `lard` and its like follow what is chosen.
fn check_choice_for(path: String, route: &Route) -> Result<(), Invalid> {
    let is_by_target = matches!(
        route.policy,
        PolicyKind::Hash | PolicyKind::BoundedHash | PolicyKind::ReplicatedHash
    );
    if is_by_target && route.choice_for == ChoiceFor::Connection {
        return Err(Invalid::new(
            path,
            format!(
                "with `{}` each target has its next hop, and `connection` sends it to that of another one",
                route.policy
            ),
            "use `request`, or another policy such as `in-turn` or `lard`",
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
