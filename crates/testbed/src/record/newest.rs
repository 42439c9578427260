//! The newest record of a benchmark.

use crate::record::{Benchmark, Record};
use xtask::failure::Failure;
use xtask::files;
use xtask::root;

/// Of a benchmark's records `records/NAME-*.json` that are `whole`, the one that was begun last,
/// and its path.
///
/// # Errors
/// There is none, or a file cannot be read.
pub(crate) fn record<B: Benchmark>(
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

/// Paths `records/NAME` of these names.
pub(crate) fn records(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
    let listed = files::list(&root::directory().join("records"))?;
    let names = listed.iter().filter_map(|path| path.file_name());
    let names = names.map(|name| name.to_string_lossy());
    let wanted = names.filter(|name| is_wanted(name));
    Ok(wanted.map(|name| format!("records/{name}")).collect())
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
