//! Why there is no paper.

use crate::cluster::{CostError, SettingError};
use std::fmt;
use weir_trace::grouping::GroupingError;

/// Why there is no paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LardError {
    /// A cost cannot be.
    Cost(CostError),
    /// A cluster cannot be simulated.
    Setting(SettingError),
    /// A trace that is made up has no connections.
    Grouping(GroupingError),
    /// It was stopped.
    Interrupted,
}

impl fmt::Display for LardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cost(error) => error.fmt(f),
            Self::Setting(error) => error.fmt(f),
            Self::Grouping(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for LardError {}

impl From<CostError> for LardError {
    fn from(error: CostError) -> Self {
        Self::Cost(error)
    }
}

impl From<SettingError> for LardError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<GroupingError> for LardError {
    fn from(error: GroupingError) -> Self {
        Self::Grouping(error)
    }
}
