//! Rules of the operator: what is done with requests and responses beside what HTTP says.

mod key;
mod values;

pub use key::RuleKey;
pub use values::{
    ClientRate, CodingText, FieldChange, LanguageText, QueryNameText, RuleListener, RuleMethod,
    RulePath, RuleStatus, RuleType, Sharing,
};

use crate::config::access::Access;
use crate::config::listener::Listener;
use crate::config::route::HostPattern;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::cidr::Cidr;
use crate::config::values::name::Names;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use weir_policy::destination::ClientRules;
use weir_policy::fetch::AbortKind;
use weir_policy::rule::{
    Actions, ByteRate, Denial, FieldRules, FieldRulesError, IgnoredDirective, Matchers, Message,
    Preset, RuleLifetime as Lifetime, RuleRate, RuleSet, RuleSpec, Surroundings, WarningKind,
};
use weir_semantics::DeltaSeconds;

/// One `[[rule]]` table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The line of the configuration file in which it begins, from 1; absent if it is of none.
    #[serde(skip)]
    pub line: Option<u32>,
    /// What messages call it; absent for `rule-N`, by its place from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rules that come with Weir, in the place of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Listeners whose requests it is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listener: Vec<RuleListener>,
    /// Hosts of targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostPattern>,
    /// Paths of targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<RulePath>,
    /// Methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<RuleMethod>,
    /// Networks of clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<Cidr>,
    /// Statuses of responses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<RuleStatus>,
    /// Media types of responses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_type: Vec<RuleType>,
    /// Why requests are denied; `"off"` if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// Whether requests bypass the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass: Option<bool>,
    /// Directives that are ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<Vec<IgnoredDirective>>,
    /// Whether users may get by that what is for another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Sharing>,
    /// How long responses are fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<RuleLifetime>,
    /// How long past that they may be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_for: Option<Span>,
    /// What is in the cache key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<RuleKey>,
    /// Changes of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Vec<FieldChange>>,
    /// Changes of responses for their clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Vec<FieldChange>>,
    /// How fast clients are sent responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<ClientRate>,
    /// How far fetches run ahead of their fastest reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAhead>,
    /// What decides whether a fetch without readers continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<AbortKind>,
}

/// How long responses are fresh: one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleLifetime {
    /// Those that do not give a lifetime themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Span>,
    /// All that are stored, whatever they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced: Option<Span>,
}

impl RuleLifetime {
    fn check(self, key: &str) -> Result<(), Invalid> {
        let given = [("default", self.default), ("forced", self.forced)];
        for (name, span) in given {
            if let Some(span) = span {
                check_range(
                    &format!("{key}.{name}"),
                    &span,
                    &LIFETIMES[0],
                    &LIFETIMES[1],
                )?;
            }
        }
        if self.default.is_some() == self.forced.is_some() {
            return Err(Invalid::new(
                key,
                "it is one of `default` and `forced`",
                "write { default = \"1d\" } for responses without a lifetime, { forced = \"1d\" } for all",
            ));
        }
        Ok(())
    }

    fn lifetime(self) -> Option<Lifetime> {
        let forced = self.forced.map(|span| Lifetime::Forced(seconds(span)));
        forced.or(self.default.map(|span| Lifetime::Default(seconds(span))))
    }
}

impl ClientRate {
    fn check(self, key: &str) -> Result<(), Invalid> {
        self.0.map_or(Ok(()), |rate| rate.check(key))
    }

    fn rate(self) -> RuleRate {
        let rate = self.0.and_then(|rate| ByteRate::new(rate.bytes_s()));
        rate.map_or(RuleRate::Off, RuleRate::Limited)
    }
}

fn seconds(span: Span) -> DeltaSeconds {
    DeltaSeconds::from_secs(span.as_secs())
}

/// No lifetime, and ten years: no response is used for longer.
const LIFETIMES: [Span; 2] = [Span::ZERO, Span::from_days(3650)];

impl Rule {
    pub(super) fn settings() -> Vec<Setting> {
        let mut settings = Self::matcher_settings();
        settings.extend(Self::action_settings());
        settings.extend(Self::fetch_settings());
        settings.extend(RuleKey::settings());
        settings
    }

