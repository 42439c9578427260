//! Rules that decide nothing: no request can be one of theirs, or an earlier rule decides all of
//! them. They are probably not meant so.

use super::matchers::{ListenerPattern, StatusPattern};
use super::set::RuleSet;
use super::spec::{Action, RuleSpec};
use crate::destination::ClientRules;
use alloc::vec::Vec;
use ipnet::IpNet;
use weir_extend::ListenerMode;
use weir_semantics::Method;

/// What of the configuration decides which requests there are.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The names of the listeners, addresses for those without, and their modes.
    pub listeners: &'a [(&'a str, ListenerMode)],
    /// The clients of forward proxies.
    pub clients: &'a ClientRules,
}

/// A rule that decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleWarning {
    /// The place of the rule.
    pub rule: usize,
    /// Why.
    pub kind: WarningKind,
}

/// Why a rule decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// Nothing fits this matcher, beside its others.
    NeverMatches(&'static str),
    /// The rule at this place decides this action for all that it is for.
    Hidden {
        /// The earlier rule.
        by: usize,
        /// The action.
        action: Action,
    },
}

impl RuleSet {
    /// The rules that decide nothing; where that is hard to say, they are left out.
    #[must_use]
    pub fn warnings(&self, surroundings: &Surroundings<'_>) -> Vec<RuleWarning> {
        let mut warnings = Vec::new();
        for (rule, spec) in self.rules().iter().enumerate() {
            let warning = |kind| RuleWarning { rule, kind };
            if let Some(matcher) = never_matches(spec, surroundings) {
                warnings.push(warning(WarningKind::NeverMatches(matcher)));
                continue;
            }
            for action in spec.actions.iter() {
                if let Some(by) = self.hides(rule, action, surroundings) {
                    warnings.push(warning(WarningKind::Hidden { by, action }));
                }
            }
        }
        warnings
    }

    fn hides(&self, rule: usize, action: Action, surroundings: &Surroundings<'_>) -> Option<usize> {
        let (before, from) = self.rules().split_at(rule);
        let mode_of = |name: &str| surroundings.mode_of(name);
        // without statuses, a lifetime is not for errors
        let is_for_errors = |rule: &RuleSpec| !rule.matchers.status.is_empty();
        let only_for_errors = action == Action::Lifetime && is_for_errors(&from[0]);
        before.iter().position(|earlier| {
            let decides =
                earlier.actions.has(action) && (!only_for_errors || is_for_errors(earlier));
            decides && earlier.matchers.covers(&from[0].matchers, mode_of)
        })
    }
}

impl Surroundings<'_> {
    fn mode_of(&self, name: &str) -> Option<ListenerMode> {
        let mut listeners = self.listeners.iter();
        listeners.find(|known| known.0 == name).map(|known| known.1)
    }

    fn has_mode(&self, mode: ListenerMode) -> bool {
        self.listeners.iter().any(|known| known.1 == mode)
    }

    /// Whether requests come to a listener of `mode` that `patterns` name.
    fn reaches(&self, patterns: &[ListenerPattern], mode: ListenerMode) -> bool {
        let is_named = |pattern: &ListenerPattern| match pattern {
            ListenerPattern::Mode(named) => *named == mode && self.has_mode(mode),
            ListenerPattern::Named(name) => self.mode_of(name) == Some(mode),
        };
        if patterns.is_empty() {
            self.has_mode(mode)
        } else {
            patterns.iter().any(is_named)
        }
    }
}

