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
    let folder = root::directory().join("records");
    let mut newest: Option<(Record<B>, String)> = None;
    for entry in std::fs::read_dir(&folder).during("list `records/`")? {
        let entry = entry.during("list `records/`")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_of(B::FILE, &name) {
            continue;
        }
        let record = Record::read(&entry.path())?;
        let is_newer = newest
            .as_ref()
            .is_none_or(|(known, _)| record.begun > known.begun);
        if is_newer && whole(&record) {
            newest = Some((record, format!("records/{name}")));
        }
    }
    newest.ok_or_else(|| {
        Failure::Refused(format!(
            "no record `records/{}-*.json` has all rows of the table",
            B::FILE
        ))
    })
}

fn is_of(chore: &str, name: &str) -> bool {
    let rest = name
        .strip_prefix(chore)
        .and_then(|rest| rest.strip_prefix('-'));
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
