//! The disk tier as configured: its directories, its size, its counters.

use crate::config::{self, Config, DISK_BYTES_DEFAULT};
use crate::server::advice;
use crate::server::run::StartError;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_disk::files::{Access, Files};
use weir_disk::{DirectoryConfig, Disk, DiskConfig, DiskUse, NoticeHandler, OpenError, Verify};
use weir_measure::{DiskRefusal, Metric, Snapshot};
use weir_policy::admission::Rule;
use weir_store::MemoryStore;

/// If the configuration does not set the size of the store, it is at most one part in so many of
/// what is free.
const DEFAULT_SHARE: u64 = 10;

/// The disk tier of a proxy, as printed at its start.
#[derive(Clone, Debug, Default)]
pub struct DiskTier {
    /// Where it is, and how much it may take; none if there is none.
    pub directories: Vec<DirectoryConfig>,
    /// Why there is none although one is configured.
    pub problem: Option<String>,
}

/// Opens it. If the configuration names no directory and the default one cannot be used, the proxy
/// runs without a store.
///
/// # Errors
///
/// A directory that is configured and cannot be used; one that another process uses; one of a newer
/// version.
pub(crate) fn open(
    config: &Config,
    files: &Arc<dyn Files>,
    notices: NoticeHandler,
) -> Result<(Option<Arc<Disk>>, DiskTier), StartError> {
    if !config.disk.enabled || !config.cache.enabled {
        return Ok((None, DiskTier::default()));
    }
    let without = |problem: String| {
        let directories = Vec::new();
        let problem = Some(problem);
        Ok((
            None,
            DiskTier {
                directories,
                problem,
            },
        ))
    };
    let is_default = config.disk.directories.is_empty();
    let directories = match directories(&config.disk, files.as_ref()) {
        Ok(directories) => directories,
        Err(problem) if is_default => return without(problem.to_string()),
        Err(problem) => return Err(problem),
    };
    match Disk::open(
        disk_config(config, &directories),
        Arc::clone(files),
        notices,
    ) {
        Ok(disk) => {
            let tier = DiskTier {
                directories,
                problem: None,
            };
            Ok((Some(disk), tier))
        }
        Err(error @ (OpenError::TooSmall { .. } | OpenError::Io { .. })) if is_default => {
            without(format!("cannot {error}"))
        }
        Err(error) => Err(start_error(error, directories.len())),
    }
}

fn disk_config(config: &Config, directories: &[DirectoryConfig]) -> DiskConfig {
    DiskConfig {
        verify: match config.disk.verify {
            config::Verify::Device => Verify::FromDevice,
            config::Verify::Always => Verify::Always,
        },
        scrub_bytes_per_s: config.disk.scrub.bytes_per_s(),
        ..DiskConfig::new(directories.to_vec())
    }
}

/// The directories with their sizes: those of the configuration, or the one under the user's cache
/// directory.
fn directories(disk: &config::Disk, files: &dyn Files) -> Result<Vec<DirectoryConfig>, StartError> {
    if !disk.directories.is_empty() {
        let sized = |directory: &config::Directory| sized(directory, files);
        return disk.directories.iter().map(sized).collect();
    }
    let path = default_disk_path().ok_or_else(|| StartError {
        hint: None,
        what: "find the user's cache directory".into(),
        cause: io::Error::other("neither XDG_CACHE_HOME nor HOME is set"),
    })?;
    let directory = config::Directory { path, size: None };
    Ok(vec![sized(&directory, files)?])
}

fn sized(directory: &config::Directory, files: &dyn Files) -> Result<DirectoryConfig, StartError> {
    let path = directory.path.clone();
    let failed = |cause| StartError {
        hint: advice::of_place(&path, DIRECTORY_SETTING, &cause),
        what: format!(
            "use the directory `{}` for stored responses",
            path.display()
        ),
        cause,
    };
    let bytes = match directory.size {
        Some(size) => size.bytes(),
        None => {
            files.create_directory(&path).map_err(failed)?;
            let free = files.space(&path).map_err(failed)?.free;
            default_bytes(free, own_bytes(files, &path))
        }
    };
    Ok(DirectoryConfig { path, bytes })
}

/// The size of a store if the configuration does not set it. The bytes that the store has already
/// count as free.
fn default_bytes(free: u64, own: u64) -> u64 {
    let share = free.saturating_add(own) / DEFAULT_SHARE;
    let mebibyte = 1 << 20;
    share.min(DISK_BYTES_DEFAULT) / mebibyte * mebibyte
}

/// The default directory of stored responses; `None` where nothing says where the user's cache is.
#[must_use]
pub fn default_disk_path() -> Option<PathBuf> {
    default_path(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))
}

/// Where another directory for stored responses is named.
pub(crate) const DIRECTORY_SETTING: &str = "`--disk-dir` or `disk.directories`";

