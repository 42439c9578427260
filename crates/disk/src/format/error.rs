//! What is wrong with bytes that were read, and where.

use std::fmt;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// What was to be read.
    pub item: Item,
    /// Where it begins, in bytes from the start of its file.
    pub at: u64,
    /// What is wrong with it.
    pub kind: FormatErrorKind,
}

/// What a stretch of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// First page of `store.weir`.
    Superblock,
    /// First page of a segment.
    SegmentHeader,
    /// Header of a record.
    RecordHeader,
    /// The list of a record's extents.
    ExtentList,
    /// What the tier above stored with a record.
    Meta,
    /// Header of an extent of content.
    ExtentHeader,
    /// At most 64 KiB of content.
    Chunk,
    /// The table of a sealed segment.
    Table,
    /// The end of a sealed segment.
    Trailer,
    /// An entry of the purge journal.
    PurgeEntry,
}

/// Ways to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatErrorKind {
    /// There are fewer bytes than it needs.
    Cut {
        /// Bytes it needs.
        needed: u64,
        /// Bytes that are there.
        there: u64,
    },
    /// It does not begin with its magic bytes: nothing of this kind begins here.
    Absent,
    /// The checksum does not fit: damaged, or written for another place.
    Checksum,
    /// Written by a newer version of the format.
    Newer {
        /// That version.
        version: u32,
    },
    /// A number beyond its limit.
    Beyond {
        /// Its name in `docs/store-format.md`.
        field: &'static str,
        /// The number.
        value: u64,
        /// The largest that is allowed.
        max: u64,
    },
    /// Intact, but not the requested one, or inconsistent.
    Contradicts {
        /// The field that shows it.
        field: &'static str,
        /// What the field says.
        value: u64,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}: {}", self.item, self.at, self.kind)
    }
}

impl std::error::Error for FormatError {}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superblock => "superblock",
            Self::SegmentHeader => "segment header",
            Self::RecordHeader => "record header",
            Self::ExtentList => "list of extents",
            Self::Meta => "meta",
            Self::ExtentHeader => "extent header",
            Self::Chunk => "content",
            Self::Table => "table",
            Self::Trailer => "trailer",
            Self::PurgeEntry => "purge entry",
        })
    }
}

impl fmt::Display for FormatErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { needed, there } => {
                write!(f, "cut off, {there} of {needed} bytes are there")
            }
            Self::Absent => f.write_str("not there"),
            Self::Checksum => f.write_str("the checksum does not fit"),
            Self::Newer { version } => write!(
                f,
                "written by a newer version of the format ({version}; this reads up to {})",
                super::FORMAT_VERSION
            ),
            Self::Beyond { field, value, max } => {
                write!(f, "{field} is {value}, more than {max}")
            }
            Self::Contradicts { field, value } => {
                write!(f, "{field} is {value}, which cannot be here")
            }
        }
    }
}
