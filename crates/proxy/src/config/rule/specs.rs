//! The rules of the policy that tables stand for.

use super::lifetime::seconds;
use super::{ClientRate, FieldChange, Rule, RuleKey, RuleLifetime};
use crate::config::listener::Listener;
use crate::config::route::HostPattern;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::cidr::Cidr;
use weir_policy::rule::{
    Actions, Denial, FieldRules, FieldRulesError, IgnoredDirective, Matchers, Message, RuleError,
    RuleSet, RuleSpec,
};

impl Rule {
    fn spec(&self, index: usize, listeners: &[Listener]) -> Result<RuleSpec, Invalid> {
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
            listener: self
                .listener
                .iter()
                .flat_map(|it| it.patterns(listeners))
                .collect(),
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
    fn specs(&self, index: usize, listeners: &[Listener]) -> Result<Vec<RuleSpec>, Invalid> {
        let own = self.spec(index, listeners)?;
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

    /// Its name, or else its path in the file, which no rule can have as name.
    pub(super) fn name_at(&self, index: usize) -> String {
        let path = || format!("rule[{index}]");
        self.name.clone().unwrap_or_else(path)
    }
}

/// Compiles the rules.
///
/// # Errors
///
/// What is wrong with the first that is not good.
pub(crate) fn compile(rules: &[Rule], listeners: &[Listener]) -> Result<RuleSet, Invalid> {
    let (specs, places) = specs(rules, listeners)?;
    RuleSet::new(specs).map_err(|error| invalid(rules, &places, error))
}

/// Refuses rules that cannot be compiled.
pub(super) fn check(rules: &[Rule], listeners: &[Listener], mistakes: &mut Mistakes) {
    let (mut specs, mut places) = (Vec::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        match rule.specs(index, listeners) {
            Ok(of_rule) => specs.extend(of_rule),
            Err(invalid) => mistakes.note(Err(invalid)),
        }
        places.resize(specs.len(), index);
    }
    for error in RuleSet::errors(&specs) {
        mistakes.note(Err(invalid(rules, &places, error)));
    }
}

/// An error at its key; `places` has the table of each rule.
fn invalid(rules: &[Rule], places: &[usize], error: RuleError) -> Invalid {
    let key = match error.rule {
        None => "rule".to_owned(),
        Some(spec) => key_at(rules, places[spec], error.key),
    };
    Invalid::new(key, error.reason, error.hint)
}

/// The rules, those of presets in the place of these, and the table that each is of.
pub(super) fn specs(
    rules: &[Rule],
    listeners: &[Listener],
) -> Result<(Vec<RuleSpec>, Vec<usize>), Invalid> {
    let (mut specs, mut places) = (Vec::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        specs.extend(rule.specs(index, listeners)?);
        places.resize(specs.len(), index);
    }
    Ok((specs, places))
}

/// The rules that [`compile`] makes a set of.
pub(crate) fn rule_specs(rules: &[Rule], listeners: &[Listener]) -> Vec<RuleSpec> {
    specs(rules, listeners).map_or_else(|_| Vec::new(), |(specs, _)| specs)
}

/// The table of each rule of [`compile`], by its place.
pub(crate) fn places(rules: &[Rule]) -> Vec<usize> {
    specs(rules, &[]).map_or_else(|_| Vec::new(), |(_, places)| places)
}

/// The path of a key of a rule; of `preset`, where the key is of one.
pub(super) fn key_at(rules: &[Rule], index: usize, key: &str) -> String {
    let is_own = matches!(key, "listener" | "host");
    match (rules[index].preset, key) {
        (_, "") => format!("rule[{index}]"),
        (Some(_), _) if !is_own => format!("rule[{index}].preset"),
        _ => format!("rule[{index}].{key}"),
    }
}
