//! What was imported, in figures.

use crate::{Row, TraceMethod};
use std::collections::{BTreeMap, HashSet};

/// The first and the last of a number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Microseconds since 1970.
    pub first_us: i64,
    /// Microseconds since 1970.
    pub last_us: i64,
    /// Whether each came no earlier than the one before it.
    pub is_in_order: bool,
    latest_us: i64,
}

impl Span {
    fn add(span: &mut Option<Self>, us: i64) {
        let span = span.get_or_insert(Self {
            first_us: us,
            last_us: us,
            is_in_order: true,
            latest_us: us,
        });
        span.is_in_order &= us >= span.latest_us;
        span.latest_us = us;
        span.first_us = span.first_us.min(us);
        span.last_us = span.last_us.max(us);
    }

    /// From the first to the last, microseconds.
    #[must_use]
    pub const fn length_us(&self) -> u64 {
        self.last_us.abs_diff(self.first_us)
    }
}

/// Counts over the rows of an import. Its memory grows with the number of clients.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Rows.
    pub rows: u64,
    /// Bytes that clients received, of all rows that say so.
    pub received_bytes: u128,
    /// Rows that do not say how many bytes the client received.
    pub rows_without_size: u64,
    /// Rows by method; `None` where the source does not say.
    pub methods: BTreeMap<Option<TraceMethod>, u64>,
    /// Rows by status code; `None` where there was no response, or the source does not say.
    pub statuses: BTreeMap<Option<u16>, u64>,
    /// When transactions began.
    pub arrivals: Option<Span>,
    /// When they ended, where the source says so.
    pub ends: Option<Span>,
    clients: HashSet<u64>,
}

impl Summary {
    /// One more row.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        match row.received_bytes {
            Some(bytes) => self.received_bytes += u128::from(bytes),
            None => self.rows_without_size += 1,
        }
        *self.methods.entry(row.method).or_default() += 1;
        *self.statuses.entry(row.status).or_default() += 1;
        Span::add(&mut self.arrivals, row.arrival_us);
        let end_us = row
            .last_byte_us
            .and_then(|us| row.arrival_us.checked_add_unsigned(us));
        if let Some(end_us) = end_us {
            Span::add(&mut self.ends, end_us);
        }
        self.clients.extend(row.client);
    }

    /// Different clients.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_tells_arrival_order_from_end_order_and_counts_totals() {
        let mut summary = Summary::default();
        for (arrival_us, took_us) in [(5, Some(10)), (3, Some(20)), (4, None)] {
            summary.add(&Row {
                arrival_us,
                last_byte_us: took_us,
                client: Some(1),
                received_bytes: took_us,
                ..Row::default()
            });
        }
        let arrivals = summary.arrivals.unwrap();
        assert_eq!(arrivals.length_us(), 2);
        assert!(!arrivals.is_in_order);
        let ends = summary.ends.unwrap();
        assert_eq!((ends.first_us, ends.last_us), (15, 23));
        assert!(ends.is_in_order);
        assert_eq!(summary.client_count(), 1);
        assert_eq!(summary.received_bytes, 30);
        assert_eq!(summary.rows_without_size, 1);
        assert_eq!(summary.statuses[&None], 3);
    }
}