    /// What rules are for.
    fn matcher_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "rule[].name",
                &[
                    "What messages call the rule; without it, `rule-1` for the first, and so on. Of the rules that are for a request,",
                    "the first that has an action decides that action; docs/rules.md explains it.",
                ],
            ),
            Setting::new::<Preset>(
                "rule[].preset",
                &[
                    "Rules that come with Weir, in the place of this one: `packages` gives lifetimes to files of mirrors for apt, pip, npm and",
                    "cargo, and has lists of packages validated; docs/rules.md lists them. Beside it there can be `name`, `listener` and `host`;",
                    "`host` must name the mirrors, as other sites have pages for one user at such paths.",
                ],
            ),
            Setting::new::<Vec<RuleListener>>(
                "rule[].listener",
                &[
                    "Listeners whose requests the rule is for: all of a mode, or the one with this address. Without it, all.",
                    "Of the values of one matcher one must fit, and all matchers of a rule must.",
                ],
            ),
            Setting::new::<Vec<HostPattern>>(
                "rule[].host",
                &[
                    "Hosts of targets: names, addresses, or `*.` and a name for all names below it. Without it, any.",
                ],
            ),
            Setting::new::<Vec<RulePath>>(
                "rule[].path",
                &[
                    "Paths of targets, without query: prefixes in whole segments, or globs for the whole path, in which `*` stands for any",
                    "bytes within a segment, `**` for any bytes, and `/**/` for a slash or any number of segments. Paths are compared as they",
                    "were received: a server may read `/%61` as `/a`, so this does not keep anything out. The target of a CONNECT has none.",
                ],
            ),
            Setting::new::<Vec<RuleMethod>>(
                "rule[].method",
                &["Methods of requests. Without it, any."],
            ),
            Setting::new::<Vec<Cidr>>(
                "rule[].client",
                &[
                    "Networks of clients. Without it, any; requests without a client, such as validations in the background, are for none.",
                ],
            ),
            Setting::new::<Vec<RuleStatus>>(
                "rule[].status",
                &[
                    "Statuses of responses: for `response` as they are sent to the client, for the others as they are stored. Only",
                    "`response`, `lifetime`, `stale_for` and `ignore` of responses can depend on them.",
                ],
            ),
            Setting::new::<Vec<RuleType>>(
                "rule[].content_type",
                &[
                    "Media types of responses, without parameters. For the same actions as `status`.",
                ],
            ),
        ]
    }

    /// What rules do.
    fn action_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "rule[].deny",
                &[
                    "Requests are answered with 403 and this text, and neither looked up nor forwarded; `\"off\"`: they are not, whatever",
                    "a later rule says.",
                ],
            ),
            Setting::new::<bool>(
                "rule[].bypass",
                &[
                    "Whether requests bypass the cache: nothing is looked up or stored for them. What is stored stays.",
                ],
            ),
            Setting::new::<Vec<IgnoredDirective>>(
                "rule[].ignore",
                &[
                    "Directives that are ignored: those of requests when a stored response is chosen, the next hop gets them as they came; those of",
                    "responses, and `request authorization`, when a response is stored. Clients get responses as they came. Each request that is",
                    "answered because of that is counted, and has `detail=rule` in Cache-Status. What was stored because of a rule is used as long",
                    "as there is such a rule. An empty list is an exception.",
                ],
            ),
            Setting::new::<Sharing>(
                "rule[].share",
                &[
                    "Written out where `ignore` has responses shared that may be for one user: by `request authorization`, `response private`,",
                    "`response no-store` or `response set-cookie`. They are stored, and any client gets them. It is for paths of which you know",
                    "that nothing there is for one user. What sets a cookie in answer to a cookie or to credentials is never stored by it.",
                ],
            ),
            Setting::new::<Span>(
                "rule[].lifetime.default",
                &[
                    "How long a response is fresh that has neither max-age, s-maxage nor Expires, in place of the guess by Last-Modified, as",
                    "RFC 9111 section 4.2.2 permits. Without `status`, only statuses below 400; 404 and 410 if `status` names them. What forbids",
                    "to store a response stays in force. A rule with it cannot depend on client, method or one listener: what is stored is for all.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Span>(
                "rule[].lifetime.forced",
                &[
                    "How long a stored response is fresh, whatever it says itself; in the place of `default`. It has nothing stored that HTTP",
                    "forbids to store, and `no-cache` still has a response validated each time. Errors beside 404 and 410 are fresh for 1 min at",
                    "most. Each request that is answered because of it is counted, and has `detail=rule` in Cache-Status.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Span>(
                "rule[].stale_for",
                &[
                    "How long past its freshness a response may be served: while it is validated in the background, if the next hop fails, and",
                    "if it cannot be reached, in the place of the day that is usual then. Not what says no-cache, must-revalidate,",
                    "proxy-revalidate or s-maxage; a response that permits more is used longer. Counted as `rule[].lifetime.forced` is.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Vec<FieldChange>>(
                "rule[].request",
                &[
                    "Changes of requests, before anything is decided by their fields: `set NAME: VALUE`, `add NAME: VALUE`, `remove NAME`,",
                    "with `{client}`, `{host}` and `{path}` in values. Fields that HTTP decides by cannot be changed. A rule that depends on",
                    "client, listener or method needs `bypass = true`: the response to the changed request must not be stored for others.",
                    "An empty list is an exception from later rules.",
                ],
            ),
            Setting::new::<Vec<FieldChange>>(
                "rule[].response",
                &[
                    "The same for responses when they are sent to their client, from the cache or not: they are stored unchanged.",
                    "Validators, lengths, Date, Vary and content codings cannot be changed; `add Cache-Control:` can add private, no-store, no-cache",
                    "and no-transform.",
                ],
            ),
        ]
    }

    /// How fast responses are sent, and how they are fetched.
    fn fetch_settings() -> Vec<Setting> {
        vec![
            Setting::new::<ClientRate>(
                "rule[].rate",
                &[
                    "How much content each client is sent in a second, over all its responses under this rule, from the cache or not, as",
                    "in \"500KiB/s\"; a quarter of a second's worth at once. Clients with an address of IPv6 are networks of 64 bits. Other",
                    "clients and rules wait for nothing, and a fetch runs ahead of its fastest reader no further than ever. Tunnels are not",
                    "limited. Of more than 4096 clients at once some get more. \"off\" is an exception from later rules.",
                ],
            ),
            Setting::new::<ReadAhead>(
                "rule[].read_ahead",
                &[
                    "How far a fetch of these targets may run ahead of its fastest reader, in place of fetch.read_ahead and of that of a route.",
                    "A rule with it cannot depend on client, method, one listener or the response: a fetch may have readers of any client.",
                ],
            )
            .within(&ReadAhead::MIN, &ReadAhead::MAX),
            Setting::new::<AbortKind>(
                "rule[].abort",
                &[
                    "What decides whether a fetch of these targets continues when its last reader disconnects, in place of fetch.abort; the",
                    "numbers are those of [fetch]. It cannot depend on what rule[].read_ahead cannot depend on.",
                ],
            ),
        ]
    }

    fn spec(&self, index: usize) -> Result<RuleSpec, Invalid> {
        let fields = |key: &str, message: Message, changes: &Option<Vec<FieldChange>>| {
            let Some(changes) = changes else {
                return Ok(None);
            };
            let rules = changes.iter().map(|change| change.0.clone());
            FieldRules::new(message, rules)
                .map(Some)
                .map_err(|(at, error)| {
                    let hint = match error {
                        FieldRulesError::TooMany => "make several rules of it",
                        _ => "remove it; docs/rules.md lists what rules can change",
                    };
                    Invalid::new(
                        format!("rule[{index}].{key}[{at}]"),
                        error.to_string(),
                        hint,
                    )
                })
        };
        let matchers = Matchers {
            listener: self.listener.iter().map(|it| it.pattern()).collect(),
            host: self.host.iter().map(HostPattern::pattern).collect(),
            path: self.path.iter().map(|it| it.0.clone()).collect(),
            method: self.method.iter().map(|it| it.method()).collect(),
            client: self.client.iter().map(Cidr::net).collect(),
            status: self.status.iter().map(|it| it.0.clone()).collect(),
            content_type: self.content_type.iter().map(|it| it.0.clone()).collect(),
        };
        Ok(RuleSpec {
            name: self.name_at(index).into(),
            actions: Actions {
                deny: self.deny.as_ref().map(|text| match &**text {
                    "off" => Denial::Off,
                    text => Denial::Text(text.into()),
                }),
                bypass: self.bypass,
                ignore: self.ignored(|it| !it.is_of_storing(), !matchers.is_of_response()),
                ignore_storing: self.ignored(
                    IgnoredDirective::is_of_storing,
                    matchers.of_client().is_none(),
                ),
                shares: self.share.is_some(),
                lifetime: self.lifetime.and_then(RuleLifetime::lifetime),
                stale_for: self.stale_for.map(seconds),
                key: self.key.as_ref().map(RuleKey::rule),
                request: fields("request", Message::Request, &self.request)?,
                response: fields("response", Message::Response, &self.response)?,
                rate: self.rate.map(ClientRate::rate),
                read_ahead: self.read_ahead.map(|read_ahead| read_ahead.0),
                abort: self.abort,
            },
            matchers,
        })
    }

    /// The directives that are ignored of one kind; without one of them, that is not said. An empty
    /// list is an exception of this kind if it `may_be`.
    fn ignored<T: FromIterator<IgnoredDirective>>(
        &self,
        is_of_kind: impl Fn(IgnoredDirective) -> bool,
        may_be: bool,
    ) -> Option<T> {
        let all = self.ignore.as_ref()?.iter().copied();
        let mut of_kind = all.filter(|directive| is_of_kind(*directive)).peekable();
        let is_exception = self.ignore.as_ref().is_some_and(Vec::is_empty) && may_be;
        (of_kind.peek().is_some() || is_exception).then(|| of_kind.collect())
    }

    /// The rule, or those of its preset.
    fn specs(&self, index: usize) -> Result<Vec<RuleSpec>, Invalid> {
        let own = self.spec(index)?;
        let Some(preset) = self.preset else {
            return Ok(vec![own]);
        };
        let alone = Matchers {
            listener: own.matchers.listener.clone(),
            host: own.matchers.host.clone(),
            ..Matchers::default()
        };
        if own.matchers != alone || own.actions != Actions::default() {
            return Err(Invalid::new(
                format!("rule[{index}].preset"),
                format!("the preset `{preset}` has matchers and actions of its own"),
                "leave `name`, `listener` and `host` beside it, and write another rule for the rest",
            ));
        }
        let with_own = |mut rule: RuleSpec| {
            rule.name.clone_from(&own.name);
            rule.matchers.listener.clone_from(&alone.listener);
            rule.matchers.host.clone_from(&alone.host);
            rule
        };
        Ok(preset.rules().into_iter().map(with_own).collect())
    }

    fn name_at(&self, index: usize) -> String {
        let numbered = || format!("rule-{}", index + 1);
        self.name.clone().unwrap_or_else(numbered)
    }
}

