//! The rules of the operator that are for a request, and what each of them decides.

use super::report::RuleUse;
use super::variants::content_type_of;
use crate::config::rule::places;
use crate::exchange::state::RequestState;
use crate::settings::Settings;
use weir_policy::rule::{Action, Bits, StoringBy};
use weir_store::StoredResponse;

/// The status and the type of the response that rules are judged for where none is stored.
const ASSUMED: (u16, &[u8]) = (200, b"");

/// Those of a request; `stored` is the response that was chosen. A rule decides no action that has
/// no part in what becomes of the request, as `has_part` says.
pub(super) fn uses(
    exchange: &RequestState,
    stored: Option<&StoredResponse>,
    has_part: &dyn Fn(Action) -> bool,
) -> Vec<RuleUse> {
    let settings = &exchange.settings;
    let matched = exchange.operator_rules;
    let content_type = stored.map(content_type_of);
    let (status, content_type) = match (stored, &content_type) {
        (Some(stored), Some(content_type)) => (stored.facts.status, &**content_type),
        _ => ASSUMED,
    };
    let rules = &settings.operator_rules;
    let host = &exchange.request.host;
    let target = (host.as_bytes(), exchange.request.path_and_query());
    let by = rules.storing_by(exchange.request.mode.into(), target, status, content_type);
    let of_response = rules.with_response(matched, status, content_type);
    let deciding = |action: Action| match action {
        action if !has_part(action) => None,
        Action::Lifetime => by.lifetime,
        Action::StaleFor => by.stale_for,
        Action::IgnoreStoring => by.ignored,
        Action::Response | Action::Rate => rules.deciding(of_response, action),
        _ => rules.deciding(matched, action),
    };
    list(settings, matched, deciding)
}

/// Those of a request that is refused before there is a response.
pub(super) fn of_refused(settings: &Settings, matched: Bits) -> Vec<RuleUse> {
    let rules = &settings.operator_rules;
    let is_denied = |action| action == Action::Deny;
    list(settings, matched, |action| {
        rules
            .deciding(matched, action)
            .filter(|_| is_denied(action))
    })
}

/// The numbers, from 0, of the tables of the rules that decide how a stored response is used.
pub(super) fn numbers(settings: &Settings, by: StoringBy) -> StoringBy {
    let places = places(&settings.config.rules);
    let number = |rule: Option<usize>| places.get(rule?).copied();
    StoringBy {
        lifetime: number(by.lifetime),
        stale_for: number(by.stale_for),
        ignored: number(by.ignored),
    }
}

/// The `matched` rules by the tables that they are of: a preset has several of one.
fn list(
    settings: &Settings,
    matched: Bits,
    deciding: impl Fn(Action) -> Option<usize>,
) -> Vec<RuleUse> {
    let places = places(&settings.config.rules);
    let mut uses: Vec<RuleUse> = Vec::new();
    for rule in matched.iter() {
        let (Some(&number), spec) = (places.get(rule), &settings.operator_rules.rules()[rule])
        else {
            continue;
        };
        if uses.last().is_none_or(|last| last.number != number) {
            uses.push(RuleUse {
                number,
                name: spec.name.to_string(),
                line: settings.config.rules[number].line,
                decides: Vec::new(),
                others: Vec::new(),
            });
        }
        let Some(last) = uses.last_mut() else {
            continue;
        };
        for action in spec.actions.iter() {
            let list = match deciding(action) == Some(rule) {
                true => &mut last.decides,
                false => &mut last.others,
            };
            if !list.contains(&action.key()) {
                list.push(action.key());
            }
        }
    }
    for rule in &mut uses {
        let decides = &rule.decides;
        rule.others.retain(|action| !decides.contains(action));
    }
    uses
}
