//! Why there is no connection to a next hop.

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