/// Compiles the rules.
///
/// # Errors
///
/// What is wrong with them.
pub(crate) fn compile(rules: &[Rule]) -> Result<RuleSet, Invalid> {
    let (specs, places) = specs(rules)?;
    RuleSet::new(specs).map_err(|error| {
        let key = match error.rule {
            None => "rule".to_owned(),
            Some(spec) => key_at(rules, places[spec], error.key),
        };
        Invalid::new(key, error.reason, error.hint)
    })
}

/// The rules, those of presets in the place of these, and the table that each is of.
fn specs(rules: &[Rule]) -> Result<(Vec<RuleSpec>, Vec<usize>), Invalid> {
    let (mut specs, mut places) = (Vec::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        specs.extend(rule.specs(index)?);
        places.resize(specs.len(), index);
    }
    Ok((specs, places))
}

/// The rules that [`compile`] makes a set of.
pub(crate) fn rule_specs(rules: &[Rule]) -> Vec<RuleSpec> {
    specs(rules).map_or_else(|_| Vec::new(), |(specs, _)| specs)
}

/// The table of each rule of [`compile`], by its place.
pub(crate) fn places(rules: &[Rule]) -> Vec<usize> {
    specs(rules).map_or_else(|_| Vec::new(), |(_, places)| places)
}

