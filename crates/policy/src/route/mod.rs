//! Which next hop a request goes to.
//!
//! A route is a host pattern, a path prefix and some next hops. The route for a target is found by
//! host first and path second: of all routes whose host *and* path match, one with an exact host
//! beats one with `*.suffix`, a longer suffix beats a shorter, any suffix beats a route without a
//! host; among equals the longest prefix wins. A host that is known exactly but has no route for
//! the path thus falls back to `*.suffix` and to routes without host.
//!
//! A prefix ends on a segment boundary: `/a` is for `/a`, `/a/`, `/a/b` and `/a?q`, not for `/ab`;
//! `/a/` is for `/a/b`, not for `/a`. `/` is for everything, `*` (OPTIONS) included. Paths are
//! compared as they were received: neither percent-encoding nor `..` is resolved, as the next hop
//! may read them otherwise than we would; a route chooses a next hop and protects nothing.
//!
//! Among a route's next hops requests go round, without those that are ejected after a failed
//! connect.

mod cache_digest;
mod cluster;
mod health;
mod host;
pub mod policy;
mod response_time;
mod scope;
mod why;

use crate::connections::HopId;
use crate::now::{Now, Tick};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use health::{Condition, Health};
use weir_semantics::words;

pub use cache_digest::{
    ADDITIONS_MAX, CacheDigest, DIGEST_BYTES_MAX, DigestError, DigestReader, DigestVersion,
    DigestWriter, RESPONSES_MAX,
};
pub use cluster::{
    ClusterView, HoldsIt, Load, NODES_MAX, Node, NodeKey, NodeState, Place, TargetKey, Weight,
};
pub use health::{EjectionRules, Outcome};
pub use host::{HostPattern, HostPatternError};
pub use response_time::PeakMean;
pub use scope::Scope;
pub use why::Why;

/// A route as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSpec {
    /// The hosts it is for; `None`: all.
    pub host: Option<HostPattern>,
    /// What the path begins with: `/` and what follows.
    pub path_prefix: String,
    /// The next hops that share its requests; at least one.
    pub hops: Vec<HopId>,
}

/// A route: its place among the specs the routes were built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// A chosen next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where to.
    pub hop: HopId,
    /// By which route.
    pub route: RouteId,
    /// Why this one of its hops.
    pub why: Why,
}

words! {
    /// Why there is no next hop for a target.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoRoute {
        /// No route is for this host.
        Host = "no-route-for-host",
        /// Routes are for this host, but none for this path.
        Path = "no-route-for-path",
    }
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "no route is for this host",
            Self::Path => "no route for this host is for this path",
        })
    }
}

impl core::error::Error for NoRoute {}

/// Why specs are not accepted; each names the offending route by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// The path prefix does not begin with `/`, or holds a `?` or `#`, which no path does.
    PathPrefix(RouteId),
    /// There is no next hop.
    NoHops(RouteId),
    /// A route before has the same host and path prefix.
    Duplicate(RouteId),
    /// There are more than 2^32 routes.
    TooMany,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathPrefix(RouteId(id)) => {
                write!(
                    f,
                    "route {id}: path prefix must begin with `/` and hold no `?` or `#`"
                )
            }
            Self::NoHops(RouteId(id)) => write!(f, "route {id}: at least one next hop is needed"),
            Self::Duplicate(RouteId(id)) => {
                write!(
                    f,
                    "route {id}: an earlier route has the same host and path prefix"
                )
            }
            Self::TooMany => f.write_str("too many routes"),
        }
    }
}

impl core::error::Error for RouteError {}

/// The routes, whose turn it is in each, and which next hops are ejected.
#[derive(Debug)]
pub struct Routes {
    /// In the order of the specs: a [`RouteId`] is an index.
    routes: Vec<Route>,
    exact: BTreeMap<String, ByPath>,
    /// Without the `*.`.
    suffix: BTreeMap<String, ByPath>,
    any: ByPath,
    health: Health,
}

/// The routes of one host pattern, the longest prefix first.
type ByPath = Vec<RouteId>;

#[derive(Debug)]
struct Route {
    path_prefix: String,
    hops: Vec<HopId>,
    /// The hop whose turn it is: an index into `hops`.
    turn: usize,
}

