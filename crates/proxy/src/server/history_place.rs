//! Where the history of the admin interface outlives the process.

use crate::admin::{HISTORY_FILE_NAME, HistoryFile};
use crate::config::{Config, HistoryPlace};
use crate::log::access_log::Say;
use crate::server::advice;
use crate::server::run::StartError;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file, if there is to be one. One that nothing names is not worth a start that fails: then
/// the history is in memory alone, and that is said.
///
/// # Errors
///
/// A file that the configuration names cannot be used.
pub(super) fn open(
    config: &Config,
    store: Option<&Path>,
    say: &Say,
) -> Result<Option<HistoryFile>, StartError> {
    let state = std::env::var_os("STATE_DIRECTORY");
    match &config.admin.history_file {
        HistoryPlace::Off => Ok(None),
        HistoryPlace::File(path) => {
            let file = HistoryFile::open(path, Arc::clone(say));
            file.map(Some).map_err(|cause| StartError {
                hint: advice::of_place(path, "`admin.history_file`", &cause),
                what: format!("use the file of the history `{}`", path.display()),
                cause,
            })
        }
        HistoryPlace::Auto => {
            let Some(path) = automatic(state.as_deref(), store) else {
                return Ok(None);
            };
            let file = HistoryFile::open(&path, Arc::clone(say));
            if let Err(error) = &file {
                let path = path.display();
                say(&format!(
                    "the history is kept in memory alone, as `{path}` cannot be used: {error}"
                ));
            }
            Ok(file.ok())
        }
    }
}

/// In the first directory of `state`, the value of `STATE_DIRECTORY` (systemd.exec(5)), or that of
/// the store on disk.
fn automatic(state: Option<&OsStr>, store: Option<&Path>) -> Option<PathBuf> {
    Some(directory(state, store)?.join(HISTORY_FILE_NAME))
}

/// The directory in which small files outlive the process: the first one of `STATE_DIRECTORY`, else
/// that of the store on disk.
pub(super) fn automatic_directory(store: Option<&Path>) -> Option<PathBuf> {
    directory(std::env::var_os("STATE_DIRECTORY").as_deref(), store).map(Path::to_owned)
}

fn directory<'a>(state: Option<&'a OsStr>, store: Option<&'a Path>) -> Option<&'a Path> {
    let first = state.and_then(|state| state.as_bytes().split(|byte| *byte == b':').next());
    let first = first.map(|first| Path::new(OsStr::from_bytes(first)));
    first.filter(|first| first.is_absolute()).or(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_managers_directory_is_taken_before_that_of_the_store() {
        let check = |state: Option<&str>, store: Option<&str>, expected: Option<&str>| {
            let found = automatic(state.map(OsStr::new), store.map(Path::new));
            assert_eq!(
                found.as_deref(),
                expected.map(Path::new),
                "{state:?} {store:?}"
            );
        };
        check(None, None, None);
        check(None, Some("/store"), Some("/store/weir-history"));
        check(Some("/state"), Some("/store"), Some("/state/weir-history"));
        check(Some("/state:/other"), None, Some("/state/weir-history"));
        check(Some(""), Some("/store"), Some("/store/weir-history"));
        check(Some("relative"), None, None);
    }
}
