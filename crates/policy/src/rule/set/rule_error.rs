//! Rules that mean nothing, or that would let one user see what is for another.

use crate::rule::bits::RULES_MAX;
use crate::rule::clients::CLIENT_NETS_MAX;
use crate::rule::key::KeyRule;
use crate::rule::matchers::{Matchers, PATTERNS_MAX, StatusPattern};
use crate::rule::path::{PathPattern, STARS_MAX};
use crate::rule::spec::{Action, Actions, DENY_BYTES_MAX, Denial, RuleLifetime, RuleSpec};
use crate::stored::ignored::IgnoredDirective;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use weir_semantics::DeltaSeconds;

/// Why rules cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The place of the rule; `None` if it is about all of them.
    pub rule: Option<usize>,
    /// The key at fault; empty if it is about the whole rule.
    pub key: &'static str,
    /// What is wrong with it.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl core::error::Error for RuleError {}

impl RuleError {
    fn new(rule: Option<usize>, key: &'static str, reason: String, hint: &str) -> Self {
        Self {
            rule,
            key,
            reason,
            hint: hint.into(),
        }
    }
}

/// What is wrong with `rules`: with all together, then the first mistake of each.
pub(super) fn errors(rules: &[RuleSpec]) -> impl Iterator<Item = RuleError> {
    let of_each = rules
        .iter()
        .enumerate()
        .filter_map(|it| check_rule(it).err());
    check_sizes(rules).err().into_iter().chain(of_each)
}

fn check_sizes(rules: &[RuleSpec]) -> Result<(), RuleError> {
    let nets = rules.iter().map(|rule| rule.matchers.client.len());
    if rules.len() > RULES_MAX {
        let reason = format!("{} rules, more than {RULES_MAX}", rules.len());
        return Err(RuleError::new(
            None,
            "",
            reason,
            "remove some, or join some",
        ));
    }
    if nets.sum::<usize>() > CLIENT_NETS_MAX {
        let reason = format!("the rules have more than {CLIENT_NETS_MAX} networks of clients");
        return Err(RuleError::new(None, "", reason, "join networks"));
    }
    let paths = rules.iter().flat_map(|rule| &rule.matchers.path);
    let stars: usize = paths.map(PathPattern::stars).sum();
    if stars > STARS_MAX {
        let reason = format!("the paths of the rules have {stars} stars, more than {STARS_MAX}");
        return Err(RuleError::new(
            None,
            "",
            reason,
            "write prefixes where they do",
        ));
    }
    Ok(())
}

/// Whether what an action decides is for all clients.
const fn is_shared(action: Action) -> bool {
    action.is_for_all() || action.is_of_fetch()
}

fn quoted(status: &StatusPattern) -> String {
    format!("\"{status}\"")
}

/// What to do about actions that cannot depend on the matcher `key`, which are those that `cannot`
/// is true of: a second rule helps if the others depend on it.
fn way_out(actions: &Actions, key: &str, cannot: fn(Action) -> bool) -> String {
    let leave_out = match key {
        "listener" => "leave `listener` out, or name a mode: \"forward\" or \"gateway\"".into(),
        key => format!("leave `{key}` out"),
    };
    if actions.iter().all(cannot) {
        return format!("{leave_out}; no rule can do both");
    }
    let mut words: Vec<String> = actions
        .iter()
        .filter(|action| cannot(*action))
        .map(|action| format!("`{}`", action.key()))
        .collect();
    words.dedup();
    format!("move {} to a rule without `{key}`", words.join(", "))
}

/// What is for all clients, in a rule that is for some: the key, and the reason.
fn shared_by_clients(matchers: &Matchers, actions: &Actions) -> Option<(&'static str, String)> {
    let mut all = actions.iter();
    let (key, action) = (matchers.of_client()?, all.find(|it| is_shared(*it))?);
    let what = match action.is_of_fetch() {
        true => "how a response is fetched",
        false => "what is stored",
    };
    let reason = format!(
        "`{}` decides {what}, which is for all clients: the rule cannot depend on `{key}`",
        action.key()
    );
    Some((action.key(), reason))
}

