//! Directories that are listed, and files of JSON that are read.

use crate::failure::{During, Failure};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// What is in a directory, in the order of names.
///
/// # Errors
/// It cannot be listed.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let what = || format!("list `{}`", directory.display());
    let entries = std::fs::read_dir(directory).during(what())?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().during(what())?;
    paths.sort();
    Ok(paths)
}

/// The value that a file of JSON has.
///
/// # Errors
/// The file cannot be read, or has something else.
pub fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let name = file.display();
    let text = std::fs::read_to_string(file).during(format_args!("read `{name}`"))?;
    serde_json::from_str(&text).during(format_args!("understand `{name}`"))
}
