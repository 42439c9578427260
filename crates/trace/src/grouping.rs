//! Which requests of a trace came on one connection, and which of those a client sent together.
//!
//! A simulation of persistent connections needs both. A trace that has connections says the first
//! itself. For a log without them it is reconstructed, as M. Aron, P. Druschel, W. Zwaenepoel:
//! Efficient Support for P-HTTP in Cluster-Based Web Servers, USENIX 1999, did: requests of one
//! client with gaps below 15 s are one connection, and of these, all but the first that come within
//! 5 s of each other are one pipelined batch. Our reading of the latter: a request joins the batch
//! of the request before it if it comes less than 5 s after that request.
//!
//! No trace has batches, so that these follow from times always. Without times, each request is a
//! batch of its own.

mod connections;
mod error;
mod numbers;
mod rules;
#[cfg(test)]
mod tests;

pub use error::GroupingError;
pub use rules::{Grouping, GroupingRules};

use crate::row::column::Columns;
use crate::{Column, Row, TraceError, TraceMethod};
use connections::ConnectionsOf;
use numbers::TargetNumbers;

/// The requests of a trace by connection: connections in order of their first request, and the
/// requests of each together, in the order of the trace.
///
/// A row counts if its method is GET, its status 200 and its content longer than nothing; what the
/// source does not say speaks for a row. A target has the size with which it came first. In memory
/// it is 4 bytes a request and 16 a target; while it is read, 8 more a request and up to 50 more a
/// target and a connection.
#[derive(Clone, Debug)]
pub struct ConnectionTrace {
    /// The number of the target, and what the request begins.
    requests: Vec<u32>,
    targets: Vec<Target>,
    connections: usize,
    grouping: Grouping,
    rules: GroupingRules,
    has_times: bool,
}

/// A target of the trace.
#[derive(Clone, Copy, Debug)]
struct Target {
    hash: u64,
    bytes: u64,
}

/// A request, and what begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedRequest {
    /// The target's number: from 0, in the order in which targets came.
    pub number: u32,
    /// [`Row::target`].
    pub target: u64,
    /// The size of the target, bytes.
    pub bytes: u64,
    /// Whether it is the first of its connection.
    pub begins_connection: bool,
    /// Whether it is the first of its batch; the first of a connection is.
    pub begins_batch: bool,
}

impl ConnectionTrace {
    /// The columns that are read.
    pub const COLUMNS: Columns = Columns::of(&[
        Column::arrival_us,
        Column::client,
        Column::connection,
        Column::target,
        Column::method,
        Column::status,
        Column::received_bytes,
        Column::declared_bytes,
    ]);

    /// The most requests.
    pub const REQUESTS_MAX: u32 = u32::MAX;
    /// The most different targets.
    pub const TARGETS_MAX: u32 = NUMBER + 1;

    /// Reads rows in the order of a trace. The first row that counts decides: if it has a
    /// connection, connections are as in the trace, otherwise they are reconstructed.
    ///
    /// # Errors
    /// A row cannot be read, no row counts, a row lacks what the first one has, or there are
    /// neither connections nor clients and times to reconstruct them from.
    pub fn read(
        rows: impl IntoIterator<Item = Result<Row, TraceError>>,
        rules: GroupingRules,
    ) -> Result<Self, GroupingError> {
        Self::group(rows, None, rules)
    }

    /// Reads rows in the order of a trace, each a connection of its own, as HTTP/1.0 has it. The
    /// rows need neither connections nor clients nor times.
    ///
    /// # Errors
    /// A row cannot be read, or no row counts.
    pub fn read_single(
        rows: impl IntoIterator<Item = Result<Row, TraceError>>,
    ) -> Result<Self, GroupingError> {
        Self::group(rows, Some(Grouping::Single), GroupingRules::default())
    }

    fn group(
        rows: impl IntoIterator<Item = Result<Row, TraceError>>,
        grouping: Option<Grouping>,
        rules: GroupingRules,
    ) -> Result<Self, GroupingError> {
        let mut numbers = TargetNumbers::default();
        let mut connections = grouping.map(|grouping| ConnectionsOf::new(grouping, rules));
        for (place, row) in (0..).zip(rows) {
            let row = row.map_err(GroupingError::Trace)?;
            let Some(bytes) = counted_bytes(&row) else {
                continue;
            };
            let connections = match &mut connections {
                Some(connections) => connections,
                None => connections.insert(ConnectionsOf::new(Grouping::of(&row)?, rules)),
            };
            let number = numbers.number(row.target, bytes)?;
            connections.add(number, &row, place)?;
        }
        let connections = connections.ok_or(GroupingError::NoRequests)?;
        connections.finish(numbers.finish())
    }

    /// How the connections are known.
    #[must_use]
    pub const fn grouping(&self) -> Grouping {
        self.grouping
    }

    /// Whether batches could be told from times; otherwise each request is a batch.
    #[must_use]
    pub const fn has_batches(&self) -> bool {
        self.has_times && !matches!(self.grouping, Grouping::Single)
    }

    /// How connections and batches are known, for a report: `connections: as in the trace; batches:
    /// gaps below 5 s`.
    #[must_use]
    pub fn description(&self) -> String {
        let batches = match (self.grouping, self.has_times) {
            (Grouping::Single, _) => "one request each".to_owned(),
            (_, true) => format!("gaps below {}", rules::seconds(self.rules.batch_gap_ms)),
            (_, false) => "one request each, since the trace has no times".to_owned(),
        };
        let connections = self.rules.connections(self.grouping);
        format!("connections: {connections}; batches: {batches}")
    }

    /// How many requests there are, at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// How many different targets there are.
    #[must_use]
    pub fn targets(&self) -> usize {
        self.targets.len()
    }

    /// How many connections there are.
    #[must_use]
    pub const fn connections(&self) -> usize {
        self.connections
    }

    /// The request at this place, from 0.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<GroupedRequest> {
        let word = *self.requests.get(place)?;
        let number = word & NUMBER;
        let target = self.targets[number as usize];
        Some(GroupedRequest {
            number,
            target: target.hash,
            bytes: target.bytes,
            begins_connection: word & BEGINS_CONNECTION != 0,
            begins_batch: word & BEGINS_BATCH != 0,
        })
    }

    /// All requests.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = GroupedRequest> + '_ {
        (0..self.requests.len()).map(|place| self.get(place).expect("the place is below the end"))
    }
}

/// The size of a row that counts.
fn counted_bytes(row: &Row) -> Option<u64> {
    let is_get = row.method.is_none_or(|method| method == TraceMethod::Get);
    let is_ok = row.status.is_none_or(|status| status == 200);
    let bytes = row.content_bytes().filter(|bytes| *bytes > 0);
    bytes.filter(|_| is_get && is_ok)
}

/// Bits of a request: what it begins, and the number of its target.
const BEGINS_CONNECTION: u32 = 1 << 31;
const BEGINS_BATCH: u32 = 1 << 30;
const NUMBER: u32 = BEGINS_BATCH - 1;
