//! Scenarios that come with the program.

use super::{Scenario, ScenarioError};
use crate::toml_text;

pub(super) fn text(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

pub(super) fn scenario(name: &str) -> Result<Scenario, ScenarioError> {
    let Some(text) = text(name) else {
        let known: Vec<&str> = names().collect();
        let hint = match toml_text::nearest(name, &known) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("built in are {}", known.join(", ")),
        };
        return Err(ScenarioError::new(name, "no such scenario is built in").hint(hint));
    };
    Scenario::parse(name, text)
}

const BUILT_IN: [(&str, &str); 9] = [
    ("wpb", include_str!("../../../../scenarios/wpb.toml")),
    (
        "wpb-keep-alive",
        include_str!("../../../../scenarios/wpb-keep-alive.toml"),
    ),
    (
        "wpb-modem",
        include_str!("../../../../scenarios/wpb-modem.toml"),
    ),
    (
        "wpb-load",
        include_str!("../../../../scenarios/wpb-load.toml"),
    ),
    (
        "polymix3",
        include_str!("../../../../scenarios/polymix3.toml"),
    ),
    (
        "polymix4",
        include_str!("../../../../scenarios/polymix4.toml"),
    ),
    (
        "polymix3-mini",
        include_str!("../../../../scenarios/polymix3-mini.toml"),
    ),
    (
        "web-2026",
        include_str!("../../../../scenarios/web-2026.toml"),
    ),
    ("hits", include_str!("../../../../scenarios/hits.toml")),
];
