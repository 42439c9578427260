//! `weir bench scenarios`.

use super::failure;
use super::flags::ScenariosFlags;
use crate::messages::{Failure, give};
use weir_workload::Scenario;

/// Lists them, or prints one.
///
/// # Errors
/// There is none of that name.
pub(super) fn scenarios(flags: &ScenariosFlags) -> Result<(), Failure> {
    let Some(name) = &flags.name else {
        return give(&list()?);
    };
    // its error names the ones that are known
    Scenario::built_in(name).map_err(|error| failure::scenario(name, &error))?;
    give(Scenario::built_in_text(name).unwrap_or_default())
}

fn list() -> Result<String, Failure> {
    let width = Scenario::names().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for name in Scenario::names() {
        let scenario = Scenario::built_in(name).map_err(|error| failure::scenario(name, &error))?;
        let about = scenario
            .about
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        for (index, line) in wrapped(&about).iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            text.push_str(&format!("{name:<width$}  {line}\n"));
        }
    }
    Ok(text)
}

/// Columns of a description.
const WIDTH: usize = 80;

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is at least one");
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