/// The path of a key of a rule; of `preset`, where the key is of one.
fn key_at(rules: &[Rule], index: usize, key: &str) -> String {
    let is_own = matches!(key, "listener" | "host");
    match (rules[index].preset, key) {
        (_, "") => format!("rule[{index}]"),
        (Some(_), _) if !is_own => format!("rule[{index}].preset"),
        _ => format!("rule[{index}].{key}"),
    }
}

/// Refuses a preset that is for all sites: any of them could have a page for one user at a path of
/// a package, and say nothing of caching, and a client can be led there.
fn check_hosts(rule: &Rule, index: usize) -> Result<(), Invalid> {
    match rule.preset {
        Some(preset) if rule.host.is_empty() => Err(Invalid::new(
            format!("rule[{index}].preset"),
            format!(
                "the preset `{preset}` would be for all sites, and some have pages for one user at \
                 paths of packages"
            ),
            "name your mirrors, as in `host = [\"deb.debian.org\"]`",
        )),
        _ => Ok(()),
    }
}

/// Refuses names that are not distinct, those of rules without one among them.
fn check_names(rules: &[Rule]) -> Result<(), Invalid> {
    let mut names = Names::new("rule");
    let mut indexed = rules.iter().enumerate();
    for (index, rule) in indexed.clone().filter(|(_, rule)| rule.name.is_none()) {
        names.reserve(rule.name_at(index));
    }
    indexed.try_for_each(|(index, rule)| match &rule.name {
        Some(name) => names.add(&format!("rule[{index}].name"), name),
        None => Ok(()),
    })
}

