//! How many requests each rule of the operator was for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_policy::rule::{Bits, RuleSet};

/// The counts of the rules of a configuration, by their places.
#[derive(Debug)]
pub(crate) struct RuleCounts(Box<[Arc<RuleCount>]>);

#[derive(Debug)]
struct RuleCount {
    name: Box<str>,
    requests: AtomicU64,
}

/// What was counted of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// Its name.
    pub name: String,
    /// Requests that it was for.
    pub requests: u64,
}

impl RuleCounts {
    /// Nothing counted. Rules of one name, which are those of a preset, are counted as one.
    pub(crate) fn new(rules: &RuleSet) -> Self {
        Self::of(rules, &Self(Box::default()))
    }

    /// The same for other rules: those whose names were there before continue.
    pub(crate) fn continuing(rules: &RuleSet, before: &Self) -> Self {
        Self::of(rules, before)
    }

    fn of(rules: &RuleSet, before: &Self) -> Self {
        let mut counts: Vec<Arc<RuleCount>> = Vec::with_capacity(rules.rules().len());
        for rule in rules.rules() {
            let mut known = counts.iter().rev().chain(&before.0);
            let known = known.find(|count| count.name == rule.name).cloned();
            counts.push(known.unwrap_or_else(|| {
                Arc::new(RuleCount {
                    name: rule.name.clone(),
                    requests: AtomicU64::new(0),
                })
            }));
        }
        Self(counts.into())
    }

    /// A request came that the `matched` rules are for.
    pub(crate) fn count(&self, matched: Bits) {
        let mut last: Option<&Arc<RuleCount>> = None;
        for count in matched.iter().filter_map(|rule| self.0.get(rule)) {
            // rules of a preset stand together
            if !last.is_some_and(|last| Arc::ptr_eq(last, count)) {
                count.requests.fetch_add(1, Ordering::Relaxed);
            }
            last = Some(count);
        }
    }

    /// The counts, each name once.
    pub(crate) fn report(&self) -> Vec<RuleReport> {
        let mut counts: Vec<&Arc<RuleCount>> = self.0.iter().collect();
        counts.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let report = |count: &Arc<RuleCount>| RuleReport {
            name: count.name.to_string(),
            requests: count.requests.load(Ordering::Relaxed),
        };
        counts.into_iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::rule::RuleSpec;

    fn rules(names: &[&str]) -> RuleSet {
        let named = names.iter().map(|name| {
            let mut rule = RuleSpec {
                name: (*name).into(),
                ..RuleSpec::default()
            };
            rule.actions.bypass = Some(true);
            rule
        });
        RuleSet::new(named.collect()).expect("rules")
    }

    fn check(counts: &RuleCounts, expected: &[(&str, u64)]) {
        let found = counts.report();
        let found = found.iter().map(|it| (it.name.as_str(), it.requests));
        assert!(found.eq(expected.iter().copied()), "{counts:?}");
    }

    #[test]
    fn each_rule_of_a_request_is_counted_and_a_preset_once() {
        let counts = RuleCounts::new(&rules(&["a", "preset", "preset", "b"]));
        counts.count([0, 1, 2].into_iter().collect());
        counts.count([2, 3].into_iter().collect());
        counts.count(Bits::NONE);
        check(&counts, &[("a", 1), ("preset", 2), ("b", 1)]);
    }

    #[test]
    fn rule_that_stays_at_a_reload_continues_wherever_it_stands() {
        let before = RuleCounts::new(&rules(&["a", "b"]));
        before.count([0, 1].into_iter().collect());
        let after = RuleCounts::continuing(&rules(&["c", "a"]), &before);
        after.count([0, 1].into_iter().collect());
        check(&after, &[("c", 1), ("a", 2)]);
        // requests that began before the reload count, too
        before.count([0].into_iter().collect());
        check(&after, &[("c", 1), ("a", 3)]);
    }
}
