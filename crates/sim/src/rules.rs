//! Rules of the operator in a simulation.
//!
//! A trace has the method, the status and the media type of a request and its response; hosts,
//! paths and clients are hashes, and heads are gone. So rules are simulated that depend on nothing
//! else and act on nothing else; the others are left out, and said to be.

use weir_policy::rule::{ListenerMode, Place, RequestIgnored, RuleSet, RuleSpec, StoringRules};
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

/// The rules that can be simulated, and those that cannot, each with a key that says why. A rule
/// that has other actions beside those is simulated without these.
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
        let actions = &rule.actions;
        let not_simulated = [
            ("deny", actions.deny.is_none()),
            ("key", actions.key.is_none()),
            ("request", actions.request.is_none()),
            ("response", actions.response.is_none()),
        ];
        let lacking = |keys: &[(&'static str, bool)]| keys.iter().find(|it| !it.1).map(|it| it.0);
        let key = lacking(&unknown).or_else(|| lacking(&not_simulated));
        let name = rule.name.to_string();
        let mut rule = rule.clone();
        rule.actions.deny = None;
        rule.actions.key = None;
        rule.actions.request = None;
        rule.actions.response = None;
        let is_whole = lacking(&unknown).is_some() || rule.actions.iter().next().is_none();
        left_out.extend(key.map(|key| LeftOutRule {
            rule: name,
            key,
            is_whole,
        }));
        if !is_whole {
            kept.push(rule);
        }
    }
    (kept, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::rule::RuleLifetime;
    use weir_semantics::DeltaSeconds;

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
        ];
        let (kept, left_out) = simulated(&rules);
        let names: Vec<&str> = kept.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["all", "status", "partly"]);
        assert!(kept[2].actions.response.is_none());
        let left_out = left_out.iter();
        let left_out: Vec<_> = left_out
            .map(|it| (&*it.rule, it.key, it.is_whole))
            .collect();
        let expected = [("path", "path", true), ("partly", "response", false)];
        assert_eq!(left_out, expected);
    }
}
