//! The configuration as the workers use it: parsed, compiled, immutable. A reload replaces all of
//! it.

pub(crate) mod acme;
pub(crate) mod hierarchy;
pub(crate) mod hooks;
pub(crate) mod listener_names;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod next_hop_tls;
pub(crate) mod rule_counts;
pub(crate) mod tls;

use crate::cluster::report::CandidateReport;
use crate::cluster::{Cluster, ClusterSecret, Membership};
use crate::config::{self, Cidr, Config, Mode, NextHopUrl, balancing};
use crate::log::words;
use crate::modules::loaded::LoadedModules;
use hierarchy::{Hierarchy, next_hop_row};
use hooks::Hooks;
use listener_names::ListenerNames;
use login::Login;
use logins::Logins;
use rule_counts::RuleCounts;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tls::TlsServers;
use weir_measure::live::NextHopRow;
use weir_net::next_hops::ConnectionRules;
use weir_net::next_hops::{HopKey, Links};
use weir_net::tls::{TlsClients, Trust};
use weir_policy::connections::{HopId, OpenRules};
use weir_policy::destination::{
    ClientDenial, ClientRules, ConnectPorts, DenyDefault, DestinationRules,
};
use weir_policy::fetch::{AbortKind, AbortPolicy, ReadAhead};
use weir_policy::forwarded::ForwardedRules;
use weir_policy::route::{
    AGREED, Balancing, EjectionRules, NoRoute, NodeKey, RampMs, RouteHop, RouteId, RouteSpec,
    Routes,
};
use weir_policy::rule::RuleSet;
use weir_policy::{Now, Rules, StoredFacts, Transaction};
use weir_semantics::{DecidedBy, DeltaSeconds, Heuristic, Target, TargetedFields};
use weir_wire::{HeadLimits, Version};

/// How long past its freshness a response is served while its next hop cannot be reached, seconds
/// (RFC 9111 §4.2.4; Squid and Traffic Server allow a week, nginx nothing): a day bridges an outage
/// of a thin link without keeping last week's page alive.
const DISCONNECTED_STALE_MAX: DeltaSeconds = DeltaSeconds(24 * 3600);

/// One snapshot of the settings.
pub(crate) struct Settings {
    /// The configuration they were made from.
    pub(crate) config: Config,
    /// Rules of caching.
    pub(crate) rules: Rules,
    /// Rules of the operator.
    pub(crate) operator_rules: RuleSet,
    /// What they call the listeners.
    pub(crate) listener_names: ListenerNames,
    /// How many requests they were for.
    pub(crate) rule_counts: RuleCounts,
    /// What is called at phases of requests.
    pub(crate) hooks: Hooks,
    /// What an operator has put into the way of requests and responses.
    pub(crate) modules: Arc<LoadedModules>,
    /// The cluster that this node is a member of, if there is one. Its members change by
    /// themselves.
    pub(crate) membership: Arc<Membership>,
    /// Whether a hook or a module may be called for requests, or there are rules of the operator.
    pub(crate) is_extended: bool,
    /// Limits of the heads and trailers of requests.
    pub(crate) heads: HeadLimits,
    /// Limits of those of responses.
    pub(crate) response_heads: HeadLimits,
    /// The targeted fields that gateways read, and those that forward proxies read (RFC 9213).
    targeted: [Arc<TargetedFields>; 2],
    /// Clients that may use forward listeners.
    pub(crate) clients: ClientRules,
    /// Logins of clients of forward listeners, if these ask for one.
    pub(crate) logins: Option<Arc<Logins>>,
    /// What is said of whom a request is forwarded for, by gateways and by forward proxies.
    forwarded: [ForwardedRules; 2],
    /// How connections to next hops are opened and waited for, and the addresses that a client of a
    /// forward proxy may choose.
    pub(crate) connections: Arc<ConnectionRules>,
    /// The same for other nodes of the cluster: no request waits for one of them to be free, as
    /// others can answer it.
    pub(crate) peer_connections: Arc<ConnectionRules>,
    /// Ports for CONNECT.
    pub(crate) connect_ports: ConnectPorts,
    /// Routes of gateways and the health of their next hops; locked for a choice, never across an
    /// await.
    pub(crate) routes: Mutex<Routes>,
    /// Whether a route looks at where the requests of a connection were sent before.
    pub(crate) remembers_connections: bool,
    /// Next hops by the numbers that routes use.
    pub(crate) hops: Vec<HopKey>,
    /// Whether a next hop is told for whom a connection to it is.
    pub(crate) tells_next_hops: bool,
    /// What listeners with TLS offer.
    pub(crate) tls: TlsServers,
    /// Parents and siblings of forward proxies.
    pub(crate) hierarchy: Hierarchy,
    /// What happens to a fetch without readers.
    pub(crate) abort: AbortPolicy,
    /// The read-ahead where no route has its own.
    read_ahead: ReadAhead,
    /// The read-aheads of routes by their numbers; empty if none has its own.
    read_aheads: Vec<ReadAhead>,
    /// What each field line for Cache-Status begins with.
    pub(crate) cache_status_start: Box<[u8]>,
    /// Whole field line for Via on what we forward.
    via_lines: [String; 3],
    /// The comment in it, which distinguishes this process from another Weir of the same name.
    pub(crate) instance: String,
}

