//! The directories that are looked into, opened.

use super::flags::Directories;
use crate::effective;
use crate::messages::Failure;
use crate::serve::flags::ServeFlags;
use std::path::{Path, PathBuf};
use weir_disk::offline::{Directory, OfflineError};

/// Opens what was named, or what `weir serve` uses.
///
/// # Errors
///
/// One of them is no store, is in use, or cannot be read (exit 3); there is no default (exit 2).
pub(super) fn open(named: &Directories) -> Result<Vec<Directory>, Failure> {
    let paths = if named.dir.is_empty() {
        of_serve(named.config.as_deref())?
    } else {
        named.dir.clone()
    };
    let open = |path: &PathBuf| Directory::open(path).map_err(|error| failure(&error));
    paths.iter().map(open).collect()
}

/// The failure for a store that cannot be read.
pub(super) fn failure(error: &OfflineError) -> Failure {
    let hint = match error {
        OfflineError::InUse { .. } => {
            Some("stop that process, or copy the directory and look at the copy")
        }
        OfflineError::NoStore { .. } => Some("name the directory of a store by --dir"),
        _ => None,
    };
    Failure::outside("cannot read the store", error).hint_if(hint.map(str::to_owned))
}

/// Where `weir serve` keeps its store: by its config file, or by default.
fn of_serve(config: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    let config = effective::load(&ServeFlags {
        config: config.map(Path::to_owned),
        ..ServeFlags::default()
    })?;
    let directories = config.disk.directories;
    if !directories.is_empty() {
        return Ok(directories.into_iter().map(|it| it.path).collect());
    }
    let path = weir_proxy::default_disk_path().ok_or_else(|| {
        Failure::usage(
            "cannot tell where the store is",
            "neither XDG_CACHE_HOME nor HOME is set",
        )
        .hint("name its directory by --dir")
    })?;
    Ok(vec![path])
}
