//! Puts the requests of a trace into connections, and those of a connection into batches.

use super::error::GroupingError;
use super::{BEGINS_BATCH, BEGINS_CONNECTION, ConnectionTrace, Grouping, GroupingRules, Target};
use crate::{Column, Row};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use weir_workload::MixHasher;

/// The connections of the rows so far.
#[derive(Debug)]
pub(super) struct ConnectionsOf {
    grouping: Grouping,
    rules: GroupingRules,
    /// By connection of the trace, or by client.
    open: HashMap<u64, Open, BuildHasherDefault<MixHasher>>,
    /// In the order of the trace: number of the target, and what begins.
    requests: Vec<u32>,
    /// The connection of each of them.
    places: Vec<u32>,
    /// The requests of each connection.
    counts: Vec<u32>,
    first_us: Option<i64>,
    has_times: bool,
}

/// The connection of a client, or of a trace, that is used now.
#[derive(Clone, Copy, Debug)]
struct Open {
    connection: u32,
    /// When its latest request came, microseconds.
    last_us: i64,
}

impl ConnectionsOf {
    pub(super) fn new(grouping: Grouping, rules: GroupingRules) -> Self {
        Self {
            grouping,
            rules,
            open: HashMap::default(),
            requests: Vec::new(),
            places: Vec::new(),
            counts: Vec::new(),
            first_us: None,
            has_times: false,
        }
    }

    /// Adds a request for the target with this number; `place` is that of its row in the trace.
    pub(super) fn add(&mut self, number: u32, row: &Row, place: u64) -> Result<(), GroupingError> {
        if self.requests.len() >= ConnectionTrace::REQUESTS_MAX as usize {
            return Err(GroupingError::TooManyRequests);
        }
        if let Some(column) = self.missing(row) {
            return Err(GroupingError::Missing(column, place));
        }
        let at_us = row.arrival_us;
        self.has_times |= *self.first_us.get_or_insert(at_us) != at_us;
        let (connection, gap_us) = match self.grouping.owner(row) {
            Some(owner) => self.connection(owner, at_us),
            None => (self.begin(), 0),
        };
        let count = &mut self.counts[connection as usize];
        *count += 1;
        let begins = match *count {
            1 => BEGINS_CONNECTION | BEGINS_BATCH,
            // the first request of a connection is alone
            2 => BEGINS_BATCH,
            _ if gap_us >= microseconds(self.rules.batch_gap_ms) => BEGINS_BATCH,
            _ => 0,
        };
        self.requests.push(number | begins);
        self.places.push(connection);
        Ok(())
    }

    /// The column without which a row has no place.
    const fn missing(&self, row: &Row) -> Option<Column> {
        match self.grouping {
            Grouping::AsTraced if row.connection.is_none() => Some(Column::connection),
            Grouping::Reconstructed if row.client.is_none() => Some(Column::client),
            _ => None,
        }
    }

    /// The connection of a request, and how long after the one before it came on it.
    fn connection(&mut self, owner: u64, at_us: i64) -> (u32, i64) {
        let limit_us = microseconds(self.rules.connection_gap_ms);
        if let Some(open) = self.open.get_mut(&owner) {
            let gap_us = at_us.saturating_sub(open.last_us);
            open.last_us = open.last_us.max(at_us);
            if self.grouping == Grouping::AsTraced || gap_us < limit_us {
                return (open.connection, gap_us);
            }
        }
        let connection = self.begin();
        let open = Open {
            connection,
            last_us: at_us,
        };
        self.open.insert(owner, open);
        (connection, 0)
    }

    fn begin(&mut self) -> u32 {
        let connection = u32::try_from(self.counts.len());
        self.counts.push(0);
        connection.expect("there are no more connections than requests, whose number has 32 bits")
    }

    /// The requests by connection.
    pub(super) fn finish(self, targets: Vec<Target>) -> Result<ConnectionTrace, GroupingError> {
        if self.grouping == Grouping::Reconstructed && !self.has_times && self.requests.len() > 1 {
            return Err(GroupingError::NoTimes);
        }
        let connections = self.counts.len();
        let mut next = starts(&self.counts);
        let mut requests = vec![0; self.requests.len()];
        let unknown = if self.has_times { 0 } else { BEGINS_BATCH };
        for (request, connection) in self.requests.into_iter().zip(self.places) {
            let place = &mut next[connection as usize];
            requests[*place as usize] = request | unknown;
            *place += 1;
        }
        Ok(ConnectionTrace {
            requests,
            targets,
            connections,
            grouping: self.grouping,
            rules: self.rules,
            has_times: self.has_times,
        })
    }
}

/// Where the requests of each connection begin.
fn starts(counts: &[u32]) -> Vec<u32> {
    let mut end = 0;
    let begins = counts.iter().map(|count| {
        let begin = end;
        end += count;
        begin
    });
    begins.collect()
}

fn microseconds(milliseconds: u32) -> i64 {
    i64::from(milliseconds) * 1000
}