impl Settings {
    /// Compiles a valid configuration; `instance` distinguishes this process from others of the
    /// same name.
    pub(crate) fn new(config: Config, instance: &str) -> Self {
        let (routes, hops) = compile_routes(&config, RandomState::new().hash_one(0_u8));
        let access = &config.access;
        let connections = compile_connections(&config);
        let operator_rules = config::rule::compile(&config.rules, &config.listeners);
        let operator_rules = operator_rules.expect("a valid configuration");
        Self {
            is_extended: !operator_rules.is_empty(),
            cache_status_start: words::cache_status_start(config.cache.name.as_str()),
            rule_counts: RuleCounts::new(&operator_rules),
            operator_rules,
            listener_names: ListenerNames::new(&config.listeners),
            rules: compile_rules(&config),
            hooks: Hooks::default(),
            modules: Arc::default(),
            membership: Arc::default(),
            heads: HeadLimits {
                bytes_max: config.limits.head_bytes.as_usize(),
                fields_max: config.limits.head_fields_max as usize,
            },
            response_heads: HeadLimits {
                bytes_max: config.limits.head_bytes.as_usize(),
                fields_max: config.limits.response_fields_max as usize,
            },
            targeted: compile_targeted(&config.cache),
            clients: ClientRules {
                allow: nets(&access.clients),
                deny: nets(&access.deny_clients),
            },
            logins: None,
            forwarded: [Mode::Gateway, Mode::Forward].map(|mode| config.forwarded.rules(mode)),
            peer_connections: Arc::new(ConnectionRules {
                wait_limit: Duration::ZERO,
                ..connections.clone()
            }),
            connections: Arc::new(connections),
            connect_ports: ConnectPorts(
                access
                    .connect_ports
                    .iter()
                    .map(|port| *port..=*port)
                    .collect(),
            ),
            tells_next_hops: hops.iter().any(HopKey::is_for_one_request),
            remembers_connections: routes.remembers_connections(),
            routes: Mutex::new(routes),
            hops,
            tls: TlsServers::default(),
            hierarchy: Hierarchy::new(&config, RandomState::new().hash_one(0_u8)),
            abort: compile_abort(&config.fetch, config.fetch.abort),
            read_ahead: config.fetch.read_ahead.0,
            read_aheads: read_aheads_of(&config),
            via_lines: ["1.0", "1.1", "2.0"]
                .map(|version| format!("Via: {version} {} ({instance})\r\n", config.cache.name)),
            instance: instance.to_owned(),
            config,
        }
    }

    /// The same with hooks on phases.
    pub(crate) fn with_hooks(self, hooks: Hooks) -> Self {
        Self {
            is_extended: self.is_extended || !hooks.phases().is_empty(),
            hooks,
            ..self
        }
    }

