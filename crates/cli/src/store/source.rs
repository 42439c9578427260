//! What reads a store: this program, from its files, or the proxy that uses it.

use super::flags::StoreFlags;
use super::online::OnlineStore;
use crate::effective;
use crate::messages::{Failure, tell};
use crate::operate::{self, AdminFlags};
use crate::serve::flags::ServeFlags;
use std::path::{Path, PathBuf};
use weir_disk::offline::{Directory, OfflineError};
use weir_proxy::config::AdminAddress;

/// A store that can be looked into.
pub(super) enum Source {
    /// No process uses it.
    Files(Vec<Directory>),
    /// A proxy uses it.
    Proxy(OnlineStore),
}

/// Opens what was named, or what `weir serve` uses; if a proxy uses that, it is asked. `command` is
/// what a message tells to enter.
///
/// # Errors
///
/// One of the directories is no store, or cannot be read, or the proxy that uses it cannot be asked
/// (exit 3); there is no default, or the token is wrong (exit 2).
pub(super) fn open(store: &StoreFlags, command: &str) -> Result<Source, Failure> {
    if store.admin.is_some() {
        return OnlineStore::find(&store.proxy()).map(Source::Proxy);
    }
    let paths = if store.dir.is_empty() {
        of_serve(store.config.as_deref())?
    } else {
        store.dir.clone()
    };
    if let Some(config) = &store.config {
        tell_of_others(config, &paths);
    }
    let mut directories = Vec::new();
    for path in &paths {
        match Directory::open(path) {
            Ok(directory) => directories.push(directory),
            Err(error @ OfflineError::InUse { .. }) => return in_use(store, &error, command),
            Err(error) => return Err(failure(&error)),
        }
    }
    Ok(Source::Files(directories))
}

/// The proxy that uses the store, unless directories are named: it may have further ones.
fn in_use(store: &StoreFlags, error: &OfflineError, command: &str) -> Result<Source, Failure> {
    let OfflineError::InUse { process, .. } = error else {
        return Err(failure(error));
    };
    let address = operate::admin_of_process(process);
    if store.dir.is_empty() {
        // the process that uses it is meant, whatever address the file has by now
        let flags = AdminFlags::new(
            address.clone(),
            store.config.clone(),
            store.token_file.clone(),
        );
        let found = match (&address, &store.config) {
            // that it cannot be asked has a reason of its own: its token cannot be read
            (Some(_), _) => Some(OnlineStore::find(&flags)?),
            (None, Some(_)) => OnlineStore::find(&flags).ok(),
            (None, None) => None,
        };
        if let Some(proxy) = found {
            tell(&format!(
                "note: process {process} uses the store: it is asked at {}",
                proxy.address()
            ));
            return Ok(Source::Proxy(proxy));
        }
    }
    let address = match address {
        Some(address @ (AdminAddress::At(_) | AdminAddress::Unix(_))) => address.to_string(),
        Some(AdminAddress::Off) | None => "ADDR".to_owned(),
    };
    let which = match address.as_str() {
        "ADDR" => ", the address of its admin interface",
        _ => "",
    };
    Err(failure(error).hint(format!(
        "ask that process: `weir store {command} --admin {address}`{which}; or stop it, or look at a copy of the directory"
    )))
}

/// Tells of each proxy that was started with this config file, and whose store is in other
/// directories than the file has by now.
fn tell_of_others(config: &Path, paths: &[PathBuf]) {
    let listed = |paths: &[PathBuf]| {
        let each = paths.iter().map(|path| format!("`{}`", path.display()));
        each.collect::<Vec<_>>().join(", ")
    };
    let whole = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let named: Vec<PathBuf> = paths.iter().map(whole).collect();
    for (process, used) in operate::stores_of_config(config) {
        if used != named {
            tell(&format!(
                "note: process {process}, which was started with this file, has its store in {}, and the file says {}: a restart changes that; `--dir` names the one that you mean",
                listed(&used),
                listed(&named)
            ));
        }
    }
}

/// The failure for a store that cannot be read.
pub(super) fn failure(error: &OfflineError) -> Failure {
    let hint = match error {
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
    if !config.disk.enabled {
        let why = "the config file says `enabled = false` in `[disk]`: nothing is kept on disk";
        return Err(Failure::usage("cannot tell where the store is", why)
            .hint("name its directory by --dir"));
    }
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
