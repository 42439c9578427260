//! All rules of a configuration, compiled: which of them are for a request is found in a number of
//! steps that depends little on how many there are.
//!
//! Each matcher has a table of the rules that it lets through, and the tables are intersected. Only
//! of rules that are left, and that have paths, a path is compared.

mod deciding;
mod rule_error;

pub use deciding::StoringBy;
pub use rule_error::RuleError;

use super::bits::Bits;
use super::client_rates::ByteRate;
use super::clients::ClientTable;
use super::fields::FieldRules;
use super::host_table::{HostTable, NameTable};
use super::key::KeyRule;
use super::matchers::{ListenerPattern, Matchers, StatusPattern};
use super::reuse::{Reuse, most_for};
use super::spec::{Action, Denial, RuleLifetime, RuleRate, RuleSpec};
use crate::fetch::{AbortKind, ReadAhead};
use crate::route::HostPattern;
use crate::stored::ignored::{RequestIgnored, StoringIgnored};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_extend::ListenerMode;
use weir_semantics::{DeltaSeconds, FieldNames, HostName, Method};

/// The rules of a configuration.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<RuleSpec>,
    /// Rules that name a listener, by its name.
    listeners: Vec<(Box<str>, Bits)>,
    /// Rules for all listeners of a mode.
    modes: [Bits; 2],
    methods: [Bits; METHODS],
    clients: ClientTable,
    host_any: Bits,
    hosts: HostTable,
    /// Rules without paths.
    path_any: Bits,
    /// Rules with a path of which no first segment is known.
    path_open: Bits,
    path_first: NameTable,
    /// Rules that say something of the response.
    of_response: Bits,
    /// Rules that decide what is stored, and how long it is used.
    of_storing: Bits,
    /// Those that decide how responses are fetched.
    of_fetch: Bits,
    /// Rules that change the cache key.
    of_key: Bits,
}

/// Whence a request comes, beside its target.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The name of the listener, its address if it has none; `None` of a request that came to
    /// none.
    pub listener: Option<&'a str>,
    /// How the listener takes requests.
    pub mode: ListenerMode,
    /// The method.
    pub method: Method,
    /// The client; `None` of a request without one: no rule with networks is for it.
    pub client: Option<IpAddr>,
}

/// What the rules for a request do, before there is a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome<'r> {
    /// It is denied with this text.
    pub deny: Option<&'r str>,
    /// It is sent past the cache.
    pub bypass: bool,
    /// Directives that are ignored.
    pub ignored: RequestIgnored,
    key: Option<&'r KeyRule>,
    /// Changes of its head.
    pub request: Option<&'r FieldRules>,
}

impl<'r> Outcome<'r> {
    /// What of the target and preferences of a request with this method is in the cache key, if it
    /// is changed. What is stored answers GET and HEAD alone: the targets of other requests are for
    /// the next hop.
    #[must_use]
    pub fn key(&self, method: Method) -> Option<&'r KeyRule> {
        let is_answered_by_store = matches!(method, Method::Get | Method::Head);
        self.key.filter(|_| is_answered_by_store)
    }
}

/// What rules say of how a response is fetched, beside the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchingRules {
    /// How far a fetch may run ahead of its fastest reader.
    pub read_ahead: Option<ReadAhead>,
    /// What decides whether it continues without readers.
    pub abort: Option<AbortKind>,
}

/// What rules say of storing a response and using it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoringRules {
    /// Its freshness lifetime, if it does not give one.
    pub default: Option<DeltaSeconds>,
    /// How it is used, whatever it says.
    pub reuse: Reuse,
}

const METHODS: usize = Method::Other as usize + 1;

impl RuleSet {
    /// Why `rules` cannot be compiled: what is wrong with all together, and the first mistake of
    /// each; none where they can.
    pub fn errors(rules: &[RuleSpec]) -> impl Iterator<Item = RuleError> {
        rule_error::errors(rules)
    }

