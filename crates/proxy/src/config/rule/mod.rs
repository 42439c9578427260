//! Rules of the operator: what is done with requests and responses beside what HTTP says.

mod key;
mod lifetime;
mod settings;
mod specs;
mod values;
mod warnings;

pub use key::RuleKey;
pub use lifetime::RuleLifetime;
pub(crate) use specs::{compile, places, rule_specs};
pub use values::{
    ClientRate, CodingText, FieldChange, LanguageText, QueryNameText, RuleListener, RuleMethod,
    RulePath, RuleStatus, RuleType, Sharing,
};
pub(super) use warnings::warnings;

use crate::config::listener::Listener;
use crate::config::route::HostPattern;
use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::cidr::Cidr;
use crate::config::values::name::Names;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::time::span::Span;
use lifetime::LIFETIMES;
use serde::{Deserialize, Serialize};
use weir_policy::fetch::AbortKind;
use weir_policy::rule::{IgnoredDirective, Preset};

/// One `[[rule]]` table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The line of the configuration file in which it begins, from 1; absent if it is of none.
    #[serde(skip)]
    pub line: Option<u32>,
    /// What messages call it; absent for its path, such as `rule[0]`.
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

/// Refuses names of listeners that none has.
fn check_listeners(rule: &Rule, index: usize, listeners: &[Listener]) -> Result<(), Invalid> {
    let mut names: Vec<&str> = listeners
        .iter()
        .filter_map(|it| it.name.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    let is_unknown = |it: &RuleListener| it.name().is_some_and(|name| !names.contains(&name));
    match rule.listener.iter().position(is_unknown) {
        None => Ok(()),
        Some(place) => Err(Invalid::new(
            format!("rule[{index}].listener[{place}]"),
            format!("no listener has the name `{}`", rule.listener[place]),
            match names.is_empty() {
                true => {
                    "write \"forward\" or \"gateway\", or give the [[listener]] a `name`".to_owned()
                }
                false => format!(
                    "write \"forward\" or \"gateway\", or one of the names of listeners: {}",
                    names.join(", ")
                ),
            },
        )),
    }
}

/// Refuses names that are not distinct.
fn check_names(rules: &[Rule], mistakes: &mut Mistakes) {
    let mut names = Names::new("rule");
    for (index, rule) in rules.iter().enumerate() {
        if let Some(name) = &rule.name {
            mistakes.note(names.add(&format!("rule[{index}].name"), name));
        }
    }
}

/// Refuses values outside their ranges.
fn check_ranges(rule: &Rule, index: usize, mistakes: &mut Mistakes) {
    let key = |name: &str| format!("rule[{index}].{name}");
    if let Some(lifetime) = &rule.lifetime {
        mistakes.note(lifetime.check(&key("lifetime")));
    }
    if let Some(stale_for) = &rule.stale_for {
        let [least, most] = &LIFETIMES;
        mistakes.note(check_range(&key("stale_for"), stale_for, least, most));
    }
    if let Some(read_ahead) = rule.read_ahead {
        mistakes.note(read_ahead.check(&key("read_ahead")));
    }
    if let Some(rate) = rule.rate {
        mistakes.note(rate.check(&key("rate")));
    }
}

/// Refuses rules that mean nothing, and names that are not distinct.
pub(super) fn check(rules: &[Rule], listeners: &[Listener], mistakes: &mut Mistakes) {
    for (index, rule) in rules.iter().enumerate() {
        check_ranges(rule, index, mistakes);
    }
    check_names(rules, mistakes);
    specs::check(rules, listeners, mistakes);
    for (index, rule) in rules.iter().enumerate() {
        mistakes.note(check_hosts(rule, index));
        mistakes.note(check_listeners(rule, index, listeners));
    }
}

#[cfg(test)]
mod tests;
