//! Values that are each well formed and together make no sense.

use std::fmt;

/// Why a configuration is refused although every value in it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The key at fault, such as `listener[1].address`.
    pub key_path: String,
    /// What is wrong with it, with the values.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

impl Invalid {
    pub(crate) fn new(
        key_path: impl Into<String>,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            key_path: key_path.into(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key_path, self.reason)
    }
}

impl std::error::Error for Invalid {}
