//! The newest record of a chore.

use crate::failure::{During, Failure};
use crate::root;
use serde::de::DeserializeOwned;

/// What a record says of itself, whatever it holds.
pub(crate) trait Begun: DeserializeOwned {
    /// When its measurement began, `YYYY-MM-DDThh:mm:ssZ`.
    fn begun(&self) -> &str;
}

/// Of the records `records/CHORE-*.json` that are `whole`, the one that was begun last, and its
/// path.
///
/// # Errors
/// There is none, or a file cannot be read.
pub(super) fn record<T: Begun>(
    chore: &str,
    whole: impl Fn(&T) -> bool,
) -> Result<(T, String), Failure> {
    let folder = root::directory().join("records");
    let mut newest: Option<(T, String)> = None;
    for entry in std::fs::read_dir(&folder).during("list `records/`")? {
        let entry = entry.during("list `records/`")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_of(chore, &name) {
            continue;
        }
        let text =
            std::fs::read_to_string(entry.path()).during(format_args!("read `records/{name}`"))?;
        let record: T =
            serde_json::from_str(&text).during(format_args!("understand `records/{name}`"))?;
        let is_newer = newest
            .as_ref()
            .is_none_or(|(known, _)| record.begun() > known.begun());
        if is_newer && whole(&record) {
            newest = Some((record, format!("records/{name}")));
        }
    }
    newest.ok_or_else(|| {
        Failure::Refused(format!(
            "no record `records/{chore}-*.json` has all rows of the table"
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
