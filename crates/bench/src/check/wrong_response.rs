//! Kinds of wrong responses.

use weir_measure::labels;

labels! {
    /// How a response can be wrong. The first that is found counts; a response is wrong once.
    WrongKind {
        /// A byte of the content is not what it should be.
        WrongByte = "wrong-byte",
        /// The content passes for whole and is shorter than it is.
        ShortBody = "short-body",
        /// There is more content than there is.
        LongBody = "long-body",
        /// The version was not current at any time that would allow it, or a validator is that of
        /// another version.
        StaleVersion = "stale-version",
        /// It is the content, or has the entity tag, of another target.
        Swapped = "swapped",
        /// The status does not belong to the request, such as 304 without a condition.
        WrongStatus = "wrong-status",
        /// The length it names is not the content's.
        WrongLength = "wrong-length",
        /// It cannot be read as HTTP.
        Unreadable = "unreadable",
    }
}

/// The most bytes that are kept of the head of a wrong response.
pub const HEAD_BYTES_MAX: usize = 2048;
