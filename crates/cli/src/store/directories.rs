//! The directories that are looked into, opened.

use super::flags::Directories;
use crate::messages::{Exit, Failure};
use std::path::PathBuf;
use weir_disk::offline::{Directory, OfflineError};

/// Opens what was named, or the default.
///
/// # Errors
///
/// One of them is no store, is in use, or cannot be read (exit 3); there is no default (exit 2).
pub(super) fn open(named: &Directories) -> Result<Vec<Directory>, Failure> {
    let paths = if named.dir.is_empty() {
        vec![default_directory()?]
    } else {
        named.dir.clone()
    };
    let open = |path: &PathBuf| Directory::open(path).map_err(|error| failure(&error));
    paths.iter().map(open).collect()
}

/// How a store that cannot be read is told.
pub(super) fn failure(error: &OfflineError) -> Failure {
    let hint = match error {
        OfflineError::InUse { .. } => {
            Some("stop that process, or copy the directory and look at the copy")
        }
        OfflineError::NoStore { .. } => Some("name the directory of a store by --dir"),
        _ => None,
    };
    Failure {
        hint: hint.map(str::to_owned),
        ..Failure::outside("cannot read the store", error)
    }
}

/// Where `weir serve` keeps its store unless it is told otherwise.
fn default_directory() -> Result<PathBuf, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache
        .map(|cache| cache.join("weir"))
        .ok_or_else(|| Failure {
            exit: Exit::BadUsage,
            what: "cannot tell where the store is".to_owned(),
            cause: "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
            hint: Some("name its directory by --dir".to_owned()),
        })
}
