//! Parents and siblings, as the workers use them.
//!
//! Parents are chosen as next hops of routes are, by the same code, and siblings too: both have a
//! table of their own, in which a host pattern and a path stand for all of its parents or siblings.

use crate::cluster::report::{CandidateKind, CandidateReport};
use crate::config::parent::{parents, scopes};
use crate::config::{Config, Direct, HostPattern, Parent, ParentKind, PathPrefix, Span};
use crate::settings::login::Login;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_measure::live::NextHopRow;
use weir_net::next_hops::HopKey;
use weir_policy::Now;
use weir_policy::connections::HopId;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{
    AGREED, Balancing, Choice, ChoiceFor, EjectionRules, HopHealth, NodeKey, RouteHop, RouteSpec,
    Routes, Weight, Why,
};

/// The parents and siblings of a configuration. Their numbers are the places of their tables.
pub(crate) struct Hierarchy {
    /// For each host and path with parents, and how these are used.
    parents: Mutex<Routes>,
    uses: Vec<(Direct, PolicyKind)>,
    siblings: Mutex<Routes>,
    has_siblings: bool,
    proxies: Vec<ConfiguredProxy>,
}

/// A parent or sibling.
pub(crate) struct ConfiguredProxy {
    /// Where it is; nothing listens at the one of a table that names no proxy.
    pub(crate) hop: HopKey,
    pub(crate) kind: ParentKind,
    host: Option<HostPattern>,
    path: PathPrefix,
    /// How its table is among others for the same host and path shared.
    pub(crate) policy: PolicyKind,
    /// What comes from it is stored here.
    pub(crate) keep: bool,
    /// How long it may take, if it is a sibling.
    pub(crate) timeout: Span,
    login: Option<Login>,
    counts: Arc<ProxyCounts>,
}

/// A next hop as it is told.
pub(crate) fn next_hop_row(url: String, kind: &str, health: HopHealth) -> NextHopRow {
    NextHopRow {
        url,
        kind: kind.to_owned(),
        routes: String::new(),
        state: match health.ejected_for_ms {
            None => "in",
            Some(_) => "ejected",
        }
        .to_owned(),
        ejected_for_s: health.ejected_for_ms.map(|ms| ms.div_ceil(1000)),
        outstanding: health.outstanding,
    }
}

/// The outcome of a request to a parent or sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyOutcome {
    /// Its response was used.
    Answered,
    /// A sibling has stored no response that could be used.
    Missed,
    /// It could not be reached, or sent no response, or not in time.
    Failed,
}

impl ProxyOutcome {
    const ALL: [Self; 3] = [Self::Answered, Self::Missed, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Missed => "missed",
            Self::Failed => "failed",
        }
    }
}

/// How many requests ended in each way, in the order of [`ProxyOutcome::ALL`].
#[derive(Debug, Default)]
struct ProxyCounts([AtomicU64; ProxyOutcome::ALL.len()]);

