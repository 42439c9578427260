//! Web Polygraph's PolyMix-3 and PolyMix-4, the workloads of the third and fourth cache-off (2000,
//! 2001), with the numbers of the workload files that Polygraph 4.9 ships.

use super::text::{As, Bytes, Seconds, Share, as_text};
use crate::law::{Dimension, Law, Quantity};
use crate::number::whole;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `[workload]` with `kind = "polymix"`: robots in an open loop, a fill of a working set and two
/// peaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolyMix {
    /// 3 or 4, for people: every difference between the two is a key here.
    pub version: u32,
    /// Requests a second of all robots at the peaks.
    pub peak_rate_per_s: f64,
    /// Requests a second of all robots while the cache is filled, at most the peak's.
    pub fill_rate_per_s: f64,
    /// Size of the cache under test, in bytes: what the fill is measured by.
    #[serde(rename = "cache", with = "As::<Bytes>")]
    pub cache_bytes: u64,
    /// Requests a second of one robot at full load; their gaps are exponential.
    pub robot_rate_per_s: f64,
    /// Whether a load below the peak means slower robots or fewer.
    pub ramp_by: RampBy,
    /// Servers beside those that `servers_per_robot` adds.
    pub servers_base: u32,
    /// Servers a robot.
    pub servers_per_robot: f64,
    /// The probability that a request repeats one made before, 0 to 1. Not a hit ratio: what is
    /// repeated may be not storable, reloaded or changed.
    #[serde(with = "As::<Share>")]
    pub recurrence: f64,
    /// The share of requests for what all robots may request; the others are for what only one
    /// robot requests, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub public_interest: f64,
    /// Width of the hot set as a share of the working set, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub hot_set_share: f64,
    /// The probability that a repeat is taken from the hot set, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub hot_set_chance: f64,
    /// The probability that a repeat takes the smallest storable target among its neighbours, 0 to
    /// 1: so the byte hit ratio is less than the hit ratio.
    #[serde(with = "As::<Share>")]
    pub small_bias: f64,
    /// How many targets to each side are the neighbours.
    pub small_bias_reach: u32,
    /// The share of requests with `If-Modified-Since` before the last modification, to be answered
    /// 200, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub ims200_share: f64,
    /// The share of requests with `If-Modified-Since` after the last modification, to be answered
    /// 304, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub ims304_share: f64,
    /// The share of requests with `Cache-Control: no-cache` and `Pragma: no-cache`, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub reload_share: f64,
    /// The share of `POST` requests, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub post_share: f64,
    /// The share of `HEAD` requests, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub head_share: f64,
    /// Bytes of the content of a `POST`.
    pub post_size: Law,
    /// The working set is what this many seconds at the peak rate bring of storable misses.
    #[serde(rename = "working_set_time", with = "As::<Seconds>")]
    pub working_set_s: f64,
    /// The share of misses at the peak that the working set is computed with, 0 to 1.
    #[serde(rename = "working_set_misses", with = "As::<Share>")]
    pub working_set_miss_share: f64,
    /// The share of requests for new targets whose response is storable, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub fillable_share: f64,
    /// The fill ends when so many times the cache's size has been requested for the first time.
    pub fill_factor: f64,
    /// Kinds of content; a target's kind is its place in this list. At most eight.
    pub contents: Vec<ContentType>,
    /// The schedule.
    pub phases: Vec<PolyPhase>,
}

impl PolyMix {
    /// Robots at full load, at least 1.
    #[must_use]
    pub fn robots(&self) -> u32 {
        count(self.peak_rate_per_s / self.robot_rate_per_s)
    }

    /// Servers, at least 1.
    #[must_use]
    pub fn servers(&self) -> u32 {
        count(f64::from(self.servers_base) + self.servers_per_robot * f64::from(self.robots()))
    }

