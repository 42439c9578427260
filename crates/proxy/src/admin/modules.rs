//! The modules of the configuration in force: as a table, or as JSON.

use super::table::aligned;
use crate::modules::report::{ModuleReport, push_visible};
use std::fmt::Write as _;

/// Most bytes of a note; the rest of it is left out.
const NOTE_BYTES_MAX: usize = 2048;

/// The modules as a table, in their order, and what they say about themselves.
pub(super) fn table(modules: &[ModuleReport]) -> String {
    if modules.is_empty() {
        return "no modules\n".into();
    }
    let titles = [
        "name",
        "kind",
        "for",
        "run",
        "state",
        "on failure",
        "failures",
        "hooks",
    ]
    .map(str::to_owned);
    let rows = modules.iter().map(|module| {
        [
            module.name.clone(),
            module.kind.clone(),
            format!("{}{}", module.host.as_deref().unwrap_or("*"), module.path),
            module.run.as_str().to_owned(),
            module.state.as_str().to_owned(),
            module.on_failure.as_str().to_owned(),
            module.failures.to_string(),
            module.hooks.join(", "),
        ]
    });
    let rows: Vec<[String; 8]> = std::iter::once(titles).chain(rows).collect();
    let mut text = aligned(&rows);
    for module in modules {
        for note in &module.notes {
            let _infallible = write!(text, "{}: ", module.name);
            push_visible(&mut text, note, NOTE_BYTES_MAX);
            text.push('\n');
        }
    }
    text
}

/// The modules as a JSON list, in their order.
///
/// # Errors
///
/// None that could be met: names and numbers are all it holds.
pub(super) fn json(modules: &[ModuleReport]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(modules).map(|text| text + "\n")
}

/// What an operator does to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModuleAction {
    Enable,
    Disable,
}

impl ModuleAction {
    /// From the last part of a path.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "enable" => Some(Self::Enable),
            "disable" => Some(Self::Disable),
            _ => None,
        }
    }

    /// What is said once it is done.
    pub(super) const fn done(self) -> &'static str {
        match self {
            Self::Enable => "enabled",
            Self::Disable => "disabled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ExecutionModel, FailurePolicy};
    use crate::modules::report::ModuleState;

    #[test]
    fn note_of_a_module_is_one_line_of_visible_ascii() {
        let report = ModuleReport {
            name: "m".into(),
            kind: "icap".into(),
            host: None,
            path: "/".into(),
            run: ExecutionModel::Threads,
            state: ModuleState::Enabled,
            on_failure: FailurePolicy::Refuse,
            may_store: false,
            hooks: Vec::new(),
            failures: 0,
            notes: vec!["a\u{1b}[2J\nother: b".into(), "x".repeat(9999)],
            metrics: [].into(),
        };
        let table = table(&[report]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].contains("*/   threads  enabled"), "{}", lines[1]);
        assert_eq!(lines[2], "m: a\\u{1b}[2J\\nother: b");
        assert!(lines[3].ends_with("x...") && lines[3].len() < NOTE_BYTES_MAX + 16);
        assert_eq!(lines.len(), 4);
    }
}
