//! Record files: JSON that says by its schema who can read it.

use crate::failure::{During, Failure};
use crate::host;
use crate::root;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// The command that makes a record again.
pub(crate) fn command(chore: &str, arguments: &[String]) -> String {
    let mut words = vec!["cargo xtask", chore];
    words.extend(arguments.iter().map(String::as_str));
    words.join(" ")
}

/// The path that a record is written to: `given` if it was named on the command line, else
/// `records/NAME` in the repository.
///
/// A record below `records/` can be cited by a document, so it must name a commit that has all that
/// was measured. Call this before the measurement begins.
///
/// # Errors
/// The path is below `records/`, and files outside of `records/` have uncommitted changes.
pub(crate) fn place(given: Option<&str>, name: &str) -> Result<PathBuf, Failure> {
    let records = root::directory().join("records");
    let path = given.map_or_else(|| records.join(name), PathBuf::from);
    if is_below(&path, &records) {
        refuse_changes(&path, &host::changes())?;
    }
    // a record names its own file in the command it was made by: the same on every machine
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).ok().map(PathBuf::from));
    Ok(relative.unwrap_or(path))
}

fn is_below(path: &Path, directory: &Path) -> bool {
    std::path::absolute(path).is_ok_and(|path| path.starts_with(directory))
}

fn refuse_changes(path: &Path, changes: &[String]) -> Result<(), Failure> {
    const NAMED_MAX: usize = 5;
    if changes.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = changes.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if changes.len() > NAMED_MAX {
        ", …"
    } else {
        ""
    };
    Err(Failure::Usage(format!(
        "`{}` would be the record of a tree with uncommitted changes: {}{more}\n\
         hint: commit them first, or write the record to a path outside of `records/`",
        path.display(),
        named.join(", ")
    )))
}

/// # Errors
/// The file is not there, is not understood, or has another schema.
pub(crate) fn read<T: DeserializeOwned>(
    file: &Path,
    schema: u32,
    schema_of: impl Fn(&T) -> u32,
) -> Result<T, Failure> {
    let text = std::fs::read_to_string(file).during(format_args!("read `{}`", file.display()))?;
    let record: T =
        serde_json::from_str(&text).during(format_args!("understand `{}`", file.display()))?;
    let found = schema_of(&record);
    if found == schema {
        return Ok(record);
    }
    Err(Failure::Usage(format!(
        "`{}` has schema {found}, this is for {schema}",
        file.display()
    )))
}

/// # Errors
/// The file cannot be written.
pub(crate) fn write<T: Serialize>(record: &T, file: &Path) -> Result<(), Failure> {
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).during(format_args!("make `{}`", parent.display()))?;
    }
    let text = serde_json::to_string_pretty(record).during("write the record as JSON")?;
    std::fs::write(file, text + "\n").during(format_args!("write `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_in_the_records_folder_requires_a_clean_tree() {
        let path = Path::new("records/a.json");
        assert!(refuse_changes(path, &[]).is_ok());
        let changes: Vec<String> = (0..7).map(|n| format!("src/{n}.rs")).collect();
        let refused = refuse_changes(path, &changes).map_err(|failure| failure.to_string());
        let text = refused.expect_err("seven files have changes");
        for part in ["records/a.json", "src/0.rs", "src/4.rs, …", "hint: commit"] {
            assert!(text.contains(part), "`{text}` does not say `{part}`");
        }
        assert!(!text.contains("src/5.rs"), "{text}");
    }

    #[test]
    fn only_paths_below_the_records_folder_count_as_records() {
        let records = root::directory().join("records");
        assert!(is_below(&records.join("a/b.json"), &records));
        assert!(!is_below(&std::env::temp_dir().join("a.json"), &records));
        assert!(!is_below(&root::directory().join("records.json"), &records));
    }

    #[test]
    fn record_outside_the_records_folder_is_always_accepted() {
        let path = std::env::temp_dir().join("a.json");
        let given = path.to_string_lossy().into_owned();
        assert_eq!(place(Some(&given), "b.json").ok(), Some(path));
    }
}
