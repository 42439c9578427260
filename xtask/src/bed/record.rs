//! Record files: JSON that says by its schema who can read it.

use crate::failure::{During, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The command that makes a record again.
pub(crate) fn command(chore: &str, arguments: &[String]) -> String {
    let mut words = vec!["cargo xtask", chore];
    words.extend(arguments.iter().map(String::as_str));
    words.join(" ")
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
