//! `weir knobs`: the reference page, made from the declarations.

use crate::messages::{Failure, give};
use weir_proxy::config::{Knob, knobs};

/// Prints every knob as Markdown on stdout.
///
/// # Errors
///
/// When stdout cannot be written.
pub(crate) fn print() -> Result<(), Failure> {
    let entries: Vec<String> = knobs().iter().map(entry).collect();
    give(&format!("# Knobs\n\n{}", entries.join("\n")))
}

fn entry(knob: &Knob) -> String {
    let default = match &knob.default {
        Some(default) => format!("default `{default}`"),
        None => "no default".to_owned(),
    };
    let range = match (&knob.least, &knob.most) {
        (Some(least), Some(most)) => format!(", from `{least}` to `{most}`"),
        _ => String::new(),
    };
    format!(
        "## `{}`\n\n{}: {default}{range}.\n\n{}\n",
        knob.path, knob.form, knob.reason
    )
}
