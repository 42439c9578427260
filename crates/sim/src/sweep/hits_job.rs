//! Runs of hits-only simulation: size x policy x admission.

use super::grid::Point;
use super::job::{Figure, Figures, Job, Parameter};
use crate::hit_ratio::hits::{
    Setting, Simulation, Summary, Trace, TraceError, UnitSizes, admission_from_word, simulate,
    survey,
};
use crate::hit_ratio::keys::KeyRule;
use crate::hit_ratio::mrc::Size;
use std::collections::BTreeMap;
use std::num::NonZero;
use weir_policy::choice::UnknownWord;
use weir_policy::eviction::EvictionKind;

/// Simulates a cache at each point. The trace is read once for each run, so runs need no memory for
/// it.
pub struct HitsJob<'t> {
    trace: &'t dyn Trace,
    rule: KeyRule,
    is_by_count: bool,
    summary: Summary,
}

impl<'t> HitsJob<'t> {
    /// Reads the trace, to know what its sizes are shares of.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(trace: &'t dyn Trace, rule: KeyRule, is_by_count: bool) -> Result<Self, TraceError> {
        let summary = if is_by_count {
            survey(&UnitSizes(trace), rule)?
        } else {
            survey(trace, rule)?
        };
        Ok(Self {
            trace,
            rule,
            is_by_count,
            summary,
        })
    }

    /// What the trace is.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    fn setting(&self, point: &Point) -> Result<Setting, String> {
        let value = |name: &str| point.get(name).map_or("", String::as_str);
        let size: Size = value("size").parse()?;
        Ok(Setting {
            capacity_bytes: size.of(self.summary.footprint_bytes),
            eviction: value("policy")
                .parse()
                .map_err(|unknown: UnknownWord| unknown.to_string())?,
            admission: admission_from_word(value("admission"))?,
        })
    }
}

impl Job for HitsJob<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter {
                name: "size",
                meaning: "the size of the cache, bytes such as `64MiB` or a share of the footprint such as `10%`",
                default: "10%",
                check: |value| value.parse::<Size>().map(drop),
            },
            Parameter {
                name: "policy",
                meaning: "who leaves",
                default: EvictionKind::DEFAULT.as_str(),
                check: |value| {
                    let parsed = value.parse::<EvictionKind>();
                    parsed.map(drop).map_err(|unknown| unknown.to_string())
                },
            },
            Parameter {
                name: "admission",
                meaning: "who comes in",
                default: "always",
                check: |value| admission_from_word(value).map(drop),
            },
        ]
    }

    fn about(&self) -> BTreeMap<String, String> {
        let sizes = if self.is_by_count { "one" } else { "bytes" };
        let words = [
            ("trace", self.trace.name()),
            ("keys_by", self.rule.to_string()),
            ("response_size", sizes.to_owned()),
        ];
        words.map(|(name, word)| (name.to_owned(), word)).into()
    }

    fn run(&self, point: &Point) -> Result<Figures, String> {
        let setting = self.setting(point)?;
        let mut caches = [Simulation::new(setting)];
        let by_count = UnitSizes(self.trace);
        let trace = if self.is_by_count {
            &by_count
        } else {
            self.trace
        };
        let summary = simulate(trace, self.rule, &mut caches, NonZero::<usize>::MIN)
            .map_err(|error| error.to_string())?;
        let totals = caches[0].totals();
        let infinite = summary.infinite();
        Ok(vec![
            ("capacity_bytes", Figure::Whole(setting.capacity_bytes)),
            ("requests", Figure::Whole(totals.requests)),
            ("hits", Figure::Whole(totals.hits)),
            ("bytes", Figure::Whole(totals.bytes)),
            ("hit_bytes", Figure::Whole(totals.hit_bytes)),
            ("hit_ratio", Figure::Real(totals.hit_ratio())),
            ("byte_hit_ratio", Figure::Real(totals.byte_hit_ratio())),
            ("evictions", Figure::Whole(totals.evictions)),
            ("refused", Figure::Whole(totals.refused)),
            ("too_large", Figure::Whole(totals.too_large)),
            (
                "too_large_for_small_queue",
                Figure::Whole(totals.too_large_for_small_queue),
            ),
            ("residents", Figure::Whole(totals.residents)),
            ("resident_bytes", Figure::Whole(totals.resident_bytes)),
            ("keys", Figure::Whole(summary.keys)),
            ("footprint_bytes", Figure::Whole(summary.footprint_bytes)),
            ("infinite_hit_ratio", Figure::Real(infinite.hit_ratio())),
            (
                "infinite_byte_hit_ratio",
                Figure::Real(infinite.byte_hit_ratio()),
            ),
        ])
    }
}