/// What the system said, and what to do.
fn start_error(error: OpenError, directories: usize) -> StartError {
    let hint = match &error {
        // the process is known by its file in the directory
        OpenError::InUse { pid, .. } if directories > 1 && *pid == Some(std::process::id()) => {
            "it is named twice, as by a symbolic link or a mount point: leave one of them in `disk.directories`".into()
        }
        OpenError::InUse { .. } => {
            "two cannot share it: stop the other, or give this one another place (`--disk-dir`, `--disk off`)".into()
        }
        OpenError::TooSmall { .. } => "raise its size".into(),
        OpenError::Mixed { .. } => "empty it, or take it out of `disk.directories`".into(),
        OpenError::Unreadable { path, .. } => set_aside(path.parent().unwrap_or(path)),
        _ => String::new(),
    };
    let text = error.to_string();
    let (what, why) = text
        .split_once(": ")
        .unwrap_or((&text, "it cannot be used"));
    let why = why.to_owned();
    let (hint, cause) = match error {
        OpenError::Io { path, error } => {
            (advice::of_place(&path, DIRECTORY_SETTING, &error), error)
        }
        _ => {
            let hint = (!hint.is_empty()).then_some(hint);
            (hint, io::Error::other(why))
        }
    };
    StartError {
        what: what.to_owned(),
        cause,
        hint,
    }
}

/// Advice for a store whose secret is lost.
fn set_aside(store: &Path) -> String {
    let quoted = |suffix: &str| {
        let text = format!("{}{suffix}", store.display());
        format!("'{}'", text.replace('\'', r"'\''"))
    };
    format!(
        "nothing in the directory can be found without it. To begin with an empty store, set the directory aside and start \
         again: `mv {} {}` (empty it instead if it is a mount point); or run without one: `--disk off`",
        quoted(""),
        quoted(".damaged")
    )
}

/// XDG Base Directory Specification: a path that is not absolute is ignored.
fn default_path(
    cache_home: Option<std::ffi::OsString>,
    home: Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    let absolute = |path: std::ffi::OsString| {
        let path = PathBuf::from(path);
        path.is_absolute().then_some(path)
    };
    let cache = cache_home
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".cache")))?;
    Some(cache.join("weir"))
}

/// Bytes of the segments in a directory.
pub(crate) fn own_bytes(files: &dyn Files, path: &Path) -> u64 {
    let names = files.list(path).unwrap_or_default();
    let segments = names.iter().filter(|name| name.ends_with(".seg"));
    let length = |name: &String| {
        let file = files.open(&path.join(name), Access::Read).ok()?;
        file.len().ok()
    };
    segments.filter_map(length).sum()
}

/// `store` in front of `disk`.
pub(crate) fn behind(store: MemoryStore, disk: Arc<Disk>, config: &config::Disk) -> MemoryStore {
    let rule = match config.admission {
        config::Admission::Always => Rule::Always,
        config::Admission::SecondRequest => Rule::SecondRequest,
        config::Admission::Small => Rule::Small {
            largest: config.admission_largest.bytes(),
        },
    };
    store.with_disk(disk, rule, config.largest_response.bytes())
}

/// Enters what the disk tier counts.
pub(crate) fn count(usage: &DiskUse, snapshot: &mut Snapshot) {
    for (metric, value) in [
        (Metric::DiskEntries, usage.entries),
        (Metric::DiskUsedBytes, usage.bytes),
        (Metric::DiskBudgetBytes, usage.bytes_max),
        (Metric::DiskIndexBytes, usage.index_bytes),
        (Metric::DiskSegments, usage.segments),
        (Metric::DiskQueuedBytes, usage.queue_bytes),
        (Metric::DiskLoading, usage.loading),
        (Metric::DiskFenced, usage.fenced),
        (Metric::DiskStored, usage.stored),
        (Metric::DiskRefused(DiskRefusal::Busy), usage.refused_busy),
        (Metric::DiskRefused(DiskRefusal::Other), usage.refused_other),
        (Metric::DiskRefused(DiskRefusal::Lost), usage.lost),
        (Metric::DiskEvicted, usage.evicted),
        (Metric::DiskWrittenBytes, usage.written_bytes),
        (Metric::DiskCarriedBytes, usage.carried_bytes),
        (Metric::DiskReadBytes, usage.read_bytes),
        (Metric::DiskScrubbedBytes, usage.scrubbed_bytes),
        (Metric::DiskDamaged, usage.damaged),
        (Metric::DiskPurgesRecovered, usage.purges_recovered),
        (Metric::DiskErrors, usage.read_errors + usage.write_errors),
    ] {
        snapshot.set(metric, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_store_is_in_the_cache_directory_of_the_user() {
        let path = |cache: Option<&str>, home: Option<&str>| {
            let path = default_path(cache.map(Into::into), home.map(Into::into));
            path.map(|path| path.display().to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(path(Some("/c"), Some("/h")), some("/c/weir"));
        assert_eq!(path(None, Some("/h")), some("/h/.cache/weir"));
        assert_eq!(path(Some("c"), Some("/h")), some("/h/.cache/weir"));
        assert_eq!(path(Some(""), Some("h")), None);
        assert_eq!(path(None, None), None);
    }

    #[test]
    fn default_store_size_is_a_tenth_of_free_and_own_space_up_to_10_gib() {
        let gibibyte = 1 << 30;
        assert_eq!(default_bytes(200 * gibibyte, 0), 10 * gibibyte);
        assert_eq!(default_bytes(20 * gibibyte, 0), 2 * gibibyte);
        assert_eq!(default_bytes(18 * gibibyte, 2 * gibibyte), 2 * gibibyte);
        assert_eq!(default_bytes(9 << 20, 0), 0);
        assert_eq!(default_bytes(u64::MAX, 1), 10 * gibibyte);
    }
}