/// What was counted of a parent or sibling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentReport {
    /// Its URL.
    pub url: String,
    /// What it is: `parent` or `sibling`.
    pub kind: &'static str,
    /// Requests to it, by the word for their outcome.
    pub requests: [(&'static str, u64); 3],
}

impl Hierarchy {
    /// The parents and siblings of a valid configuration, without logins. `seed` is random.
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        let all = &config.parents;
        let mut proxies: Vec<ConfiguredProxy> = all.iter().map(ConfiguredProxy::new).collect();
        let mut specs = Vec::new();
        let mut uses = Vec::new();
        for (how, places) in parents(all) {
            for &place in &places {
                proxies[place].policy = how.policy;
            }
            let balancing = Balancing {
                policy: how.policy,
                ..Balancing::default()
            };
            specs.push(spec(all, &places, balancing));
            uses.push((how.direct, how.policy));
        }
        let siblings = scopes(all, ParentKind::Sibling);
        let siblings = siblings
            .iter()
            .map(|places| spec(all, places, Balancing::default()));
        let siblings: Vec<RouteSpec> = siblings.collect();
        Self {
            has_siblings: !siblings.is_empty(),
            parents: table(specs, seed),
            uses,
            siblings: table(siblings, seed),
            proxies,
        }
    }

    /// The same with these logins, by the places of the tables, going on from `before`.
    pub(crate) fn with_logins(
        mut self,
        logins: Vec<Option<Login>>,
        before: Option<(Now, &Self)>,
    ) -> Self {
        for (proxy, login) in self.proxies.iter_mut().zip(logins) {
            proxy.login = login;
        }
        let Some((now, before)) = before else {
            return self;
        };
        for proxy in &mut self.proxies {
            if let Some(same) = before.proxies.iter().find(|it| it.is_same(proxy)) {
                proxy.counts = Arc::clone(&same.counts);
            }
        }
        for kind in ParentKind::ALL {
            let known = |hop: HopId| before.same(&self.proxies[hop.0 as usize]);
            let mut table = self.table(kind);
            table.keep_health(now, &before.table(kind), known);
        }
        self
    }

    /// How parents and siblings are, each URL and kind once.
    pub(crate) fn next_hops(&self, now: Now) -> Vec<(HopKey, NextHopRow)> {
        let mut rows: Vec<(HopKey, NextHopRow)> = Vec::new();
        for (number, proxy) in (0..).zip(&self.proxies) {
            let health = self.table(proxy.kind).hop_health(now, HopId(number));
            let Some(health) = health.filter(|_| proxy.is_named()) else {
                continue;
            };
            let ParentReport { url, kind, .. } = proxy.report();
            let same = |(_, row): &(HopKey, NextHopRow)| row.url == url && row.kind == kind;
            if !rows.iter().any(same) {
                rows.push((proxy.hop.clone(), next_hop_row(url, kind, health)));
            }
        }
        rows
    }

    /// Whether there are no parents and no siblings.
    pub(crate) fn is_empty(&self) -> bool {
        self.proxies.is_empty()
    }

    /// The table of all parents, or of all siblings.
    pub(crate) fn table(&self, kind: ParentKind) -> MutexGuard<'_, Routes> {
        let table = match kind {
            ParentKind::Parent => &self.parents,
            ParentKind::Sibling => &self.siblings,
        };
        table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number `hop`.
    pub(crate) fn proxy(&self, hop: HopId) -> &ConfiguredProxy {
        &self.proxies[hop.0 as usize]
    }

    /// The number of a proxy of other settings, if it is one of these.
    pub(crate) fn same(&self, proxy: &ConfiguredProxy) -> Option<HopId> {
        let place = self.proxies.iter().position(|it| it.is_same(proxy))?;
        u32::try_from(place).ok().map(HopId)
    }

    /// Whether requests for a target may be sent to its host; `Always` if there are no parents for
    /// it.
    pub(crate) fn direct(&self, host: &str, path: &str) -> Direct {
        let route = self.table(ParentKind::Parent).find(host, path);
        route.map_or(Direct::Always, |route| self.uses[route.0 as usize].0)
    }

    /// Whether siblings may be asked for a target: there are some, and requests for it are not
    /// always sent to its host by a table that says so.
    pub(crate) fn may_ask_siblings(&self, host: &str, path: &str) -> bool {
        if !self.has_siblings {
            return false;
        }
        let route = self.table(ParentKind::Parent).find(host, path);
        route.map_or(true, |route| {
            self.uses[route.0 as usize].0 != Direct::Always
        })
    }

    /// The parent or sibling for a target, of those that are not in `tried`. One that is ejected is
    /// chosen only as a `last_resort`.
    pub(crate) fn choose(
        &self,
        kind: ParentKind,
        now: Now,
        (host, path): (&str, &str),
        tried: &[HopId],
        last_resort: bool,
    ) -> Option<Choice> {
        let mut table = self.table(kind);
        let choice = table
            .choose_another(now, host, path, tried)
            .ok()
            .flatten()?;
        if choice.why == Why::AllEjected && !last_resort {
            return None;
        }
        if choice.is_counted {
            table.begin(choice.hop);
        }
        drop(table);
        Some(choice)
    }

    /// The siblings and parents for a target, in the order in which they would be asked, and
    /// whether the host of the target may be. No policy notes that they were looked at.
    pub(crate) fn candidates(&self, now: Now, host: &str, path: &str) -> Vec<CandidateReport> {
        let direct = self.direct(host, path);
        let kinds = [
            (ParentKind::Sibling, self.may_ask_siblings(host, path)),
            (ParentKind::Parent, direct != Direct::Always),
        ];
        let mut all = Vec::new();
        let mut is_chosen = false;
        for (kind, _) in kinds.into_iter().filter(|(_, is_asked)| *is_asked) {
            let Ok((_, candidates)) = self.table(kind).candidates(now, host, path) else {
                continue;
            };
            let is_first = !is_chosen && (kind == ParentKind::Sibling || direct != Direct::Prefer);
            for it in candidates {
                let chosen = it.chosen.filter(|_| is_first);
                is_chosen |= chosen.is_some();
                let url = format!("http://{}", self.proxy(it.hop).hop);
                all.push(CandidateReport {
                    kind: match kind {
                        ParentKind::Parent => CandidateKind::Parent,
                        ParentKind::Sibling => CandidateKind::Sibling,
                    },
                    ..CandidateReport::next_hop(url, &it.node, it.costs, chosen)
                });
            }
        }
        all
    }

    /// The parents for a target, the one that would be chosen first. No policy notes it.
    pub(crate) fn parents_for(&self, now: Now, (host, path): (&str, &str)) -> Vec<HopKey> {
        let candidates = self.table(ParentKind::Parent).candidates(now, host, path);
        let mut candidates = candidates.map_or_else(|_| Vec::new(), |(_, all)| all);
        candidates.sort_by_key(|it| it.chosen.is_none());
        let hops = candidates.iter().map(|it| self.proxy(it.hop).hop.clone());
        hops.collect()
    }

    /// What was counted, each URL and kind once.
    pub(crate) fn report(&self) -> Vec<ParentReport> {
        let mut reports: Vec<ParentReport> = Vec::new();
        for proxy in self.proxies.iter().filter(|it| it.is_named()) {
            let report = proxy.report();
            let same = |it: &&mut ParentReport| (&it.url, it.kind) == (&report.url, report.kind);
            match reports.iter_mut().find(same) {
                None => reports.push(report),
                Some(earlier) => {
                    for (sum, (_, count)) in earlier.requests.iter_mut().zip(report.requests) {
                        sum.1 += count;
                    }
                }
            }
        }
        reports
    }
}