/// The matcher that nothing fits.
fn never_matches(rule: &RuleSpec, surroundings: &Surroundings<'_>) -> Option<&'static str> {
    let matchers = &rule.matchers;
    let reaches = |mode| surroundings.reaches(&matchers.listener, mode);
    let (forward, gateway) = (
        reaches(ListenerMode::Forward),
        reaches(ListenerMode::Gateway),
    );
    if !forward && !gateway && !matchers.listener.is_empty() {
        return Some("listener");
    }
    let is_connect = !matchers.method.is_empty()
        && matchers
            .method
            .iter()
            .all(|method| *method == Method::Connect);
    if is_connect && !forward {
        return Some("method");
    }
    if is_connect && !matchers.path.is_empty() {
        return Some("path");
    }
    // they are refused before any rule
    if !matchers.method.is_empty() && matchers.method.iter().all(|it| *it == Method::Trace) {
        return Some("method");
    }
    let is_served = |net: &IpNet| gateway || overlaps(net, surroundings.clients);
    if !matchers.client.is_empty() && !matchers.client.iter().any(is_served) {
        return Some("client");
    }
    let is_interim = |status: &StatusPattern| status.is_interim();
    if !matchers.status.is_empty() && matchers.status.iter().all(is_interim) {
        return Some("status");
    }
    None
}

/// Whether a client of `net` may be served.
fn overlaps(net: &IpNet, clients: &ClientRules) -> bool {
    let allowed = clients
        .allow
        .iter()
        .any(|allowed| allowed.contains(net) || net.contains(allowed));
    allowed && !clients.deny.iter().any(|denied| denied.contains(net))
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Denial, RuleLifetime};
    use super::*;
    use weir_semantics::DeltaSeconds;

    const FORWARD: [(&str, ListenerMode); 1] = [("lan", ListenerMode::Forward)];
    const GATEWAY: [(&str, ListenerMode); 1] = [("site", ListenerMode::Gateway)];

    fn rule(change: impl Fn(&mut RuleSpec)) -> RuleSpec {
        let mut rule = RuleSpec::default();
        rule.actions.bypass = Some(true);
        change(&mut rule);
        rule
    }

    fn check(
        rules: impl IntoIterator<Item = RuleSpec>,
        listeners: &[(&str, ListenerMode)],
        expected: &[(usize, WarningKind)],
    ) {
        let set = RuleSet::new(rules.into_iter().collect()).expect("rules");
        let clients = ClientRules::default();
        let surroundings = Surroundings {
            listeners,
            clients: &clients,
        };
        let found = set.warnings(&surroundings);
        let found: Vec<(usize, WarningKind)> = found.iter().map(|it| (it.rule, it.kind)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn rule_that_no_request_can_fit_is_named_with_its_matcher() {
        let never = |matcher| (0, WarningKind::NeverMatches(matcher));
        let listener =
            |pattern: ListenerPattern| rule(move |it| it.matchers.listener.push(pattern.clone()));
        let named = |name: &str| listener(ListenerPattern::Named(name.into()));
        check([named("wan")], &FORWARD, &[never("listener")]);
        check([named("lan")], &FORWARD, &[]);
        let gateway = || listener(ListenerPattern::Mode(ListenerMode::Gateway));
        check([gateway()], &FORWARD, &[never("listener")]);
        check([gateway()], &GATEWAY, &[]);
        let connect = || rule(|it| it.matchers.method.push(Method::Connect));
        check([connect()], &GATEWAY, &[never("method")]);
        check([connect()], &FORWARD, &[]);
        let tunnel_path = rule(|it| {
            it.matchers.method.push(Method::Connect);
            it.matchers.path.push("/a".parse().expect("a path"));
        });
        check([tunnel_path], &FORWARD, &[never("path")]);
        let client =
            |net: &'static str| rule(move |it| it.matchers.client.push(net.parse().expect(net)));
        check([client("10.0.0.0/8")], &FORWARD, &[never("client")]);
        check([client("10.0.0.0/8")], &GATEWAY, &[]);
        check([client("127.0.0.0/16")], &FORWARD, &[]);
        check([client("0.0.0.0/0")], &FORWARD, &[]);
        let interim = rule(|it| {
            it.actions.bypass = None;
            it.actions.response = Some(crate::rule::FieldRules::default());
            it.matchers.status.push("1xx".parse().expect("a class"));
        });
        check([interim], &FORWARD, &[never("status")]);
    }

    #[test]
    fn rule_behind_one_that_decides_for_all_of_it_is_hidden() {
        let at =
            |host: &'static str| rule(move |it| it.matchers.host.push(host.parse().expect(host)));
        let hidden = |rule, by, action| (rule, WarningKind::Hidden { by, action });
        let expected = [hidden(1, 0, Action::Bypass)];
        check([at("*.a.example"), at("b.a.example")], &FORWARD, &expected);
        check([at("b.a.example"), at("*.a.example")], &FORWARD, &[]);
        // by another action it is not hidden
        let denying = rule(|it| {
            it.actions.deny = Some(Denial::Off);
            it.matchers
                .host
                .push("b.a.example".parse().expect("a host"));
        });
        check([at("*.a.example"), denying], &FORWARD, &expected);
        check([rule(|_| {}), at("a.example")], &FORWARD, &expected);
        let lifetime = |statuses: &'static [&'static str]| {
            rule(move |it| {
                it.actions.bypass = None;
                it.actions.lifetime = Some(RuleLifetime::Default(DeltaSeconds(1)));
                let parse = |text: &&str| text.parse().expect("a status");
                it.matchers.status = statuses.iter().map(parse).collect();
            })
        };
        check([lifetime(&[]), lifetime(&["404"])], &FORWARD, &[]);
        let expected = [hidden(1, 0, Action::Lifetime)];
        check(
            [lifetime(&["4xx"]), lifetime(&["404"])],
            &FORWARD,
            &expected,
        );
        check([lifetime(&[]), lifetime(&[])], &FORWARD, &expected);
    }
}