    /// Compiles `rules`.
    ///
    /// # Errors
    ///
    /// The first that means nothing, or would let one user see what is for another.
    pub fn new(mut rules: Vec<RuleSpec>) -> Result<Self, RuleError> {
        if let Some(error) = rule_error::errors(&rules).next() {
            return Err(error);
        }
        for rule in &mut rules {
            rule.matchers.host.iter_mut().for_each(canonicalise);
        }
        let mut set = Self {
            listeners: Vec::new(),
            modes: [ListenerMode::Forward, ListenerMode::Gateway].map(|mode| {
                let wanted = ListenerPattern::Mode(mode);
                select(&rules, |it| {
                    it.listener.is_empty() || it.listener.contains(&wanted)
                })
            }),
            methods: [Bits::NONE; METHODS],
            clients: ClientTable::new(rules.iter().map(|rule| &rule.matchers)),
            host_any: select(&rules, |it| it.host.is_empty()),
            hosts: HostTable::default(),
            path_any: select(&rules, |it| it.path.is_empty()),
            path_open: Bits::NONE,
            path_first: NameTable::default(),
            of_response: select(&rules, Matchers::is_of_response),
            of_storing: select_acting(&rules, Action::is_of_storing),
            of_fetch: select_acting(&rules, Action::is_of_fetch),
            of_key: select_acting(&rules, |action| action == Action::Key),
            rules: Vec::new(),
        };
        for (index, rule) in rules.iter().enumerate() {
            set.insert(index, &rule.matchers);
        }
        set.rules = rules;
        Ok(set)
    }

    fn insert(&mut self, index: usize, matchers: &Matchers) {
        for (method, bits) in self.methods.iter_mut().enumerate() {
            let is_named = matchers.method.iter().any(|it| *it as usize == method);
            if matchers.method.is_empty() || is_named {
                bits.insert(index);
            }
        }
        for host in &matchers.host {
            self.hosts.insert(host, index);
        }
        for path in &matchers.path {
            match path.first_segment() {
                Some(segment) => self.path_first.insert(segment, index),
                None => self.path_open.insert(index),
            }
        }
        for pattern in &matchers.listener {
            let ListenerPattern::Named(name) = pattern else {
                continue;
            };
            match self.listeners.iter_mut().find(|known| known.0 == *name) {
                Some((_, bits)) => bits.insert(index),
                None => {
                    let bits = [index].into_iter().collect();
                    self.listeners.push((name.clone(), bits));
                }
            }
        }
    }

