//! The rules of the operator that a simulation runs.

use crate::file::Document;
use crate::messages::{Failure, tell};
use std::path::Path;
use std::sync::Arc;
use weir_policy::rule::RuleSet;
use weir_sim::{LeftOutRule, simulated};

/// The `[[rule]]` tables of a config file, as far as a trace can tell what they are for. Those that
/// it cannot are named on stderr.
///
/// # Errors
///
/// The file cannot be read, or is no good config file of `weir serve` (exit 2).
pub(super) fn of_file(path: &Path) -> Result<Arc<RuleSet>, Failure> {
    let document = Document::read(path)?;
    let config = document.parse()?;
    let mistakes = config.mistakes();
    if !mistakes.is_empty() {
        return Err(document.contradictions(&mistakes));
    }
    let (kept, left_out) = simulated(&config.rule_specs());
    for rule in &left_out {
        tell(&note(rule));
    }
    let rules = RuleSet::new(kept);
    rules.map(Arc::new).map_err(|error| {
        let what = format!("cannot simulate the rules of `{}`", path.display());
        Failure::usage(what, error)
    })
}

fn note(rule: &LeftOutRule) -> String {
    let LeftOutRule {
        rule,
        key,
        is_whole,
    } = rule;
    match is_whole {
        true => format!("note: the rule `{rule}` is left out: a trace has nothing for `{key}`"),
        false => format!("note: `{key}` of the rule `{rule}` is not simulated"),
    }
}
