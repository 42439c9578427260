//! `weir settings`: the reference page, made from the declarations.

use crate::messages::{Failure, give};
use weir_proxy::config::{Setting, settings};

/// Prints every setting as Markdown on stdout.
///
/// # Errors
///
/// When stdout cannot be written.
pub(crate) fn print() -> Result<(), Failure> {
    let entries: Vec<String> = settings().iter().map(entry).collect();
    give(&format!("# Settings\n\n{}", entries.join("\n")))
}

fn entry(setting: &Setting) -> String {
    let default = match &setting.default {
        Some(default) => format!("default `{default}`"),
        None => "no default".to_owned(),
    };
    let range = match (&setting.minimum, &setting.maximum) {
        (Some(minimum), Some(maximum)) => format!(", from `{minimum}` to `{maximum}`"),
        _ => String::new(),
    };
    format!(
        "## `{}`\n\n{}: {default}{range}.\n\n{}\n",
        setting.path, setting.form, setting.reason
    )
}