    /// The same with these links to next hops; other nodes of the cluster are behind none.
    pub(crate) fn with_links(self, links: Links) -> Self {
        let connections = ConnectionRules {
            links,
            ..(*self.connections).clone()
        };
        Self {
            connections: Arc::new(connections),
            ..self
        }
    }

    /// The same with what connections to next hops by TLS are opened with.
    pub(crate) fn with_next_hop_tls(self, tls: TlsClients) -> Self {
        let connections = ConnectionRules {
            tls,
            ..(*self.connections).clone()
        };
        Self {
            connections: Arc::new(connections),
            ..self
        }
    }

    /// The same with the modules of its configuration, which were loaded.
    pub(crate) fn with_modules(self, modules: LoadedModules) -> Self {
        Self {
            is_extended: self.is_extended || !modules.is_empty(),
            modules: Arc::new(modules),
            ..self
        }
    }

    /// The same with the cluster of the process.
    pub(crate) fn with_membership(self, membership: &Arc<Membership>) -> Self {
        Self {
            membership: Arc::clone(membership),
            ..self
        }
    }

    /// The cluster as it is now, if this node is a member of one.
    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.membership.current()
    }

    /// The same with the logins of its parents and siblings, going on from `before`.
    pub(crate) fn with_logins(
        self,
        logins: Vec<Option<Login>>,
        before: Option<(Now, &Self)>,
    ) -> Self {
        let before = before.map(|(now, before)| (now, &before.hierarchy));
        Self {
            hierarchy: self.hierarchy.with_logins(logins, before),
            ..self
        }
    }

    /// The same with logins of clients.
    pub(crate) fn with_client_logins(self, logins: Option<Arc<Logins>>) -> Self {
        Self { logins, ..self }
    }

    /// The same with what `cluster.secret_file` holds: clients cannot choose targets that go to one
    /// next hop of a route.
    pub(crate) fn with_cluster_secret(self, secret: &ClusterSecret) -> Self {
        if let Some(key) = secret.route_key() {
            let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
            routes.hash_targets_under(key);
        }
        self
    }

    /// The facts of a stored response for a use now: what was stored before this node had lost
    /// touch with the log of purges must be validated, and `tx` notes that. Part of the way of
    /// every hit.
    #[inline]
    pub(crate) fn facts_now<'f>(
        &self,
        tx: &mut Transaction,
        facts: &'f StoredFacts,
    ) -> Cow<'f, StoredFacts> {
        if self
            .membership
            .valid_since
            .must_validate(facts.response_tick)
        {
            tx.found_that_may_be_purged();
            Cow::Owned(facts.to_be_validated())
        } else {
            Cow::Borrowed(facts)
        }
    }

    /// Takes over from `before` which next hops rest.
    pub(crate) fn keep_health(&self, now: Now, before: &Self) {
        let places = before
            .hops
            .iter()
            .zip(0..)
            .map(|(hop, place)| (hop, HopId(place)));
        let places: HashMap<&HopKey, HopId> = places.collect();
        let known = |hop: HopId| places.get(&self.hops[hop.0 as usize]).copied();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = before.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.keep_health(now, &before, known);
    }

    /// How the next hops of routes are, and parents and siblings.
    pub(crate) fn next_hops(&self, now: Now) -> Vec<NextHopRow> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = next_hop_tls::names_of_routes(&self.config);
        let of_routes = (0..).zip(&self.hops).filter_map(|(number, hop)| {
            let health = routes.hop_health(now, HopId(number))?;
            let mut row = next_hop_row(hop.url(), "route", health);
            row.routes = names.remove(hop).unwrap_or_default();
            Some((hop.clone(), row))
        });
        let all = of_routes.chain(self.hierarchy.next_hops(now));
        let rows = all.map(|(hop, mut row)| {
            let link = self.connections.links.of(&hop);
            if row.ejected_for_s.is_none() && link.is_some_and(|link| link.spent().is_some()) {
                "spent".clone_into(&mut row.state);
            }
            row
        });
        rows.collect()
    }

    /// The number of a next hop, if a route has it.
    pub(crate) fn hop_id(&self, key: &HopKey) -> Option<HopId> {
        let place = self.hops.iter().position(|hop| hop == key)?;
        u32::try_from(place).ok().map(HopId)
    }

    /// The next hops of the route for a target of a gateway; no policy notes that they were looked
    /// at.
    ///
    /// # Errors
    /// No route is for it.
    pub(crate) fn route_candidates(
        &self,
        now: Now,
        target: &Target<'_>,
    ) -> Result<Vec<CandidateReport>, NoRoute> {
        let path = target.path_and_query;
        let path = if path == "*" { "/" } else { path };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, candidates) = routes.candidates(now, target.host.as_str(), path)?;
        drop(routes);
        let reports = candidates.iter().map(|it| {
            let url = self.hops[it.hop.0 as usize].url();
            CandidateReport::next_hop(url, &it.node, it.costs, it.chosen)
        });
        Ok(reports.collect())
    }

    /// The next hops of the route for a target, the one that would be chosen first; none without a
    /// route. No policy notes it.
    pub(crate) fn route_hops(&self, now: Now, (host, path): (&str, &str)) -> Vec<HopKey> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = routes.candidates(now, host, path);
        drop(routes);
        let mut candidates = candidates.map_or_else(|_| Vec::new(), |(_, all)| all);
        candidates.sort_by_key(|it| it.chosen.is_none());
        let hops = candidates.iter().map(|it| &self.hops[it.hop.0 as usize]);
        hops.cloned().collect()
    }

    /// Whole field line for Via on a message that was received in `version` (RFC 9110 §7.6.3).
    pub(crate) fn via_line(&self, version: Version) -> &[u8] {
        self.via_lines[usize::from(version == Version::Http11)].as_bytes()
    }

    /// The same on a message that was received in HTTP/2.
    pub(crate) fn via_line_of_http2(&self) -> &[u8] {
        self.via_lines[2].as_bytes()
    }

    /// The name of the targeted field that decided, if one did, on a listener of either mode.
    pub(crate) fn targeted_name(&self, decided_by: DecidedBy) -> Option<&str> {
        self.targeted.iter().find_map(|list| list.name(decided_by))
    }

    /// Whether a field of this name is read in place of Cache-Control, on listeners of any mode.
    pub(crate) fn is_targeted(&self, name: &str) -> bool {
        self.targeted.iter().any(|list| list.contains(name))
    }

    /// The fields that decide in place of Cache-Control on listeners of `mode`.
    pub(crate) fn targeted(&self, mode: Mode) -> &Arc<TargetedFields> {
        &self.targeted[usize::from(mode == Mode::Forward)]
    }

    /// What is said of whom a request is forwarded for on listeners of `mode`.
    #[inline]
    pub(crate) fn forwarded(&self, mode: Mode) -> &ForwardedRules {
        &self.forwarded[usize::from(mode == Mode::Forward)]
    }

    /// Whether there are proxies whose word of that is believed.
    #[inline]
    pub(crate) fn believes_proxies(&self, mode: Mode) -> bool {
        !self.forwarded(mode).trusted.is_empty()
    }

    /// Our pseudonym.
    pub(crate) fn name(&self) -> &str {
        self.config.cache.name.as_str()
    }

    /// The same, which goes on with what was counted of rules `before`.
    pub(crate) fn continuing_rule_counts(mut self, before: &Self) -> Self {
        self.rule_counts = RuleCounts::continuing(&self.operator_rules, &before.rule_counts);
        self
    }

    /// The read-ahead of a fetch of this target: that of its route, else the general one.
    ///
    /// `path` may have a query; `*` is the whole server.
    pub(crate) fn read_ahead_for(&self, mode: Mode, host: &str, path: &str) -> ReadAhead {
        if mode == Mode::Forward || self.read_aheads.is_empty() {
            return self.read_ahead;
        }
        let path = if path == "*" { "/" } else { path };
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_ahead_of(routes.find(host, path).ok())
    }

    /// The same where the route is known; `None` for a target of a forward proxy.
    pub(crate) fn read_ahead_of(&self, route: Option<RouteId>) -> ReadAhead {
        route
            .and_then(|route| self.read_aheads.get(route.0 as usize).copied())
            .unwrap_or(self.read_ahead)
    }

    /// Whether connections to one next hop may be used with one read-ahead and then with another.
    pub(crate) fn read_aheads_differ(&self) -> bool {
        !self.read_aheads.is_empty() || self.operator_rules.may_set_read_ahead()
    }

    /// What decides by `kind` whether a fetch without readers continues, with the numbers of the
    /// configuration.
    pub(crate) fn abort_by(&self, kind: AbortKind) -> AbortPolicy {
        compile_abort(&self.config.fetch, kind)
    }

    /// Whether `client` may use a listener of `mode`. Gateways are for everybody.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub(crate) fn check_client(&self, mode: Mode, client: IpAddr) -> Result<(), ClientDenial> {
        match mode {
            Mode::Gateway => Ok(()),
            Mode::Forward => self.clients.check(client),
        }
    }
}

