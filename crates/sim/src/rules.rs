//! Rules of the operator in a simulation.
//!
//! A trace has the method, the status and the media type of a request and its response; hosts,
//! paths and clients are hashes, and heads are gone. So rules are simulated that depend on nothing
//! else and act on nothing else; the others are left out, and said to be.

use weir_policy::rule::{
    Action, Actions, ListenerMode, Place, RequestIgnored, RuleSet, RuleSpec, StoringRules,
};
use weir_semantics::{Method, RequestDirectives};
use weir_trace::Row;

/// What rules say of a request, and of the response that its origin has for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ruled {
    pub(crate) bypass: bool,
    pub(crate) ignored: RequestIgnored,
    /// The directives of the request before any were ignored, if some are.
    pub(crate) sent: Option<RequestDirectives>,
    pub(crate) storing: StoringRules,
}

/// A rule that is not simulated, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutRule {
    /// Its name.
    pub rule: String,
    /// The key that a trace has nothing for, as the configuration has it.
    pub key: &'static str,
    /// Whether all of it is left out, and not this key alone.
    pub is_whole: bool,
}

impl Ruled {
    /// What `rules` say of `row`.
    pub(crate) fn of(rules: &RuleSet, row: &Row, method: Method) -> Self {
        let place = Place {
            listener: None,
            mode: MODE,
            method,
            client: None,
        };
        let outcome = rules.outcome(rules.matched(rules.applicable(&place), b"", ""));
        // a 304 is about a response that is stored as a 200
        let status = match row.status {
            Some(304) | None => 200,
            Some(status) => status,
        };
        let content_type = row.content_type.as_deref().unwrap_or_default();
        Self {
            bypass: outcome.bypass,
            ignored: outcome.ignored,
            sent: None,
            storing: rules.storing(MODE, (b"", ""), status, content_type.as_bytes()),
        }
    }
}

/// Rules that depend on the mode of a listener are left out.
const MODE: ListenerMode = ListenerMode::Forward;

/// Whether a trace has what an action depends on, and the simulator does it.
const fn is_simulated(action: Action) -> bool {
    match action {
        Action::Bypass
        | Action::Ignore
        | Action::IgnoreStoring
        | Action::Lifetime
        | Action::StaleFor => true,
        // clients, targets and heads are not in a trace; transfers go by their own settings
        Action::Deny
        | Action::Key
        | Action::Request
        | Action::Response
        | Action::Rate
        | Action::ReadAhead
        | Action::Abort => false,
    }
}

/// Without the actions that are not simulated.
fn simulated_of(actions: Actions) -> Actions {
    Actions {
        bypass: actions.bypass,
        ignore: actions.ignore,
        ignore_storing: actions.ignore_storing,
        shares: actions.shares,
        lifetime: actions.lifetime,
        stale_for: actions.stale_for,
        ..Actions::default()
    }
}

/// The rules that can be simulated, and those that cannot, with each key that says why. A rule that
/// has other actions beside those is simulated without these.
#[must_use]
pub fn simulated(rules: &[RuleSpec]) -> (Vec<RuleSpec>, Vec<LeftOutRule>) {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for rule in rules {
        let matchers = &rule.matchers;
        let unknown = [
            ("listener", matchers.listener.is_empty()),
            ("host", matchers.host.is_empty()),
            ("path", matchers.path.is_empty()),
            ("client", matchers.client.is_empty()),
        ];
        let lacking = unknown.iter().find(|(_, is_empty)| !is_empty);
        let lacking = lacking.map(|(key, _)| *key);
        let actions = simulated_of(rule.actions.clone());
        let is_whole = lacking.is_some() || actions.iter().next().is_none();
        let not_simulated = rule.actions.iter().filter(|action| !is_simulated(*action));
        let not_simulated = not_simulated.map(Action::key);
        // without its matcher, nothing that it does is simulated
        let keys: Vec<&str> = match lacking {
            Some(matcher) => [matcher].into(),
            None => not_simulated.collect(),
        };
        left_out.extend(keys.into_iter().map(|key| LeftOutRule {
            rule: rule.name.to_string(),
            key,
            is_whole,
        }));
        if !is_whole {
            kept.push(RuleSpec {
                actions,
                ..rule.clone()
            });
        }
    }
    (kept, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::fetch::{AbortKind, ReadAhead};
    use weir_policy::rule::{Denial, RuleLifetime, RuleRate};
    use weir_semantics::DeltaSeconds;

    #[test]
    fn actions_that_are_left_out_are_those_that_are_not_simulated() {
        let all = Actions {
            deny: Some(Denial::Off),
            bypass: Some(true),
            ignore: Some(RequestIgnored::default()),
            ignore_storing: Some(Default::default()),
            shares: true,
            lifetime: Some(RuleLifetime::Default(DeltaSeconds(1))),
            stale_for: Some(DeltaSeconds(1)),
            key: Some(Default::default()),
            request: Some(Default::default()),
            response: Some(Default::default()),
            rate: Some(RuleRate::Off),
            read_ahead: Some(ReadAhead::Bytes(0)),
            abort: Some(AbortKind::Value),
        };
        assert!(all.iter().eq(Action::ALL));
        let expected = Action::ALL
            .into_iter()
            .filter(|action| is_simulated(*action));
        assert!(simulated_of(all).iter().eq(expected));
    }

    #[test]
    fn rules_that_a_trace_cannot_tell_are_left_out_and_named() {
        let rule = |name: &str, change: &dyn Fn(&mut RuleSpec)| {
            let mut rule = RuleSpec {
                name: name.into(),
                ..RuleSpec::default()
            };
            rule.actions.lifetime = Some(RuleLifetime::Default(DeltaSeconds(1)));
            change(&mut rule);
            rule
        };
        let rules = [
            rule("all", &|_| {}),
            rule("status", &|it| {
                it.matchers.status.push("404".parse().expect("a status"));
            }),
            rule("path", &|it| {
                it.matchers.path.push("/a".parse().expect("a path"));
            }),
            rule("partly", &|it| {
                it.actions.response = Some(Default::default())
            }),
            rule("rate", &|it| {
                it.actions.lifetime = None;
                it.actions.rate = Some(RuleRate::Off);
            }),
            rule("abort", &|it| {
                it.actions.read_ahead = Some(ReadAhead::Bytes(0));
                it.actions.abort = Some(AbortKind::Value);
            }),
        ];
        let (kept, left_out) = simulated(&rules);
        let names: Vec<&str> = kept.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["all", "status", "partly", "abort"]);
        for rule in &kept {
            assert_eq!(rule.actions, rules[0].actions, "{}", rule.name);
        }
        let left_out = left_out.iter();
        let left_out: Vec<_> = left_out
            .map(|it| (&*it.rule, it.key, it.is_whole))
            .collect();
        let expected = [
            ("path", "path", true),
            ("partly", "response", false),
            ("rate", "rate", true),
            ("abort", "read_ahead", false),
            ("abort", "abort", false),
        ];
        assert_eq!(left_out, expected);
    }
}
