//! Why an operation of the store failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a store cannot be opened: an operator's matter.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// No directory is configured.
    NoDirectory,
    /// A directory's share is too small for [`crate::SEGMENTS_MIN`] segments.
    TooSmall {
        /// The directory.
        path: PathBuf,
        /// The least it needs.
        bytes_min: u64,
    },
    /// Another process has it open.
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other's process id, if it has written it down.
        pid: Option<u32>,
    },
    /// The store was written by a newer version.
    Newer {
        /// The file that says so.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest one that is understood here.
        known: u32,
    },
    /// The file that identifies the store cannot be understood.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Two directories belong to different stores: their digests were made with different secrets.
    Mixed {
        /// The one that does not fit the first.
        path: PathBuf,
    },
    /// The directory or a file in it cannot be used.
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDirectory => write!(f, "open a store without a directory"),
            Self::TooSmall { path, bytes_min } => write!(
                f,
                "open the store `{}`: its share is below {bytes_min} bytes",
                path.display()
            ),
            Self::InUse {
                path,
                pid: Some(pid),
            } => write!(
                f,
                "open the store `{}`: process {pid} has it open",
                path.display()
            ),
            Self::InUse { path, pid: None } => write!(
                f,
                "open the store `{}`: another process has it open",
                path.display()
            ),
            Self::Newer { path, found, known } => write!(
                f,
                "read `{}`: it has format version {found} and this program knows up to {known}; use a newer program or another directory",
                path.display()
            ),
            Self::Unreadable { path, what } => write!(f, "read `{}`: {what}", path.display()),
            Self::Mixed { path } => write!(
                f,
                "open the store `{}`: it belongs to another store than the first directory",
                path.display()
            ),
            Self::Io { path, error } => write!(f, "use `{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a response is not stored. It is the store's matter: the client gets it whole all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// What waits to be written has reached its limit: the device does not keep up.
    Busy,
    /// More bytes than the store takes in one piece or in all.
    TooLarge,
    /// The directory failed too often and rests.
    Fenced,
    /// It was requested before a purge that covers it, or before the stored record.
    Outdated,
    /// Not all of its bytes could be written.
    Incomplete,
    /// The store is being closed.
    Closed,
}

impl Refused {
    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "disk-busy",
            Self::TooLarge => "disk-too-large",
            Self::Fenced => "disk-fenced",
            Self::Outdated => "disk-outdated",
            Self::Incomplete => "disk-incomplete",
            Self::Closed => "disk-closed",
        }
    }
}

/// Why bytes could not be read. To the request it is a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadError {
    /// Evicted, purged or replaced meanwhile, or another key's record.
    Gone,
    /// The bytes are not those that were written; the record is forgotten.
    Damaged,
    /// The device said no.
    Device,
    /// Too many reads wait.
    Busy,
    /// The directory failed too often and rests.
    Fenced,
    /// The store is closed.
    Closed,
}

impl ReadError {
    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Damaged => "damaged",
            Self::Device => "device",
            Self::Busy => "busy",
            Self::Fenced => "fenced",
            Self::Closed => "closed",
        }
    }
}

/// A purge is in force in this process, but might not survive it: the journal could not be written.
/// The directory is emptied before it is used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeError {
    /// The directory whose journal failed.
    pub path: PathBuf,
}

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "make the purge durable in `{}`; the directory is emptied before it is used again",
            self.path.display()
        )
    }
}

impl std::error::Error for PurgeError {}

/// The index and the files disagree: our mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// What is wrong, one line each, at most [`crate::COMPLAINTS_MAX`].
    pub complaints: Vec<String>,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "check the store: {}", self.complaints.join("; "))
    }
}

impl std::error::Error for CheckError {}