fn compile_connections(config: &Config) -> ConnectionRules {
    let (limits, access) = (&config.limits, &config.access);
    ConnectionRules {
        connect_limit: limits.connect.as_duration(),
        wait_limit: limits.next_hop_wait.as_duration(),
        open: OpenRules {
            per_hop_max: limits.connections_per_next_hop_max as usize,
            total_max: limits.next_hop_connections_max as usize,
            when_busy: limits.next_hop_busy.rule(),
        },
        connections_ahead: limits.connections_ahead as usize,
        used_within: limits.next_hop_idle.as_duration(),
        destinations: DestinationRules {
            allow: nets(&access.allow_destinations),
            deny: nets(&access.deny_destinations),
            deny_default: DenyDefault::Special,
        },
        denied_hint: "--allow-destination or access.allow_destinations opens more",
        links: Links::default(),
        tls: TlsClients::default(),
    }
}

fn compile_rules(config: &Config) -> Rules {
    Rules {
        profile: config.cache.profile,
        heuristic: Heuristic {
            fraction_percent: config.cache.heuristic_fraction_percent,
            max: DeltaSeconds::from_secs(config.cache.heuristic_max.as_secs()),
            assigned: None,
        },
        disconnected_stale_max: DISCONNECTED_STALE_MAX,
        set_cookie: config.cache.set_cookie,
        reuse: weir_policy::rule::Reuse::NONE,
    }
}

