//! What a cache of unlimited size makes of a PolyMix stream: the hit ratios that its designers
//! aimed at.

use std::collections::BTreeMap;

use crate::stream::Due;
use crate::{Method, RequestType, Scenario, Site, Target, UnixSeconds, WorkloadRequest};

/// Requests of one phase, embedded ones among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: usize,
    pub(super) hits: usize,
    /// Plain `GET`s, the only ones that Polygraph counts hits of.
    pub(super) basic: usize,
    pub(super) basic_hits: usize,
    pub(super) basic_bytes: u64,
    pub(super) basic_hit_bytes: u64,
}

impl Counts {
    pub(super) fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.requests as f64
    }

    pub(super) fn basic_hit_ratio(&self) -> f64 {
        self.basic_hits as f64 / self.basic as f64
    }

    pub(super) fn basic_byte_hit_ratio(&self) -> f64 {
        self.basic_hit_bytes as f64 / self.basic_bytes as f64
    }
}

/// A store without a limit that serves what is fresh and forwards all else.
pub(super) struct Infinite {
    site: Site,
    /// The version that is stored.
    stored: BTreeMap<Target, u64>,
    pub(super) phases: Vec<Counts>,
}

impl Infinite {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            site: Site::new(scenario, seed),
            stored: BTreeMap::new(),
            phases: vec![Counts::default(); 256],
        }
    }

    pub(super) fn handle(&mut self, due: &Due) {
        let at = weir_semantics::Timestamp(
            START + i64::try_from(due.at_us / 1_000_000).expect("a time"),
        );
        self.one(&due.request, at);
        if due.request.with_embedded {
            let embedded: Vec<Target> = self.site.embedded(due.request.target).collect();
            for target in embedded {
                self.one(&WorkloadRequest::plain(due.request.phase, target), at);
            }
        }
    }

    fn one(&mut self, ask: &WorkloadRequest, at: UnixSeconds) {
        let now = self.site.describe(ask.target, at);
        let is_stored = self.stored.get(&ask.target) == Some(&now.version);
        let is_hit = is_stored
            && ask.kind != RequestType::Reload
            && !matches!(ask.method, Method::Post { .. });
        let is_basic = ask.kind == RequestType::Plain && ask.method == Method::Get;
        let counts = &mut self.phases[usize::from(ask.phase)];
        counts.requests += 1;
        counts.hits += usize::from(is_hit);
        if is_basic {
            counts.basic += 1;
            counts.basic_hits += usize::from(is_hit);
            counts.basic_bytes += now.length;
            counts.basic_hit_bytes += if is_hit { now.length } else { 0 };
        }
        let is_200 = ask.kind != RequestType::IfModifiedSince { newer: true };
        let is_whole = ask.method == Method::Get && is_200 && ask.abort_at.is_none();
        if now.storable && is_whole {
            self.stored.insert(ask.target, now.version);
        }
    }
}

/// Some day of the year 2000.
const START: i64 = 960_000_000;