/// Refuses rules that mean nothing, and names that are not distinct.
pub(super) fn check(rules: &[Rule]) -> Result<(), Invalid> {
    for (index, rule) in rules.iter().enumerate() {
        if let Some(lifetime) = &rule.lifetime {
            lifetime.check(&format!("rule[{index}].lifetime"))?;
        }
        if let Some(stale_for) = &rule.stale_for {
            let key = format!("rule[{index}].stale_for");
            check_range(&key, stale_for, &LIFETIMES[0], &LIFETIMES[1])?;
        }
        if let Some(read_ahead) = rule.read_ahead {
            read_ahead.check(&format!("rule[{index}].read_ahead"))?;
        }
        if let Some(rate) = rule.rate {
            rate.check(&format!("rule[{index}].rate"))?;
        }
    }
    check_names(rules)?;
    compile(rules)?;
    let mut rules = rules.iter().enumerate();
    rules.try_for_each(|(index, rule)| check_hosts(rule, index))
}

/// Why no request fits this matcher, and what to do.
fn never_matches(matcher: &str) -> (&'static str, &'static str) {
    match matcher {
        "client" => (
            "`access` lets none of these clients in",
            "add them to `access.clients`, or remove the rule",
        ),
        "listener" => (
            "there is no such listener",
            "name one that there is, or remove the rule",
        ),
        _ => (
            "no request fits this",
            "remove the rule, or this line of it",
        ),
    }
}

/// Rules that decide nothing.
pub(super) fn warnings(rules: &[Rule], listeners: &[Listener], access: &Access) -> Vec<Invalid> {
    let (Ok(set), Ok((_, places))) = (compile(rules), specs(rules)) else {
        return Vec::new();
    };
    let names: Vec<String> = listeners.iter().map(|it| it.address.to_string()).collect();
    let modes = listeners.iter().map(|listener| listener.mode.mode());
    let listeners: Vec<_> = names
        .iter()
        .zip(modes)
        .filter_map(|(name, mode)| Some((name.as_str(), mode?.into())))
        .collect();
    let nets = |list: &[Cidr]| list.iter().map(Cidr::net).collect();
    let clients = ClientRules {
        allow: nets(&access.clients),
        deny: nets(&access.deny_clients),
    };
    let surroundings = Surroundings {
        listeners: &listeners,
        clients: &clients,
    };
    let found = set.warnings(&surroundings).into_iter();
    let worded = found.map(|warning| {
        let at = |key: &str| key_at(rules, places[warning.rule], key);
        match warning.kind {
            WarningKind::NeverMatches(matcher) => {
                let (reason, hint) = never_matches(matcher);
                let name = &set.rules()[warning.rule].name;
                Invalid::new(
                    at(matcher),
                    format!("{reason}: the rule `{name}` does nothing"),
                    hint,
                )
            }
            WarningKind::Hidden { by, action } => Invalid::new(
                at(action.key()),
                format!(
                    "the rule `{}` before it decides this for all requests of this rule",
                    set.rules()[by].name
                ),
                "move this rule in front of that one, or remove it",
            ),
        }
    });
    let mut warnings: Vec<Invalid> = worded.collect();
    // each rule of a preset has the same to say
    warnings.dedup();
    warnings
}

#[cfg(test)]
mod tests;