/// The list of gateways, then that of forward proxies. They are numbered through, so that a number
/// has one name.
fn compile_targeted(cache: &config::Cache) -> [Arc<TargetedFields>; 2] {
    let list = |names: &[config::FieldName], first: usize| {
        let names = names.iter().map(config::FieldName::as_str);
        Arc::new(TargetedFields::new(names).numbered_from(first))
    };
    let gateway = &cache.gateway_targeted_fields;
    [
        list(gateway, 0),
        list(&cache.forward_targeted_fields, gateway.len()),
    ]
}

impl From<&NextHopUrl> for HopKey {
    fn from(url: &NextHopUrl) -> Self {
        let key = Self::new(url.host.as_str(), url.port);
        match url.tls {
            false => key,
            true => key.over_tls(Trust::System),
        }
    }
}

fn compile_routes(config: &Config, seed: u64) -> (Routes, Vec<HopKey>) {
    let mut hops: Vec<HopKey> = Vec::new();
    let mut numbers: HashMap<HopKey, HopId> = HashMap::new();
    let mut specs = Vec::new();
    for route in &config.routes {
        let of_route = route.next_hops.iter().zip(balancing::weights(route));
        let of_route = of_route.map(|(url, weight)| RouteHop {
            hop: *numbers
                .entry(next_hop_tls::hop_key(route, url))
                .or_insert_with_key(|key| {
                    hops.push(key.clone());
                    HopId(u32::try_from(hops.len() - 1).unwrap_or(u32::MAX))
                }),
            key: NodeKey::of(&AGREED, &node_name(url)),
            weight,
        });
        let of_route = of_route.collect();
        specs.push(RouteSpec {
            host: route.host.as_ref().map(config::HostPattern::pattern),
            path_prefix: route.path.as_str().to_owned(),
            hops: of_route,
            balancing: Balancing {
                ramp: RampMs(route.ramp.as_millis()),
                ..route.constants().balancing(route.policy)
            },
            choice_for: route.choice_for,
        });
    }
    // validated before: what the configuration accepts the table accepts
    let routes = Routes::new(specs, EjectionRules::default(), seed)
        .expect("a validated configuration has valid routes");
    (routes, hops)
}