impl ConfiguredProxy {
    fn new(parent: &Parent) -> Self {
        let hop = parent.url.as_ref().map(HopKey::from);
        Self {
            hop: hop.unwrap_or_else(|| HopKey::new("", 0)),
            kind: parent.kind,
            host: parent.host.clone(),
            path: parent.path.clone(),
            policy: PolicyKind::default(),
            keep: parent.keep,
            timeout: parent.timeout(),
            login: None,
            counts: Arc::default(),
        }
    }

    fn is_named(&self) -> bool {
        self.hop.port != 0
    }

    fn is_same(&self, other: &Self) -> bool {
        let is = |it: &Self| (it.kind, it.host.clone(), it.path.clone(), it.hop.clone());
        is(self) == is(other)
    }

    /// The field line, with CRLF, that proves to it who this proxy is; empty if it wants none.
    pub(crate) fn login(&self) -> &[u8] {
        self.login.as_ref().map_or(&[], Login::line)
    }

    /// Counts a request to it.
    pub(crate) fn count(&self, outcome: ProxyOutcome) {
        self.counts.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self) -> ParentReport {
        let mut requests = ProxyOutcome::ALL.map(|outcome| (outcome.as_str(), 0));
        for (count, (_, sum)) in self.counts.0.iter().zip(&mut requests) {
            *sum = count.load(Ordering::Relaxed);
        }
        ParentReport {
            url: format!("http://{}", self.hop),
            kind: self.kind.as_str(),
            requests,
        }
    }
}

/// The tables at `places`, which have the same host and path.
fn spec(all: &[Parent], places: &[usize], balancing: Balancing) -> RouteSpec {
    let first = &all[places[0]];
    let hops = places.iter().map(|place| {
        let parent = &all[*place];
        let name = parent.url.as_ref();
        let name = name.map_or_else(String::new, |url| format!("{}:{}", url.host, url.port));
        RouteHop {
            hop: HopId(u32::try_from(*place).unwrap_or(u32::MAX)),
            key: NodeKey::of(&AGREED, &name),
            weight: Weight::new(parent.weight).unwrap_or(Weight::ONE),
        }
    });
    RouteSpec {
        host: first.host.as_ref().map(HostPattern::pattern),
        path_prefix: first.path.as_str().to_owned(),
        hops: hops.collect(),
        balancing,
        choice_for: ChoiceFor::Request,
    }
}

fn table(specs: Vec<RouteSpec>, seed: u64) -> Mutex<Routes> {
    // validated before: what the configuration accepts the table accepts
    let routes = Routes::new(specs, EjectionRules::default(), seed);
    Mutex::new(routes.expect("a validated configuration has valid parents"))
}
