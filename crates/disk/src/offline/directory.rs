//! A directory of a store.

use super::error::OfflineError;
use super::purges::Purges;
use super::segment::SegmentSource;
use crate::format::{
    FormatError, FormatErrorKind, LOCK_FILE, PAGE_BYTES, SUPERBLOCK_FILE, Superblock, Volume,
    segment_number,
};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use weir_policy::Secret;

/// A directory of a store, opened for reading.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    superblock: Superblock,
    segments: Vec<u64>,
    aside: Vec<String>,
    purges: Purges,
    /// Held while we read, so that no process begins to write.
    _lock: Option<File>,
}

impl Directory {
    /// Opens the store in `path`.
    ///
    /// # Errors
    ///
    /// There is none, a process uses it, a newer version wrote it, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, OfflineError> {
        let superblock = read_superblock(path)?;
        let lock = lock(path)?;
        let (segments, aside) = list(path)?;
        let purges = Purges::read(path, superblock.volume)?;
        Ok(Self {
            path: path.to_owned(),
            superblock,
            segments,
            aside,
            purges,
            _lock: lock,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which directory of which store.
    #[must_use]
    pub const fn volume(&self) -> Volume {
        self.superblock.volume
    }

    /// When it was made, in seconds since 1970.
    #[must_use]
    pub const fn made_s(&self) -> u64 {
        self.superblock.made_s
    }

    /// The secret under which keys are made.
    #[must_use]
    pub const fn secret(&self) -> Secret {
        self.superblock.secret
    }

    /// Numbers of its segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> &[u64] {
        &self.segments
    }

    /// Files that were set aside as they could not be read.
    #[must_use]
    pub fn aside(&self) -> &[String] {
        &self.aside
    }

    /// What was purged.
    #[must_use]
    pub const fn purges(&self) -> &Purges {
        &self.purges
    }

    pub(super) fn segment_source(&self) -> SegmentSource<'_> {
        SegmentSource {
            path: &self.path,
            volume: self.volume(),
        }
    }
}

fn read_superblock(directory: &Path) -> Result<Superblock, OfflineError> {
    let path = directory.join(SUPERBLOCK_FILE);
    let file = File::open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound if directory.is_dir() => OfflineError::NoStore {
            path: directory.to_owned(),
        },
        ErrorKind::NotFound => OfflineError::io(directory, error),
        _ => OfflineError::io(&path, error),
    })?;
    let mut bytes = Vec::new();
    file.take(2 * PAGE_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| OfflineError::io(&path, error))?;
    // two copies of one page: the store can be read while one of them is intact. A newer version is
    // refused, never guessed at
    let (first, second) = bytes.split_at(bytes.len().min(PAGE_BYTES));
    let is_newer = |error: &FormatError| matches!(error.kind, FormatErrorKind::Newer { .. });
    Superblock::decode(first)
        .or_else(|error| match Superblock::decode(second) {
            _ if is_newer(&error) => Err(error),
            Err(other) if is_newer(&other) => Err(other),
            second => second.map_err(|_| error),
        })
        .map_err(|error| OfflineError::format(&path, error))
}

/// `None` where there is nothing to lock: a copy may lack the file.
fn lock(directory: &Path) -> Result<Option<File>, OfflineError> {
    let path = directory.join(LOCK_FILE);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OfflineError::io(&path, error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let read = file.by_ref().take(32).read_to_string(&mut process);
            let known = read.is_ok() && !process.trim().is_empty();
            Err(OfflineError::InUse {
                path: directory.to_owned(),
                process: if known { process.trim() } else { "(unknown)" }.to_owned(),
            })
        }
        Err(TryLockError::Error(error)) => Err(OfflineError::io(&path, error)),
    }
}

/// The numbers of the segments in `directory`, and the names of files that were set aside.
pub(crate) fn list(directory: &Path) -> Result<(Vec<u64>, Vec<String>), OfflineError> {
    let wrong = |error| OfflineError::io(directory, error);
    let (mut segments, mut aside) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        let name = name.to_string_lossy();
        if let Some(number) = segment_number(&name) {
            segments.push(number);
        } else if name.ends_with(".aside") {
            aside.push(name.into_owned());
        }
    }
    segments.sort_unstable();
    aside.sort_unstable();
    Ok((segments, aside))
}
