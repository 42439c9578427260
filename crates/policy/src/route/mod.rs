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
//! Among a route's next hops its policy chooses ([`policy`]), without those that are ejected after
//! a failed connect. It sees what this process knows: the requests that it sent and their response
//! times.
//!
//! Which node of a cluster a request goes to is chosen by the same policies; `lateral` has the
//! rules, `members` what a node knows of the others.

mod cache_digest;
mod cluster;
mod connection_hops;
mod health;
mod hop_choice;
mod host;
mod lateral;
mod members;
pub mod policy;
mod ramp;
mod response_time;
mod scope;
mod splitmix;
mod why;

use crate::connections::HopId;
use crate::digest::Secret;
use crate::now::Now;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use health::Health;
use hop_choice::HopChoice;
use splitmix::SplitMix;
use weir_semantics::{without_query, words};

pub use cache_digest::{
    ADDITIONS_MAX, Applied, CacheDigest, DIGEST_BYTES_MAX, DigestError, DigestKeys, DigestReader,
    DigestUpdate, DigestVersion, DigestWriter, IncomingDigest, RESPONSES_MAX, SealedKey, tag_key,
};
pub use cluster::{
    ClusterView, HoldsIt, Load, NODES_MAX, Node, NodeKey, NodeState, Place, TargetKey, Weight,
};
pub use connection_hops::{ChoiceFor, ConnectionHops};
pub use health::{EjectionRules, HealthChange, Outcome, ProbeRules};
pub use hop_choice::{Balancing, Candidate, RouteHop};
pub use host::{HostPattern, HostPatternError};
pub use lateral::{
    AskedBy, AskedNode, LateralRequest, NODES_ASKED_MAX, OwnerPreview, Source, StoredRequest,
};
pub use members::{KnownNode, Members, NodeReport, STATE_REPORT_MS};
pub use ramp::RampMs;
pub use response_time::PeakMean;
pub use scope::Scope;
pub use why::{PassedOver, Why};

/// A route as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSpec {
    /// The hosts it is for; `None`: all.
    pub host: Option<HostPattern>,
    /// What the path begins with: `/` and what follows.
    pub path_prefix: String,
    /// The next hops that share its requests; at least one, each once.
    pub hops: Vec<RouteHop>,
    /// How they share them.
    pub balancing: Balancing,
    /// What one of them is chosen for.
    pub choice_for: ChoiceFor,
}

impl RouteSpec {
    /// Whether a choice depends on where requests of the same connection went before.
    fn remembers(&self) -> bool {
        self.choice_for == ChoiceFor::Connection || self.has_handling_hop()
    }

    /// Whether the next hop of the last request of a connection *handles* it, as `extended-lard`
    /// has it.
    fn has_handling_hop(&self) -> bool {
        self.balancing.policy == policy::PolicyKind::ExtendedLard
            && self.choice_for == ChoiceFor::Request
    }
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
    /// Whether [`Routes::begin`] and [`Routes::end`] are to be called: a policy counts requests.
    pub is_counted: bool,
    /// Whether [`Routes::responded`] is to be called: the policy uses response times.
    pub is_timed: bool,
    /// Whether [`Routes::await_head`] and [`Routes::head_ended`] are to be called: a policy uses
    /// the miss pressure.
    pub is_awaited: bool,
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
    /// A next hop is named twice.
    HopTwice(RouteId),
    /// There are more than [`NODES_MAX`] next hops.
    TooManyHops(RouteId),
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
            Self::HopTwice(RouteId(id)) => write!(f, "route {id}: a next hop is named twice"),
            Self::TooManyHops(RouteId(id)) => {
                write!(f, "route {id}: more than {NODES_MAX} next hops")
            }
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
    /// Whether any route's policy counts requests: next hops are shared by routes.
    is_counted: bool,
    /// Whether any route's policy uses miss pressure.
    is_awaited: bool,
    /// Whether any route looks at where a connection's requests went before.
    remembers: bool,
    /// Under which targets are hashed.
    target_secret: Secret,
    /// Of random numbers for choices.
    random: SplitMix,
}

/// The routes of one host pattern, the longest prefix first.
type ByPath = Vec<RouteId>;

#[derive(Debug)]
struct Route {
    path_prefix: String,
    hops: HopChoice,
}

/// Under which next hops are hashed, and targets unless front ends have a secret in common
/// ([`Routes::hash_targets_under`]). Not a secret: front ends agree that never talk. So a client
/// can choose targets of one next hop, as it can with any consistent hash of a URL; `bounded-hash`
/// bounds what that next hop gets. A secret of each process would keep clients from it, but then
/// no two front ends would agree, nor one with itself before a restart.
pub const AGREED: Secret = Secret(*b"weir route hash ");