    /// Whether there is no rule.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[RuleSpec] {
        &self.rules
    }

    /// All rules for a target, from any place: those of [`Self::matched`] are among them, and
    /// are left of them by [`Self::applicable`].
    #[must_use]
    pub fn for_target(&self, host: &[u8], path: &str) -> Bits {
        let all = (0..self.rules.len()).collect();
        self.matched(all, host, path)
    }

    /// The rules for a request from `place`, whatever its target.
    #[must_use]
    #[inline]
    pub fn applicable(&self, place: &Place<'_>) -> Bits {
        let mut listener = self.modes[place.mode as usize];
        if let Some(name) = place.listener {
            let named = self.listeners.iter().filter(|known| *known.0 == *name);
            named.for_each(|(_, bits)| listener |= *bits);
        }
        let client = match place.client {
            Some(address) => self.clients.find(address),
            None => self.clients.any(),
        };
        listener & client & self.methods[place.method as usize]
    }

    /// Those of `applicable` that are for a target: `host` is canonical and has no port, `path` may
    /// have a query. What does not begin with a slash is no path.
    ///
    /// Rules that say something of the response are among them.
    #[must_use]
    pub fn matched(&self, applicable: Bits, host: &[u8], path: &str) -> Bits {
        let host = host.strip_suffix(b".").unwrap_or(host);
        let mapped = mapped_address(host).map(|address| address.to_string());
        let host = mapped.as_ref().map_or(host, |address| address.as_bytes());
        let of_host = applicable & (self.host_any | self.hosts.find(host));
        let matched = of_host & self.path_any;
        let end = path.bytes().position(|byte| byte == b'?');
        let path = &path[..end.unwrap_or(path.len())];
        let Some(behind) = path.strip_prefix('/') else {
            return matched;
        };
        let end = behind.bytes().position(|byte| byte == b'/');
        let segment = &behind.as_bytes()[..end.unwrap_or(behind.len())];
        let candidates = of_host & (self.path_open | self.path_first.find(segment));
        if candidates.is_empty() {
            return matched;
        }
        let fits = |rule: &usize| {
            let mut paths = self.rules[*rule].matchers.path.iter();
            paths.any(|pattern| pattern.matches(path))
        };
        candidates.iter().filter(fits).collect::<Bits>() | matched
    }

    /// Those of `matched` that are for a response, too.
    #[must_use]
    pub fn with_response(&self, matched: Bits, status: u16, content_type: &[u8]) -> Bits {
        let mut rest = matched;
        for rule in (matched & self.of_response).iter() {
            let matchers = &self.rules[rule].matchers;
            let (statuses, types) = (&matchers.status, &matchers.content_type);
            let has_status = statuses.is_empty() || statuses.iter().any(|it| it.matches(status));
            let has_type = types.is_empty() || types.iter().any(|it| it.matches(content_type));
            if !has_status || !has_type {
                rest.remove(rule);
            }
        }
        rest
    }

    /// What the `matched` rules do before there is a response.
    #[must_use]
    pub fn outcome(&self, matched: Bits) -> Outcome<'_> {
        let rules = || matched.iter().map(|rule| &self.rules[rule]);
        let actions = || rules().map(|rule| &rule.actions);
        let deny = actions().find_map(|it| it.deny.as_ref());
        let changing = rules().find(|rule| rule.actions.request.is_some());
        // an earlier rule that says `bypass = false` must not have its response stored
        let is_for_some = changing.is_some_and(|rule| rule.matchers.of_client().is_some());
        Outcome {
            deny: match deny {
                Some(Denial::Text(text)) => Some(text),
                Some(Denial::Off) | None => None,
            },
            bypass: is_for_some || actions().find_map(|it| it.bypass).unwrap_or(false),
            ignored: actions().find_map(|it| it.ignore).unwrap_or_default(),
            key: first_key(rules()),
            request: changing
                .and_then(|rule| rule.actions.request.as_ref())
                .filter(|rules| !rules.is_empty()),
        }
    }

    /// Whether a rule may say how long responses are used.
    #[must_use]
    pub fn may_decide_storing(&self) -> bool {
        !self.of_storing.is_empty()
    }

    /// What rules say of storing and using a response to a request for this target. That depends on
    /// no client, so it holds for requests without one. `host` and `path` as of
    /// [`RuleSet::matched`].
    #[must_use]
    pub fn storing(
        &self,
        mode: ListenerMode,
        (host, path): (&[u8], &str),
        status: u16,
        content_type: &[u8],
    ) -> StoringRules {
        if self.of_storing.is_empty() {
            return StoringRules::default();
        }
        let by = self.storing_by(mode, (host, path), status, content_type);
        let actions = |rule: usize| &self.rules[rule].actions;
        let (default, forced) = match by.lifetime.and_then(|rule| actions(rule).lifetime) {
            Some(RuleLifetime::Default(seconds)) => (Some(seconds), None),
            Some(RuleLifetime::Forced(seconds)) => (None, Some(seconds)),
            None => (None, None),
        };
        let default = default.map(|seconds| most_for(status, seconds));
        let names_status = |rule: usize| !self.rules[rule].matchers.status.is_empty();
        let is_given = default.or(forced).is_some()
            && by.lifetime.is_some_and(names_status)
            && StatusPattern::may_have_lifetime(status);
        let given = match is_given {
            true => StoringIgnored::LIFETIME_GIVEN,
            false => StoringIgnored::NONE,
        };
        let ignored = by.ignored.and_then(|rule| actions(rule).ignore_storing);
        StoringRules {
            default,
            reuse: Reuse {
                forced,
                stale_for: by.stale_for.and_then(|rule| actions(rule).stale_for),
                ignored: ignored.unwrap_or_default().and(given),
            },
        }
    }

    /// What of a target is in its cache key, if a rule says so. `host` and `path` as of
    /// [`RuleSet::matched`].
    #[must_use]
    pub fn key(&self, mode: ListenerMode, host: &[u8], path: &str) -> Option<&KeyRule> {
        if self.of_key.is_empty() {
            return None;
        }
        let of_mode = self.modes[mode as usize] & self.of_key;
        let matched = self.matched(of_mode, host, path);
        first_key(matched.iter().map(|rule| &self.rules[rule]))
    }

    /// Whether one of the `matched` rules may change a response.
    #[must_use]
    pub fn may_change_response(&self, matched: Bits) -> bool {
        let mut matched = matched.iter();
        matched.any(|rule| self.rules[rule].actions.response.is_some())
    }

    /// Whether a rule may say how far fetches run ahead.
    #[must_use]
    pub fn may_set_read_ahead(&self) -> bool {
        let mut of_fetch = self.of_fetch.iter();
        of_fetch.any(|rule| self.rules[rule].actions.read_ahead.is_some())
    }

    /// What rules say of fetching a response from this target. That depends on no client. `host`
    /// and `path` as of [`RuleSet::matched`].
    #[must_use]
    pub fn fetching(&self, mode: ListenerMode, (host, path): (&[u8], &str)) -> FetchingRules {
        if self.of_fetch.is_empty() {
            return FetchingRules::default();
        }
        let of_mode = self.modes[mode as usize] & self.of_fetch;
        let matched = self.matched(of_mode, host, path);
        let actions = || matched.iter().map(|rule| &self.rules[rule].actions);
        FetchingRules {
            read_ahead: actions().find_map(|it| it.read_ahead),
            abort: actions().find_map(|it| it.abort),
        }
    }

    /// Whether one of the `matched` rules may limit how fast a response is sent.
    #[must_use]
    pub fn may_limit_rate(&self, matched: Bits) -> bool {
        let mut matched = matched.iter();
        matched.any(|rule| self.rules[rule].actions.rate.is_some())
    }

    /// How fast the client of a response is sent it by the `matched` rules, and the rule that says
    /// so.
    #[must_use]
    pub fn rate(
        &self,
        matched: Bits,
        status: u16,
        content_type: &[u8],
    ) -> Option<(usize, ByteRate)> {
        let matched = self.with_response(matched, status, content_type);
        let mut rates = matched.iter();
        rates.find_map(|rule| match self.rules[rule].actions.rate? {
            RuleRate::Limited(rate) => Some(Some((rule, rate))),
            RuleRate::Off => Some(None),
        })?
    }

    /// The fields that the `matched` rules replace or remove in responses for their client: nothing
    /// of them is to come in front of the head or behind the content, either. Of rules for some
    /// statuses or types alone, too: which those are is not known in front of the head.
    #[must_use]
    pub fn left_out(&self, matched: Bits) -> FieldNames {
        let mut deciding = matched.iter().map(|rule| &self.rules[rule]);
        let mut names = Vec::new();
        // the first without such matchers decides, if none before it does
        let _decided = deciding.find(|rule| {
            let changes = rule.actions.response.as_ref();
            names.extend(changes.into_iter().flat_map(FieldRules::replaced));
            changes.is_some() && !rule.matchers.is_of_response()
        });
        names.into_iter().collect()
    }

    /// How the `matched` rules change a response for its client.
    #[must_use]
    pub fn response(&self, matched: Bits, status: u16, content_type: &[u8]) -> Option<&FieldRules> {
        let matched = self.with_response(matched, status, content_type);
        let mut actions = matched.iter().map(|rule| &self.rules[rule].actions);
        let response = actions.find_map(|it| it.response.as_ref());
        response.filter(|rules| !rules.is_empty())
    }
}

