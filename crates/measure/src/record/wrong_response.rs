//! A response that differs from what the origin sends.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// One such response, with all that is needed to look into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongResponse {
    /// `wrong-byte`, `short-body`, `long-body`, `stale-version`, `swapped`, `wrong-status`,
    /// `wrong-length`, `unreadable`.
    pub kind: String,
    /// When the response ended, seconds since the common start.
    pub at_s: f64,
    /// The phase that the request belongs to.
    pub phase: String,
    /// The request's mark.
    pub id: String,
    /// The number of the server.
    pub server: u32,
    /// The target on it, as its number.
    pub number: u64,
    /// The path of the request.
    pub path: String,
    /// The version that the response claims to be; `None` if it says nothing.
    pub version: Option<u64>,
    /// The first byte of the content that is wrong, or where it ended; `None` if the content is not
    /// the matter.
    pub offset: Option<u64>,
    /// What was expected and what was found: one sentence.
    pub detail: String,
    /// The response head as it came, as far as it could be read; cut at 2048 bytes.
    pub head: String,
}
