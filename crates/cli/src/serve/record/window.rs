//! Rows in the order in which they arrived, as far as memory goes.
//!
//! A request is recorded when it ends, after many that came later and were shorter. A trace has
//! them in the order of their arrival.

use std::collections::BTreeMap;
use weir_trace::Row;

/// Rows that are held back so that one which arrived before them may still come: some 6 MB.
const ROWS_MAX: usize = 8 * 1024;

/// Bytes of readable targets among them.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Rows that wait for earlier ones.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// By arrival, and by how many came before: of two that arrived together, the first to end goes
    /// first.
    rows: BTreeMap<(i64, u64), Box<Row>>,
    /// How many came so far.
    count: u64,
    text_bytes: usize,
}

impl Window {
    /// Takes a row.
    pub(super) fn push(&mut self, row: Row) {
        self.count += 1;
        self.text_bytes += text_bytes(&row);
        self.rows
            .insert((row.arrival_us, self.count), Box::new(row));
    }

    /// The earliest row, if there are more than may wait.
    pub(super) fn overflow(&mut self) -> Option<Box<Row>> {
        let is_full = self.rows.len() > ROWS_MAX || self.text_bytes > TEXT_BYTES_MAX;
        if is_full { self.pop() } else { None }
    }

    /// The earliest row.
    pub(super) fn pop(&mut self) -> Option<Box<Row>> {
        let (_, row) = self.rows.pop_first()?;
        self.text_bytes -= text_bytes(&row);
        Some(row)
    }

    /// How many wait.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// Bytes of the row that are not always the same number.
pub(super) fn text_bytes(row: &Row) -> usize {
    row.target_text.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(arrival_us: i64, target: u64) -> Row {
        Row {
            arrival_us,
            target,
            ..Row::default()
        }
    }

    #[test]
    fn rows_leave_the_window_in_arrival_order() {
        let mut window = Window::default();
        for (arrival_us, target) in [(3, 0), (1, 1), (2, 2), (1, 3)] {
            window.push(row(arrival_us, target));
        }
        assert_eq!(window.len(), 4);
        assert_eq!(window.overflow(), None);
        let order: Vec<u64> = std::iter::from_fn(|| window.pop())
            .map(|row| row.target)
            .collect();
        assert_eq!(order, [1, 3, 2, 0]);
    }

    #[test]
    fn window_over_its_row_or_byte_limit_yields_the_earliest_row() {
        let mut window = Window::default();
        for arrival_us in (0..ROWS_MAX as i64).rev() {
            window.push(row(arrival_us, 0));
        }
        assert_eq!(window.overflow(), None);
        window.push(row(-1, 7));
        assert_eq!(window.overflow().map(|row| row.target), Some(7));
        assert_eq!(window.overflow(), None);

        let mut window = Window::default();
        let large = |arrival_us| Row {
            target_text: Some("x".repeat(TEXT_BYTES_MAX / 2)),
            ..row(arrival_us, 0)
        };
        window.push(large(1));
        window.push(large(2));
        assert_eq!(window.overflow(), None);
        window.push(large(3));
        assert_eq!(window.overflow().map(|row| row.arrival_us), Some(1));
        assert_eq!(window.overflow(), None);
    }
}