/// The name of a next hop among those of its route: which targets it has follows from it.
fn node_name(url: &NextHopUrl) -> String {
    match url.tls {
        false => format!("{}:{}", url.host, url.port),
        true => format!("https://{}:{}", url.host, url.port),
    }
}

fn read_aheads_of(config: &Config) -> Vec<ReadAhead> {
    if config.routes.iter().all(|route| route.read_ahead.is_none()) {
        return Vec::new();
    }
    let read_ahead = |route: &config::Route| route.read_ahead.unwrap_or(config.fetch.read_ahead).0;
    config.routes.iter().map(read_ahead).collect()
}

fn compile_abort(fetch: &config::Fetch, kind: AbortKind) -> AbortPolicy {
    match kind {
        AbortKind::Stop => AbortPolicy::Stop,
        AbortKind::Finish => AbortPolicy::Finish,
        AbortKind::Squid => AbortPolicy::Squid {
            min_bytes: fetch.squid_min.bytes(),
            max_bytes: fetch.squid_max.bytes(),
            pct: fetch.squid_pct,
        },
        AbortKind::Value => AbortPolicy::Value {
            little_bytes: fetch.abort_little.bytes(),
        },
    }
}

fn nets(cidrs: &[Cidr]) -> Vec<ipnet::IpNet> {
    cidrs.iter().map(Cidr::net).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_the_read_ahead_limit_of_its_route() {
        let route = |path: &str, read_ahead: Option<&str>| config::Route {
            path: path.parse().unwrap(),
            next_hops: vec!["http://a".parse().unwrap()],
            read_ahead: read_ahead.map(|text| text.parse().unwrap()),
            ..config::Route::default()
        };
        let mut config = Config {
            routes: vec![
                route("/", None),
                route("/near", Some("unbounded")),
                route("/thin", Some("16KiB")),
            ],
            ..Config::default()
        };
        config.fetch.read_ahead = "1MiB".parse().unwrap();
        let settings = Settings::new(config.clone(), "x");
        let of = |mode, path| settings.read_ahead_for(mode, "b.example", path);
        let all = ReadAhead::Bytes(1 << 20);
        assert_eq!(of(Mode::Gateway, "/near/a?b"), ReadAhead::Unbounded);
        assert_eq!(of(Mode::Gateway, "/thin"), ReadAhead::Bytes(16 << 10));
        assert_eq!(of(Mode::Gateway, "/thinner"), all);
        assert_eq!(of(Mode::Gateway, "*"), all);
        assert_eq!(of(Mode::Forward, "/near"), all);
        assert_eq!(settings.read_ahead_of(None), all);
        config.routes.truncate(1);
        let settings = Settings::new(config, "x");
        assert_eq!(settings.read_ahead_of(Some(RouteId(0))), all);
    }

    #[test]
    fn default_settings_equal_the_policy_defaults() {
        let settings = Settings::new(Config::default(), "x");
        assert_eq!(settings.abort, AbortPolicy::default());
        assert_eq!(settings.read_ahead_of(None), ReadAhead::default());
        let mut config = Config::default();
        config.fetch.abort = AbortKind::Squid;
        assert_eq!(Settings::new(config, "x").abort, AbortPolicy::SQUID);
    }
}