impl Routes {
    /// Routes over `specs`, whose next hops are ejected by `rules`.
    ///
    /// # Errors
    /// The first spec that cannot be a route.
    pub fn new(specs: Vec<RouteSpec>, rules: EjectionRules) -> Result<Self, RouteError> {
        let hops = specs.iter().flat_map(|spec| spec.hops.iter().copied());
        let mut routes = Self {
            health: Health::new(rules, hops),
            routes: Vec::with_capacity(specs.len()),
            exact: BTreeMap::new(),
            suffix: BTreeMap::new(),
            any: Vec::new(),
        };
        for (place, spec) in specs.into_iter().enumerate() {
            let id = RouteId(u32::try_from(place).map_err(|_| RouteError::TooMany)?);
            routes.add(id, spec)?;
        }
        Ok(routes)
    }

    /// Chooses the next hop for a target.
    ///
    /// `host` is the target's host without port, in any case; `path` its path, with or without
    /// query, or `*`.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn choose(&mut self, now: Now, host: &str, path: &str) -> Result<Choice, NoRoute> {
        let id = self.find(host, path)?;
        let route = &mut self.routes[id.0 as usize];
        let (turn, why) = route.whose_turn(now, &self.health);
        let hop = route.hops[turn];
        route.turn = (turn + 1) % route.hops.len();
        if why == Why::Probe {
            self.health.begin_probe(now, hop);
        }
        Ok(Choice {
            hop,
            route: id,
            why,
        })
    }

    /// What came of connecting to `hop`. Only connects count: an answer of 500 is an answer.
    ///
    /// Hops of no route are ignored.
    pub fn report(&mut self, now: Now, hop: HopId, outcome: Outcome) {
        self.health.report(now, hop, outcome);
    }

    /// Takes over from `before` how next hops are: `known` says which of its hops one of these is.
    /// So what was learnt outlives a change of the configuration.
    pub fn keep_health(&mut self, before: &Self, known: impl Fn(HopId) -> Option<HopId>) {
        self.health.keep(&before.health, known);
    }

    /// The route for a target, without taking a turn.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn find(&self, host: &str, path: &str) -> Result<RouteId, NoRoute> {
        let host = host::canonical(host);
        let path = path.split('?').next().unwrap_or(path);
        let suffixes = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
        let by_suffix = suffixes.filter_map(|suffix| self.suffix.get(suffix));
        let candidates = self
            .exact
            .get(&*host)
            .into_iter()
            .chain(by_suffix)
            .chain([&self.any]);
        let mut refusal = NoRoute::Host;
        for id in candidates.flatten() {
            if is_prefix(&self.routes[id.0 as usize].path_prefix, path) {
                return Ok(*id);
            }
            refusal = NoRoute::Path;
        }
        Err(refusal)
    }

    fn add(&mut self, id: RouteId, spec: RouteSpec) -> Result<(), RouteError> {
        let path_prefix = spec.path_prefix;
        if !path_prefix.starts_with('/') || path_prefix.contains(['?', '#']) {
            return Err(RouteError::PathPrefix(id));
        }
        if spec.hops.is_empty() {
            return Err(RouteError::NoHops(id));
        }
        let by_path = match spec.host {
            Some(HostPattern::Exact(host)) => self
                .exact
                .entry(host::canonical(&host).into_owned())
                .or_default(),
            Some(HostPattern::Suffix(suffix)) => self
                .suffix
                .entry(host::canonical(&suffix).into_owned())
                .or_default(),
            None => &mut self.any,
        };
        let prefix_of = |other: &RouteId| self.routes[other.0 as usize].path_prefix.as_str();
        if by_path.iter().any(|other| prefix_of(other) == path_prefix) {
            return Err(RouteError::Duplicate(id));
        }
        let place = by_path.partition_point(|other| prefix_of(other).len() >= path_prefix.len());
        by_path.insert(place, id);
        self.routes.push(Route {
            path_prefix,
            hops: spec.hops,
            turn: 0,
        });
        Ok(())
    }
}

impl Route {
    /// The first in turn that is not ejected; if all are, the one whose ejection ends first.
    fn whose_turn(&self, now: Now, health: &Health) -> (usize, Why) {
        let mut first_back = (self.turn, Tick(u64::MAX));
        for passed in 0..self.hops.len() {
            let place = (self.turn + passed) % self.hops.len();
            match health.condition(now, self.hops[place]) {
                Condition::Healthy if passed == 0 => return (place, Why::InTurn),
                Condition::Healthy => return (place, Why::OthersEjected),
                Condition::Probing => return (place, Why::Probe),
                Condition::Ejected { until } if until < first_back.1 => first_back = (place, until),
                Condition::Ejected { .. } => {}
            }
        }
        (first_back.0, Why::AllEjected)
    }
}

/// Whether `path` (without query) is `prefix` or lies below it.
fn is_prefix(prefix: &str, path: &str) -> bool {
    if prefix == "/" {
        return true;
    }
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

#[cfg(test)]
mod tests;
