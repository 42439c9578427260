//! Why a record cannot be read.

use std::fmt;

/// What is wrong with the bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It was written by another version.
    Version(u8),
    /// Its kind is not known.
    Kind(u8),
    /// It ends before this part of it.
    Short {
        /// The part.
        what: &'static str,
        /// Where it should begin, bytes from the start.
        at: usize,
    },
    /// A part that cannot be what it says.
    Value {
        /// The part.
        what: &'static str,
        /// Where it ends, bytes from the start.
        at: usize,
    },
    /// Bytes follow that belong to nothing.
    Surplus {
        /// Where they begin, bytes from the start.
        at: usize,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "version {version} of a record is not {}, the one known here",
                super::VERSION
            ),
            Self::Kind(kind) => write!(f, "{kind} is no kind of record"),
            Self::Short { what, at } => write!(f, "the record ends at {at}, before its {what}"),
            Self::Value { what, at } => write!(f, "the {what} before {at} is none"),
            Self::Surplus { at } => write!(f, "bytes from {at} on belong to nothing"),
        }
    }
}

impl std::error::Error for RecordError {}
