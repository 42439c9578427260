//! Rows in order of arrival.
//!
//! Transactions end in another order than they begin. A row is written when no transaction is open
//! that began before it, or when too many wait ([`ROWS_HELD_MAX`]): one long download does not
//! delay a whole trace.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::ROWS_HELD_MAX;
use crate::Row;

/// A place in the order: when something began, and a number that makes it unique.
pub(super) type Begun = (i64, u64);

/// The rows that wait, and the transactions and connections that are open.
#[derive(Default)]
pub(super) struct Window {
    open: BTreeSet<Begun>,
    waiting: BTreeMap<Begun, Box<Row>>,
    begun: u64,
    /// When the last row that left began.
    left_us: Option<i64>,
    late: u64,
}

impl Window {
    /// Something begins that may become a row.
    pub(super) fn begin(&mut self, arrival_us: i64) -> Begun {
        self.begun += 1;
        let begun = (arrival_us, self.begun);
        self.open.insert(begun);
        begun
    }

    /// It became none, if it was open.
    pub(super) fn forget(&mut self, begun: Option<Begun>) {
        begun.map(|begun| self.open.remove(&begun));
    }

    /// It became this row.
    pub(super) fn finish(&mut self, (begun, row): (Begun, Box<Row>)) {
        self.open.remove(&begun);
        self.waiting.insert((row.arrival_us, begun.1), row);
    }

    /// The next row that may leave.
    pub(super) fn next(&mut self) -> Option<Row> {
        let (first, _) = self.waiting.first_key_value()?;
        let may_leave =
            self.waiting.len() > ROWS_HELD_MAX || self.open.first().is_none_or(|open| first < open);
        if !may_leave {
            return None;
        }
        let (_, row) = self.waiting.pop_first()?;
        if self.left_us.is_some_and(|left_us| row.arrival_us < left_us) {
            self.late += 1;
        }
        self.left_us = self.left_us.max(Some(row.arrival_us));
        Some(*row)
    }

    /// How many rows left after one that began later.
    pub(super) const fn late(&self) -> u64 {
        self.late
    }
}