fn check_rule((index, rule): (usize, &RuleSpec)) -> Result<(), RuleError> {
    let error =
        |key, reason: String, hint: &str| Err(RuleError::new(Some(index), key, reason, hint));
    let (matchers, actions) = (&rule.matchers, &rule.actions);
    if let Some((key, length)) = long_list(rule) {
        let reason = format!("{length} values, more than {PATTERNS_MAX}");
        return error(key, reason, "make two rules of it");
    }
    if actions.iter().next().is_none() {
        let mut words: Vec<String> = Action::ALL
            .into_iter()
            .map(|action| format!("`{}`", action.key()))
            .collect();
        words.dedup();
        let hint = format!("give it an action: {}", words.join(", "));
        return error("", "the rule does nothing".into(), &hint);
    }
    let key = if matchers.status.is_empty() {
        "content_type"
    } else {
        "status"
    };
    let of_request = actions.iter().find(|action| action.is_of_request());
    if let (true, Some(action)) = (matchers.is_of_response(), of_request) {
        let reason = format!(
            "`{}` is decided before there is a response: the rule cannot depend on `{key}`",
            action.key()
        );
        let hint = way_out(actions, key, Action::is_of_request);
        return error(action.key(), reason, &hint);
    }
    if let Some((key, reason)) = shared_by_clients(matchers, actions) {
        let of_client = matchers.of_client().unwrap_or_default();
        let hint = way_out(actions, of_client, is_shared);
        return error(key, reason, &hint);
    }
    check_sharing(actions).map_or(Ok(()), |(key, reason, hint)| error(key, reason, hint))?;
    // a forced one of 0 s has what says its own lifetime validated: that is for any status
    let gives_lifetime = match actions.lifetime {
        Some(RuleLifetime::Default(_)) => true,
        Some(RuleLifetime::Forced(seconds)) => seconds > DeltaSeconds::ZERO,
        None => false,
    };
    if gives_lifetime && let Some(status) = matchers.status.iter().find(|it| !it.has_lifetime()) {
        let reason = format!(
            "a response with status {status} is about its request, or a part: no rule gives it a lifetime"
        );
        let lacks = |it: &&StatusPattern| !it.has_lifetime();
        let all: Vec<String> = matchers.status.iter().filter(lacks).map(quoted).collect();
        let hint = match all.len() == matchers.status.len() {
            true => "remove `lifetime`, or name other statuses".into(),
            false => format!("leave {} out of `status`", all.join(", ")),
        };
        return error("status", reason, &hint);
    }
    if let (Some(key), true) = (matchers.of_client(), actions.has(Action::Request)) {
        let reason = format!(
            "the rule depends on `{key}`, and the origin's response to the changed request would \
             be stored for all clients"
        );
        let hint = format!("remove `{key}`, or set `bypass = true` in this rule");
        if actions.bypass != Some(true) {
            return error("request", reason, &hint);
        }
    }
    match &actions.deny {
        Some(Denial::Text(text)) if text.is_empty() || text.len() > DENY_BYTES_MAX => error(
            "deny",
            format!(
                "the text has {} bytes, not 1 to {DENY_BYTES_MAX}",
                text.len()
            ),
            "say in a sentence why, or write \"off\" for requests that no rule denies",
        ),
        Some(Denial::Text(text)) if text.chars().any(char::is_control) => error(
            "deny",
            "the text has a control character".into(),
            "write it in one line",
        ),
        _ => Ok(()),
    }
}

/// A list of a rule that has more than [`PATTERNS_MAX`] values, and how many.
fn long_list(rule: &RuleSpec) -> Option<(&'static str, usize)> {
    let (matchers, key) = (&rule.matchers, rule.actions.key.as_ref());
    let of_key = |length: fn(&KeyRule) -> Option<usize>| key.and_then(length).unwrap_or(0);
    let lengths = [
        ("listener", matchers.listener.len()),
        ("host", matchers.host.len()),
        ("path", matchers.path.len()),
        ("method", matchers.method.len()),
        ("client", matchers.client.len()),
        ("status", matchers.status.len()),
        ("content_type", matchers.content_type.len()),
        ("key.drop_query", of_key(|key| Some(key.drop_query.len()))),
        (
            "key.keep_query",
            of_key(|key| Some(key.keep_query.as_ref()?.len())),
        ),
        (
            "key.languages",
            of_key(|key| Some(key.languages.as_ref()?.len())),
        ),
        (
            "key.codings",
            of_key(|key| Some(key.codings.as_ref()?.len())),
        ),
    ];
    lengths.into_iter().find(|it| it.1 > PATTERNS_MAX)
}

/// What is wrong with what is ignored, where that lets one user see what is for another: the key,
/// the reason, and what to do.
fn check_sharing(actions: &Actions) -> Option<(&'static str, String, &'static str)> {
    let ignored = actions.ignore_storing.unwrap_or_default();
    let mut all = IgnoredDirective::ALL.into_iter();
    let sharing = all.find(|directive| directive.shares() && ignored.has(*directive));
    match (sharing, actions.shares) {
        (Some(directive), false) => Some((
            "ignore",
            format!("with `{directive}` ignored, users get responses that are for another one"),
            "remove it, or set `share = \"unsafe\"` in this rule if there are no such responses there",
        )),
        (None, true) => Some((
            "share",
            "nothing is ignored in this rule that it would be for".into(),
            "remove it",
        )),
        _ => None,
    }
}
