//! Why there is no connection to a next hop.

use std::fmt;
use weir_semantics::ProxyError;

/// Why a connection could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFailure {
    /// The kind, as RFC 9209 §2.3 names it.
    pub error: ProxyError,
    /// A sentence for people.
    pub text: String,
}

impl ConnectFailure {
    /// A failure of this kind, described by `text`.
    pub fn new(error: ProxyError, text: impl Into<String>) -> Self {
        Self {
            error,
            text: text.into(),
        }
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConnectFailure {}
