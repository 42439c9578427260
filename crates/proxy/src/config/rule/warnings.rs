//! Rules that decide nothing.

use super::Rule;
use super::specs::{compile, key_at, specs};
use crate::config::access::Access;
use crate::config::listener::Listener;
use crate::config::setting::invalid::Invalid;
use crate::config::values::cidr::Cidr;
use weir_policy::destination::ClientRules;
use weir_policy::rule::{Surroundings, WarningKind};

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
pub(in crate::config) fn warnings(
    rules: &[Rule],
    listeners: &[Listener],
    access: &Access,
) -> Vec<Invalid> {
    let (Ok(set), Ok((_, places))) = (compile(rules, listeners), specs(rules, listeners)) else {
        return Vec::new();
    };
    let names: Vec<String> = listeners.iter().map(Listener::name_or_address).collect();
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
