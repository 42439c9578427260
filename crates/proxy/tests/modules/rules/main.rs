//! Rules of the operator, as clients and next hops see what they do.

#[path = "../../support/mod.rs"]
mod support;

mod denied;
mod fetching;
mod ignored;
mod key;
mod lifetime;
mod rate;
mod requests;
mod responses;
mod reuse;
mod sharing;
mod with_modules;

use weir_proxy::config::{Config, Rule};

/// Rules as JSON has them.
pub(crate) fn rules(text: &str) -> Vec<Rule> {
    serde_json::from_str(text).expect("rules")
}

/// A change of a configuration that gives it rules.
pub(crate) fn ruled(text: &str) -> impl Fn(&mut Config) {
    let rules = rules(text);
    move |config| config.rules.clone_from(&rules)
}

/// A response of a next hop.
pub(crate) fn answer(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok")
}
