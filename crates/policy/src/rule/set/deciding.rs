//! Which rule decides what.

use super::RuleSet;
use crate::rule::bits::Bits;
use crate::rule::spec::{Action, RuleSpec};
use weir_extend::ListenerMode;

/// The places of the rules that decide how a response is stored and used; `None` where none does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoringBy {
    /// Of the rule that gives its lifetime.
    pub lifetime: Option<usize>,
    /// Of the one that says how long past that it may be served.
    pub stale_for: Option<usize>,
    /// Of the one that says what is ignored when it is stored.
    pub ignored: Option<usize>,
}

impl RuleSet {
    /// The place of the rule that decides `action`, among the `matched` ones: the first that has
    /// it. Actions that look at the response are decided by the rules that are for that
    /// ([`RuleSet::with_response`], [`RuleSet::storing_by`]).
    #[must_use]
    pub fn deciding(&self, matched: Bits, action: Action) -> Option<usize> {
        let mut rules = matched.iter();
        rules.find(|rule| self.rules[*rule].actions.has(action))
    }

    /// The rules that decide what [`RuleSet::storing`] says.
    #[must_use]
    pub fn storing_by(
        &self,
        mode: ListenerMode,
        (host, path): (&[u8], &str),
        status: u16,
        content_type: &[u8],
    ) -> StoringBy {
        // a part is stored as the whole
        let status = if status == 206 { 200 } else { status };
        let of_mode = self.modes[mode as usize] & self.of_storing;
        let matched = self.with_response(self.matched(of_mode, host, path), status, content_type);
        let first = |is_it: &dyn Fn(&RuleSpec) -> bool| {
            let mut rules = matched.iter();
            rules.find(|rule| is_it(&self.rules[*rule]))
        };
        StoringBy {
            lifetime: first(&|rule| {
                let gives = status < 400 || !rule.matchers.status.is_empty();
                gives && rule.actions.lifetime.is_some()
            }),
            stale_for: first(&|rule| rule.actions.stale_for.is_some()),
            ignored: first(&|rule| rule.actions.ignore_storing.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{RuleLifetime, StatusPattern, StoringIgnored};
    use weir_semantics::DeltaSeconds;

    fn rule(change: impl FnOnce(&mut RuleSpec)) -> RuleSpec {
        let mut rule = RuleSpec::default();
        change(&mut rule);
        rule
    }

    #[test]
    fn first_rule_that_has_an_action_decides_it_and_of_errors_one_that_names_them() {
        let lifetime = |seconds| Some(RuleLifetime::Forced(DeltaSeconds(seconds)));
        let rules = vec![
            rule(|it| it.actions.bypass = Some(false)),
            rule(|it| it.actions.lifetime = lifetime(1)),
            rule(|it| {
                it.matchers.status = vec!["404".parse::<StatusPattern>().expect("a status")];
                it.actions.lifetime = lifetime(2);
                it.actions.stale_for = Some(DeltaSeconds(3));
            }),
            rule(|it| {
                it.actions.bypass = Some(true);
                it.actions.ignore_storing = Some(StoringIgnored::NONE);
            }),
        ];
        let set = RuleSet::new(rules).expect("rules");
        let all: Bits = (0..4).collect();
        assert_eq!(set.deciding(all, Action::Bypass), Some(0));
        assert_eq!(set.deciding(all, Action::Deny), None);
        let by = |status| set.storing_by(ListenerMode::Forward, (b"a", "/"), status, b"");
        let of_success = StoringBy {
            lifetime: Some(1),
            stale_for: None,
            ignored: Some(3),
        };
        assert_eq!(by(200), of_success);
        assert_eq!(by(206), of_success);
        let of_absence = StoringBy {
            lifetime: Some(2),
            stale_for: Some(2),
            ..of_success
        };
        assert_eq!(by(404), of_absence);
        let of_error = StoringBy {
            lifetime: None,
            ..of_success
        };
        assert_eq!(by(500), of_error);
    }
}
