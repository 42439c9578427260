//! Which proxies run for this user on this machine: each writes a file that says where its admin
//! interface is.
//!
//! The file is locked while the process lives, so that one left behind by `kill -9` is known by its
//! lock being free, whatever process has its number by then. The folder is the user's own: another
//! user that could write there would be given the token.

use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use weir_proxy::config::AdminAddress;

/// The longest file read, in bytes: some paths and an address.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A proxy that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its process.
    pub(crate) pid: u32,
    /// Its admin interface, as bound.
    pub(crate) admin: AdminAddress,
    /// The file with the token that it requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// The config file that it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,
    /// The directories of its store, which a restart alone changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) store: Vec<PathBuf>,
}

/// A file that says that this process runs; it is removed when dropped.
#[derive(Debug)]
pub(crate) struct RunFile {
    path: PathBuf,
    file: File,
}

impl RunFile {
    /// Says that `running` does.
    ///
    /// # Errors
    ///
    /// The folder or the file cannot be made, or the folder is not this user's own.
    pub(crate) fn write(running: &Running) -> io::Result<Self> {
        let folder = folder();
        if let Err(error) = DirBuilder::new().mode(0o700).create(&folder)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        check_owner(&folder)?;
        // under another name until it is locked: unlocked, it would be taken for one left behind
        let path = folder.join(format!("{}.toml", running.pid));
        let unlocked = folder.join(format!("{}.new", running.pid));
        let _left_behind = fs::remove_file(&unlocked);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unlocked)?;
        file.lock()?;
        let mut run_file = Self {
            path: unlocked,
            file,
        };
        run_file.rewrite(running)?;
        fs::rename(&run_file.path, &path)?;
        run_file.path = path;
        Ok(run_file)
    }

    /// Says something else of the same process.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn rewrite(&mut self, running: &Running) -> io::Result<()> {
        let text = toml::to_string(running).map_err(io::Error::other)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // what cannot be removed is unlocked in a moment
        let _ = fs::remove_file(&self.path);
    }
}

/// The proxies that run, in the order of their processes. Files left behind are removed.
///
/// # Errors
///
/// The folder cannot be read, or is not this user's own.
pub(crate) fn all() -> io::Result<Vec<Running>> {
    let folder = folder();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    check_owner(&folder)?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            all.extend(read(&path));
        }
    }
    all.sort_by_key(|running| running.pid);
    Ok(all)
}

/// What a file says, if its process lives. One that vanishes or cannot be read is left out.
fn read(path: &Path) -> Option<Running> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            return None;
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    toml::from_str(&text).ok()
}

/// Where the files are: under `XDG_RUNTIME_DIR`, or `/run` for root, or else the folder for
/// temporary files.
pub(crate) fn folder() -> PathBuf {
    let given = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = rustix::process::geteuid();
    match given.filter(|path| path.is_absolute()) {
        Some(path) => path.join("weir"),
        None if user.is_root() => PathBuf::from("/run/weir"),
        None => env::temp_dir().join(format!("weir-{}", user.as_raw())),
    }
}

/// Refuses a folder in which another user could choose the address that gets the token.
fn check_owner(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`{}` is not a folder of this user that nobody else can write to",
        folder.display()
    )))
}
