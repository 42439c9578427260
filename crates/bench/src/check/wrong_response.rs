//! How a response can be wrong, and what is kept of one that is.

use crate::tally::kinds;
use serde::{Deserialize, Serialize};

kinds! {
    /// How a response can be wrong. The first that is found counts; a response is wrong once.
    WrongKind {
        /// A byte of the content is not what it should be.
        WrongByte = "wrong-byte",
        /// The content passes for whole and is shorter than it is.
        ShortBody = "short-body",
        /// There is more content than there is.
        LongBody = "long-body",
        /// The version was not current at any moment that would excuse it, or a validator is that
        /// of another version.
        StaleVersion = "stale-version",
        /// It is the content, or has the entity tag, of another target.
        Swapped = "swapped",
        /// The status answers something that was not asked, such as 304 without a condition.
        WrongStatus = "wrong-status",
        /// The length it names is not the content's.
        WrongLength = "wrong-length",
        /// It cannot be read as HTTP.
        Unreadable = "unreadable",
    }
}

/// A wrong response, with what is needed to believe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongResponse {
    /// How it is wrong.
    pub kind: WrongKind,
    /// The place of the phase in the plan.
    pub phase: u8,
    /// When it was found, in microseconds since the start.
    pub at_us: u64,
    /// Who asked.
    pub agent: u32,
    /// The server of the target that was asked for.
    pub server: u32,
    /// Its number there.
    pub number: u64,
    /// The request's mark.
    pub mark: String,
    /// The version the response claims to be; `None` without a mark.
    pub version: Option<u64>,
    /// Where in the content; `None` if it is not about the content.
    pub offset: Option<u64>,
    /// What should be there and what is.
    pub what: String,
    /// The head of the response as it was received, at most [`HEAD_BYTES_MAX`] of it, what is no
    /// text replaced.
    pub head: String,
}

/// The most bytes that are kept of the head of a wrong response.
pub const HEAD_BYTES_MAX: usize = 2048;