impl Routes {
    /// Routes over `specs`, whose next hops are ejected by `rules`. `seed` is random and of this
    /// process alone.
    ///
    /// # Errors
    /// The first spec that cannot be a route.
    pub fn new(specs: Vec<RouteSpec>, rules: EjectionRules, seed: u64) -> Result<Self, RouteError> {
        let hops = specs.iter().flat_map(|spec| &spec.hops);
        let mut routes = Self {
            health: Health::new(rules, hops.map(|hop| hop.hop)),
            is_counted: specs.iter().any(|spec| spec.balancing.policy.uses_load()),
            is_awaited: specs.iter().any(RouteSpec::has_handling_hop),
            remembers: specs.iter().any(RouteSpec::remembers),
            target_secret: AGREED,
            random: SplitMix(seed),
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

    /// Hashes targets under a secret that front ends have in common and clients do not know: they
    /// cannot choose targets of one next hop then.
    pub const fn hash_targets_under(&mut self, secret: Secret) {
        self.target_secret = secret;
    }

    /// Chooses the next hop for a target.
    ///
    /// `host` is the target's host without port, in any case; `path` its path, with or without
    /// query, or `*`.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn choose(&mut self, now: Now, host: &str, path: &str) -> Result<Choice, NoRoute> {
        self.choose_for(now, &|| host, path, &mut ConnectionHops::default())
    }

    /// The same for a request of a connection whose requests went to `connection` before; the next
    /// hop is noted there.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn choose_for<'h>(
        &mut self,
        now: Now,
        host: &dyn Fn() -> &'h str,
        path: &str,
        connection: &mut ConnectionHops,
    ) -> Result<Choice, NoRoute> {
        let id = self.find_for(host, path)?;
        let last = connection.of(id);
        let choice = self.choose_of(now, id, (host, path), (&[], last));
        let hops = &self.routes[id.0 as usize].hops;
        if let Some(key) = hops.remembered(choice.hop, &self.health) {
            connection.note(id, key);
        }
        Ok(choice)
    }

    /// Whether any route looks at where the requests of a connection went before.
    #[must_use]
    pub const fn remembers_connections(&self) -> bool {
        self.remembers
    }

