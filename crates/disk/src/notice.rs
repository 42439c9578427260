//! Events for the operator. The proxy writes them to its log.

use std::fmt;
use std::path::PathBuf;

/// One event. Frequent ones are reported at most once in [`NOTICE_INTERVAL_MS`] a directory, with a
/// count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A segment could not be read at all and was renamed.
    SetAside {
        /// Its new name.
        path: PathBuf,
        /// What was wrong.
        why: String,
    },
    /// The purge journal had lost entries or could not be read: everything older is dropped.
    JournalDamaged {
        /// The journal.
        path: PathBuf,
        /// What was wrong.
        why: String,
    },
    /// One copy of the purge journal was damaged, and the other had what it lacked.
    JournalRecovered {
        /// The journal.
        path: PathBuf,
        /// Entries that one copy only had.
        entries: u64,
        /// What was wrong with the first of them in the other copy.
        why: String,
    },
    /// A directory failed too often; it rests and is tried again.
    Fenced {
        /// The directory.
        path: PathBuf,
        /// The last error.
        why: String,
        /// Until it is tried again, in milliseconds.
        rest_ms: u64,
    },
    /// A directory works again.
    Unfenced {
        /// The directory.
        path: PathBuf,
    },
    /// Bytes did not verify.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// How many more there were since the last notice.
        more: u64,
    },
    /// The device said no.
    Failed {
        /// The directory.
        path: PathBuf,
        /// Doing what.
        doing: &'static str,
        /// What the system said.
        why: String,
        /// How many more there were since the last notice.
        more: u64,
    },
    /// There is no room on the file system: something else has it, too.
    Full {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        why: String,
        /// How often it did since the last notice.
        more: u64,
    },
    /// Stored responses cannot be read past the page cache: all reads go through it.
    Indirect {
        /// The directory.
        path: PathBuf,
    },
    /// The system does no reads side by side: each of them takes a thread that waits for it.
    OneByOne {
        /// The directory.
        path: PathBuf,
        /// Threads that read.
        threads: usize,
    },
    /// The system does not tell of a range what the page cache has of it: each page is read.
    PageByPage {
        /// The directory.
        path: PathBuf,
    },
    /// The index is complete.
    Ready {
        /// The directory.
        path: PathBuf,
        /// Stored responses in it.
        entries: u64,
        /// Since the store was opened, in milliseconds.
        took_ms: u64,
    },
}

/// Shortest time between two notices of one kind about one directory.
pub const NOTICE_INTERVAL_MS: u64 = 10_000;

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside { path, why } => {
                write!(f, "a segment was set aside as `{}`: {why}", path.display())
            }
            Self::JournalDamaged { path, why } => write!(
                f,
                "the purge journal `{}` is damaged ({why}): what was stored before is dropped",
                path.display()
            ),
            Self::JournalRecovered { path, entries, why } => write!(
                f,
                "one copy of the purge journal `{}` is damaged ({why}): {entries} entries were read from the other copy, \
                 nothing is lost, and both are written anew",
                path.display()
            ),
            Self::Fenced { path, why, rest_ms } => write!(
                f,
                "the store `{}` rests for {rest_ms} ms after repeated errors: {why}",
                path.display()
            ),
            Self::Unfenced { path } => write!(f, "the store `{}` works again", path.display()),
            Self::Damaged { path, offset, more } => {
                let path = path.display();
                write!(
                    f,
                    "damaged bytes in `{path}` at {offset}: they are not sent, and are fetched again when they are needed"
                )?;
                match more {
                    0 => Ok(()),
                    more => write!(f, " ({more} more since the last such note)"),
                }
            }
            Self::Failed {
                path,
                doing,
                why,
                more,
            } => write!(
                f,
                "failed to {doing} in `{}`: {why} ({more} more)",
                path.display()
            ),
            Self::Full { path, why, more } => write!(
                f,
                "the file system of the store `{}` is full ({why}): older responses leave for new ones, or none is stored; \
                 make room on it, or give the store a smaller size ({more} more)",
                path.display()
            ),
            Self::Indirect { path } => write!(
                f,
                "the file system of `{}` gives no direct access (O_DIRECT), or there are no descriptors left for it: \
                 what is read from there takes room in the page cache also where it is not asked for again",
                path.display()
            ),
            Self::OneByOne { path, threads } => write!(
                f,
                "the kernel gives no io_uring (`sysctl kernel.io_uring_disabled`, or what a container may do): `{}` is read by threads \
                 ({threads}), at more CPU time a hit",
                path.display()
            ),
            Self::PageByPage { path } => write!(
                f,
                "the kernel gives no cachestat (Linux 6.5, and what a container may do): whether the page cache has content of `{}` \
                 is found by a read of each page, at more CPU time a large hit",
                path.display()
            ),
            Self::Ready {
                path,
                entries,
                took_ms,
            } => write!(
                f,
                "the index of `{}` is complete: {entries} stored responses after {took_ms} ms",
                path.display()
            ),
        }
    }
}
