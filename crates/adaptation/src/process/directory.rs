//! The directory of one process: its socket, and what it is configured by.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Names that are tried: another user may have taken some.
const NAMES_MAX: u64 = 1000;

/// The name of the socket.
const SOCKET: &str = "icap.sock";

/// Numbers of directories, in this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that no other user can enter. It is removed with what is in it when it is dropped.
#[derive(Debug)]
pub(super) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// A new one among the temporary files.
    ///
    /// # Errors
    ///
    /// None can be made.
    pub(super) fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        for _ in 0..NAMES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("weir-module-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Where its socket is.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join(SOCKET)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // the process may have removed it
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn directory_is_for_this_user_alone_and_gone_with_what_is_in_it() {
        let first = PrivateDirectory::create().expect("a directory");
        let second = PrivateDirectory::create().expect("another one");
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path())
            .expect("it is there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        fs::write(first.socket(), "").expect("a file");
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
