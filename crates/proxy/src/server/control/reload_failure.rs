//! Why a reload did not put the configuration in force.

use crate::config::Invalid;
use crate::server::run::StartError;
use std::fmt;

/// Why a reload did not put the configuration in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadFailure {
    /// The configuration has mistakes, with line and column: the old one stays.
    Config(String),
    /// An address or a file that it names cannot be used: the old one stays.
    Outside(String),
    /// The proxy was started without a file; files that its flags name were read again.
    NoFile(String),
}

impl fmt::Display for ReloadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Config(why) | Self::Outside(why) | Self::NoFile(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for ReloadFailure {}

impl From<Invalid> for ReloadFailure {
    fn from(invalid: Invalid) -> Self {
        Self::Config(format!("{invalid}; {}", invalid.hint))
    }
}

impl From<StartError> for ReloadFailure {
    fn from(error: StartError) -> Self {
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}"));
        Self::Outside(format!("{error}{}", hint.unwrap_or_default()))
    }
}