    /// How many storable targets the working set has when it is frozen, at least 1.
    #[must_use]
    pub fn working_set_targets(&self) -> u64 {
        let targets = self.peak_rate_per_s
            * self.working_set_s
            * self.working_set_miss_share
            * self.fillable_share;
        whole(targets.round().max(1.0))
    }

    /// A load as a share of the peak's, 0 to 1.
    #[must_use]
    pub fn load_share(&self, load: Load) -> f64 {
        match load {
            Load::Share(share) => share,
            Load::Fill => self.fill_rate_per_s / self.peak_rate_per_s,
            Load::Robots(robots) => (f64::from(robots) / f64::from(self.robots())).min(1.0),
        }
    }
}

fn count(number: f64) -> u32 {
    whole(number.round().max(1.0))
}

/// What changes when the load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RampBy {
    /// Every robot is slower: PolyMix-3's load factor.
    Rate,
    /// Fewer robots are at work, each at its full rate: PolyMix-4's populus factor.
    Robots,
}

/// A kind of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentType {
    /// For reports.
    pub name: String,
    /// The share of direct and embedded content together, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub share: f64,
    /// Whether it is requested itself; if not, only as embedded in something else.
    pub direct: bool,
    /// `Content-Type`.
    pub media_type: String,
    /// What a path ends in, with the dot.
    pub extension: String,
    /// Bytes.
    pub size: Law,
    /// The share of targets whose responses may be stored, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub storable: f64,
    /// How many targets of the kind that is not direct it embeds; at most 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeds: Option<Law>,
    /// When it changes.
    pub life_cycle: LifeCycle,
}

/// When a target changes. Its cycle length is drawn once; the n-th modification is near the n-th
/// cycle's begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifeCycle {
    /// Seconds of a cycle.
    pub length: Law,
    /// How much of the cycle a modification may be away from its place, half of it to each side, 0
    /// to less than 1.
    #[serde(with = "As::<Share>")]
    pub variance: f64,
}

/// A part of the schedule. Load and factors change linearly from what the phase before ended with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolyPhase {
    /// For reports: `top2` is the one that results are read from.
    pub name: String,
    /// How long it lasts, in seconds; without it, until the cache is filled and the working set
    /// frozen.
    #[serde(
        rename = "duration",
        default,
        with = "As::<Seconds>",
        skip_serializing_if = "Option::is_none"
    )]
    pub seconds: Option<f64>,
    /// The load at its begin, where the phase before did not end with it; the first phase begins
    /// with 0 else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_from: Option<Load>,
    /// The load at its end.
    pub load: Load,
    /// What the recurrence is multiplied by at its end, 0 to 1. The first phase has it from the
    /// begin.
    pub recurrence: f64,
    /// What the shares of conditional requests, reloads, other methods and aborts are multiplied by
    /// at its end, 0 to 1.
    pub special: f64,
    /// Whether its figures count; what is not measured is warm-up.
    pub measured: bool,
}

/// A load: `"10%"` of the peak, `"fill"`, or `"1 robot"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Of the peak rate, 0 to 1.
    Share(f64),
    /// The fill rate.
    Fill,
    /// So many robots at full rate.
    Robots(u32),
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "fill" {
            return Ok(Self::Fill);
        }
        let robots = text
            .strip_suffix("robots")
            .or_else(|| text.strip_suffix("robot"));
        if let Some(robots) = robots.and_then(|robots| robots.trim().parse().ok()) {
            return Ok(Self::Robots(robots));
        }
        super::text::read::<Share>(text)
            .map(Self::Share)
            .map_err(|_| format!("`{text}` is no load; did you mean `10%`, `fill` or `1 robot`?"))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(value) => {
                let dimension = Dimension::Share;
                let value = *value;
                Quantity { value, dimension }.fmt(f)
            }
            Self::Fill => f.write_str("fill"),
            Self::Robots(1) => f.write_str("1 robot"),
            Self::Robots(robots) => write!(f, "{robots} robots"),
        }
    }
}

as_text!(Load);
