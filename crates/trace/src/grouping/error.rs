//! Why the connections of a trace are not known.

use super::ConnectionTrace;
use crate::{Column, TraceError};
use std::fmt;

/// Why requests cannot be put into connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupingError {
    /// The trace cannot be read.
    Trace(TraceError),
    /// No row counts.
    NoRequests,
    /// There are neither connections nor clients.
    NoClients,
    /// There are no connections, and all rows arrive at the same time.
    NoTimes,
    /// The first row that counts has a value in this column, and this row, from 0, has none.
    Missing(Column, u64),
    /// There are more different targets than [`ConnectionTrace::TARGETS_MAX`].
    TooManyTargets,
    /// There are more requests than [`ConnectionTrace::REQUESTS_MAX`].
    TooManyRequests,
}

impl GroupingError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Trace(error) => error.hint.as_deref(),
            Self::NoClients | Self::NoTimes | Self::Missing(..) => Some(
                "with HTTP/1.0 each request is a connection, which needs none of these columns",
            ),
            Self::NoRequests | Self::TooManyTargets | Self::TooManyRequests => None,
        }
    }
}

impl fmt::Display for GroupingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [connection, client] = [Column::connection, Column::client].map(Column::name);
        let arrival = Column::arrival_us.name();
        match self {
            Self::Trace(error) => write!(f, "{}: {}", error.what, error.cause),
            Self::NoRequests => {
                f.write_str("no row is a response with status 200 and content to GET")
            }
            Self::NoClients => write!(
                f,
                "column `{connection}` has no values, and neither has `{client}`, from which \
                 connections could be reconstructed"
            ),
            Self::NoTimes => write!(
                f,
                "column `{connection}` has no values, and `{arrival}` has the same one in each \
                 row, from which connections cannot be reconstructed"
            ),
            Self::Missing(column, row) => write!(
                f,
                "column `{}` has no value in row {row}, but in rows before it",
                column.name()
            ),
            Self::TooManyTargets => {
                write!(
                    f,
                    "more than {} different targets",
                    ConnectionTrace::TARGETS_MAX
                )
            }
            Self::TooManyRequests => {
                write!(f, "more than {} requests", ConnectionTrace::REQUESTS_MAX)
            }
        }
    }
}

impl std::error::Error for GroupingError {}