    /// The same for a request that was sent to all in `tried` in vain; `None` if there is no other
    /// next hop.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn choose_another(
        &mut self,
        now: Now,
        host: &str,
        path: &str,
        tried: &[HopId],
    ) -> Result<Option<Choice>, NoRoute> {
        let id = self.find(host, path)?;
        let choice = self.choose_of(now, id, (&|| host, path), (tried, None));
        Ok((!tried.contains(&choice.hop)).then_some(choice))
    }

    fn choose_of<'h>(
        &mut self,
        now: Now,
        id: RouteId,
        (host, path): (&dyn Fn() -> &'h str, &str),
        (tried, last): (&[HopId], Option<NodeKey>),
    ) -> Choice {
        let random = self.random.next();
        let secret = self.target_secret;
        let target = || TargetKey::of(&secret, &host::canonical(host()), path);
        let hops = &mut self.routes[id.0 as usize].hops;
        let (index, why) = hops.choose(now, &self.health, (tried, last), random, target);
        let is_timed = hops.is_timed();
        if why == Why::Probe {
            self.health.begin_probe(now, index);
        }
        Choice {
            hop: self.health.at(index).hop(),
            route: id,
            why,
            is_counted: self.is_counted,
            is_timed,
            is_awaited: self.is_awaited,
        }
    }

    /// The next hops of the route for a target, with what the target would cost there. Nothing
    /// changes by it.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn candidates(
        &mut self,
        now: Now,
        host: &str,
        path: &str,
    ) -> Result<(RouteId, Vec<Candidate>), NoRoute> {
        let id = self.find(host, path)?;
        let target = TargetKey::of(&self.target_secret, &host::canonical(host), path);
        let hops = &mut self.routes[id.0 as usize].hops;
        Ok((id, hops.candidates(now, &self.health, target)))
    }

    /// A request is sent to `hop`: it is outstanding until [`Routes::end`].
    pub fn begin(&mut self, hop: HopId) {
        if let Some(state) = self.health.of(hop) {
            state.load = state.load.plus(Load::requests(1));
        }
    }

    /// A request to `hop` has ended.
    pub fn end(&mut self, hop: HopId) {
        if let Some(state) = self.health.of(hop) {
            state.load = state.load.minus(Load::requests(1));
        }
    }

    /// A request was sent to `hop`, and the head of its response is awaited until
    /// [`Routes::head_ended`].
    pub fn await_head(&mut self, hop: HopId) {
        if let Some(state) = self.health.of(hop) {
            state.awaited = state.awaited.saturating_add(1);
        }
    }

    /// The head has come, or does not come any more.
    pub fn head_ended(&mut self, hop: HopId) {
        if let Some(state) = self.health.of(hop) {
            state.awaited = state.awaited.saturating_sub(1);
        }
    }

    /// `hop` began to respond, `us` microseconds after the request was sent.
    pub fn responded(&mut self, now: Now, hop: HopId, us: u64) {
        if let Some(state) = self.health.of(hop) {
            state.response_time.note_us(now.tick, us);
        }
    }

    /// What came of connecting to `hop`. Only connects count: an answer of 500 is an answer.
    ///
    /// Hops of no route are ignored.
    pub fn report(&mut self, now: Now, hop: HopId, outcome: Outcome) -> Option<HealthChange> {
        self.health.report(now, hop, outcome)
    }

    /// An active probe of `hop` has ended.
    pub fn probed(
        &mut self,
        now: Now,
        hop: HopId,
        has_passed: bool,
        rules: ProbeRules,
    ) -> Option<HealthChange> {
        self.health.probed(now, hop, has_passed, rules)
    }

    /// How `hop` is now; `None` if no route has it.
    #[must_use]
    pub fn hop_health(&self, now: Now, hop: HopId) -> Option<HopHealth> {
        let state = self.health.at(self.health.index_of(hop)?);
        Some(HopHealth {
            ejected_for_ms: match state.condition(now) {
                health::Condition::Healthy => None,
                health::Condition::Ejected { until } => Some(until.ms_since(now.tick)),
                health::Condition::Probing => Some(0),
            },
            outstanding: state.load.parts().div_ceil(1024),
        })
    }

    /// Takes over from `before` how next hops are: `known` says which of its hops one of these is.
    /// So what was learnt outlives a change of the configuration. The others are new from now on.
    pub fn keep_health(&mut self, now: Now, before: &Self, known: impl Fn(HopId) -> Option<HopId>) {
        self.health.keep(now, &before.health, known);
    }

    /// The route for a target, without taking a turn.
    ///
    /// # Errors
    /// [`NoRoute`] if no route is for it.
    pub fn find(&self, host: &str, path: &str) -> Result<RouteId, NoRoute> {
        self.find_for(&|| host, path)
    }

    fn find_for<'h>(&self, host: &dyn Fn() -> &'h str, path: &str) -> Result<RouteId, NoRoute> {
        let path = without_query(path);
        let mut refusal = NoRoute::Host;
        let mut search = |routes: &[RouteId]| {
            let is_for = |id: &&RouteId| is_prefix(&self.routes[id.0 as usize].path_prefix, path);
            if !routes.is_empty() {
                refusal = NoRoute::Path;
            }
            routes.iter().find(is_for).copied()
        };
        // most often no route is for a host
        if !self.exact.is_empty() || !self.suffix.is_empty() {
            let host = host::canonical(host());
            let suffixes = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
            let by_suffix = suffixes.filter_map(|suffix| self.suffix.get(suffix));
            let mut by_host = self.exact.get(&*host).into_iter().chain(by_suffix);
            if let Some(id) = by_host.find_map(|routes| search(routes)) {
                return Ok(id);
            }
        }
        search(&self.any).ok_or(refusal)
    }

    fn add(&mut self, id: RouteId, spec: RouteSpec) -> Result<(), RouteError> {
        if !spec.path_prefix.starts_with('/') || spec.path_prefix.contains(['?', '#']) {
            return Err(RouteError::PathPrefix(id));
        }
        check_hops(id, &spec.hops)?;
        let secret = self.random.next();
        let hops = HopChoice::new(&spec, &self.health, secret);
        let path_prefix = spec.path_prefix;
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
        self.routes.push(Route { path_prefix, hops });
        Ok(())
    }
}

/// How a next hop is, for those who operate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopHealth {
    /// How long it is ejected from now on, milliseconds; 0 if one request may find out whether it
    /// is back. `None`: it is asked.
    pub ejected_for_ms: Option<u64>,
    /// Requests that were sent there and have not ended.
    pub outstanding: u32,
}

fn check_hops(id: RouteId, hops: &[RouteHop]) -> Result<(), RouteError> {
    let mut sorted: Vec<HopId> = hops.iter().map(|hop| hop.hop).collect();
    sorted.sort_unstable();
    if sorted.is_empty() {
        return Err(RouteError::NoHops(id));
    }
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(RouteError::HopTwice(id));
    }
    if sorted.len() > NODES_MAX {
        return Err(RouteError::TooManyHops(id));
    }
    Ok(())
}

/// Whether `path` (without query) is `prefix` or lies below it.
pub(crate) fn is_prefix(prefix: &str, path: &str) -> bool {
    if prefix == "/" {
        return true;
    }
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

#[cfg(test)]
mod tests;
