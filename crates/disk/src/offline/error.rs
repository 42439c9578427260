//! What keeps the reader from reading, and what it finds wrong.

use crate::format::FormatError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store, or something of it, cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum OfflineError {
    /// The file system says no.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// Bytes are not what they should be.
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: FormatError,
    },
    /// A process uses the directory.
    InUse {
        /// The directory.
        path: PathBuf,
        /// What its lock file says: the process id.
        process: String,
    },
    /// There is no superblock.
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The output of the content failed.
    Output(io::Error),
}

impl OfflineError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn format(path: &Path, error: FormatError) -> Self {
        Self::Format {
            path: path.to_owned(),
            error,
        }
    }
}

impl OfflineError {
    /// Whether a file is not there: of a store in use, the oldest segments leave at any time.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for OfflineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Format { path, error } => write!(f, "{}: {error}", path.display()),
            Self::InUse { path, process } => {
                write!(f, "{}: in use by process {process}", path.display())
            }
            Self::NoStore { path } => write!(
                f,
                "{}: no store is here (there is no `{}`)",
                path.display(),
                crate::format::SUPERBLOCK_FILE
            ),
            Self::Output(error) => write!(f, "the output: {error}"),
        }
    }
}

impl std::error::Error for OfflineError {}

/// Something that is wrong with a store that can be read otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the file in the directory.
    pub file: String,
    /// Offset in it, in bytes.
    pub at: u64,
    /// What is wrong there.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(file: &str, at: u64, what: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            at,
            what: what.to_string(),
        }
    }

    pub(crate) fn of(file: &str, error: &FormatError) -> Self {
        let what = format!("{}: {}", error.item, error.kind);
        Self::new(file, error.at, what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} offset {}: {}", self.file, self.at, self.what)
    }
}
