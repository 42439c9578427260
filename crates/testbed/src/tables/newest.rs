//! The newest record of a benchmark.

use crate::record::{Benchmark, Record};
use xtask::failure::{During, Failure};
use xtask::root;

/// Of a benchmark's records `records/NAME-*.json` that are `whole`, the one that was begun last,
/// and its path.
///
/// # Errors
/// There is none, or a file cannot be read.
pub(super) fn record<B: Benchmark>(
    whole: impl Fn(&Record<B>) -> bool,
) -> Result<(Record<B>, String), Failure> {
    let mut newest: Option<(Record<B>, String)> = None;
    for name in records(|name| is_of(B::FILE, name))? {
        let record = Record::read(&root::directory().join(&name))?;
        let known = newest.as_ref();
        if known.is_none_or(|(known, _)| record.begun > known.begun) && whole(&record) {
            newest = Some((record, name));
        }
    }
    newest.ok_or_else(|| {
        Failure::Refused(format!(
            "no record `records/{}-*.json` has all rows of the table",
            B::FILE
        ))
    })
}

/// Paths `records/NAME` of the names that are wanted.
pub(super) fn records(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
    let listed = std::fs::read_dir(root::directory().join("records"));
    let mut paths = Vec::new();
    for entry in listed.during("list `records/`")? {
        let name = entry.during("list `records/`")?.file_name();
        let name = name.to_string_lossy();
        if is_wanted(&name) {
            paths.push(format!("records/{name}"));
        }
    }
    Ok(paths)
}

fn is_of(chore: &str, name: &str) -> bool {
    let rest = name.strip_prefix(chore);
    let rest = rest.and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| rest.ends_with(".json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_belongs_to_the_command_its_name_starts_with() {
        assert!(is_of("peers", "peers-2026-11-22.json"));
        assert!(!is_of("peers", "peers.json"));
        assert!(!is_of("peers", "peers-2026-11-22.txt"));
        assert!(!is_of("bench", "benches-2026-11-22.json"));
    }
}
