//! How requests become connections and batches.

use super::error::GroupingError;
use crate::Row;
use crate::row::words::words;

words! {
    /// How the connections of a trace are known.
    Grouping {
        /// The trace has them.
        AsTraced = "as-traced",
        /// From clients and times, by [`GroupingRules`].
        Reconstructed = "reconstructed",
        /// Each request has one of its own.
        Single = "single",
    }
}

impl Grouping {
    /// The one that the first row of a trace allows.
    pub(super) fn of(row: &Row) -> Result<Self, GroupingError> {
        match (row.connection, row.client) {
            (Some(_), _) => Ok(Self::AsTraced),
            (None, Some(_)) => Ok(Self::Reconstructed),
            (None, None) => Err(GroupingError::NoClients),
        }
    }

    /// What the requests of a connection have in common.
    pub(super) const fn owner(self, row: &Row) -> Option<u64> {
        match self {
            Self::AsTraced => row.connection,
            Self::Reconstructed => row.client,
            Self::Single => None,
        }
    }
}

/// The gaps that separate connections and batches, of requests of one client. A gap is from the
/// arrival of a request to that of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupingRules {
    /// A gap as long as this, or longer, begins a connection, milliseconds. Used where the trace
    /// has no connections.
    pub connection_gap_ms: u32,
    /// A gap as long as this, or longer, begins a batch, milliseconds.
    pub batch_gap_ms: u32,
}

/// Those of the paper.
impl Default for GroupingRules {
    fn default() -> Self {
        Self {
            connection_gap_ms: 15_000,
            batch_gap_ms: 5000,
        }
    }
}

impl GroupingRules {
    /// How connections are known, in words.
    pub(super) fn connections(&self, grouping: Grouping) -> String {
        match grouping {
            Grouping::AsTraced => "as in the trace".to_owned(),
            Grouping::Reconstructed => {
                let gap = seconds(self.connection_gap_ms);
                format!("reconstructed (client, gaps below {gap})")
            }
            Grouping::Single => "one request each".to_owned(),
        }
    }
}

/// `15 s`, `0.5 s`.
pub(super) fn seconds(milliseconds: u32) -> String {
    format!("{} s", f64::from(milliseconds) / 1000.0)
}