/// The first that says what is in the key; `None` if that changes nothing.
fn first_key<'r>(mut rules: impl Iterator<Item = &'r RuleSpec>) -> Option<&'r KeyRule> {
    let key = rules.find_map(|rule| rule.actions.key.as_ref());
    key.filter(|key| !key.is_none())
}

/// The rules that have one of these actions.
fn select_acting(rules: &[RuleSpec], is_one: impl Fn(Action) -> bool) -> Bits {
    let rules = rules.iter().enumerate();
    let acts = |rule: &RuleSpec| rule.actions.iter().any(&is_one);
    let selected = rules.filter(|(_, rule)| acts(rule));
    selected.map(|(index, _)| index).collect()
}

fn select(rules: &[RuleSpec], is_for: impl Fn(&Matchers) -> bool) -> Bits {
    let rules = rules.iter().enumerate();
    let selected = rules.filter(|(_, rule)| is_for(&rule.matchers));
    selected.map(|(index, _)| index).collect()
}

/// The IPv4 address that an address of IPv6 stands for (RFC 4291 §2.5.5.2): a connection to the one
/// is a connection to the other.
fn mapped_address(host: &[u8]) -> Option<Ipv4Addr> {
    let inner = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let address: Ipv6Addr = core::str::from_utf8(inner).ok()?.parse().ok()?;
    address.to_ipv4_mapped()
}

/// An address in the spelling that targets are matched in.
fn canonicalise(pattern: &mut HostPattern) {
    if let HostPattern::Exact(host) = pattern {
        let bracketed = format!("[{host}]");
        let parsed = HostName::parse(host).or_else(|_| HostName::parse(&bracketed));
        if let Ok(name) = parsed {
            let mapped = mapped_address(name.as_str().as_bytes());
            *host = match mapped {
                Some(address) => address.to_string(),
                None => name.as_str().into(),
            };
        }
    }
}

#[cfg(test)]
mod tests;
