//! The heavy hitters of a trace: exactly, and as the sketches of a running proxy find them.
//!
//! The exact counts take memory for each different name. The sketches are those of `GET /top`, so
//! that their bounds can be checked on a real stream: rows go to a sketch by their connection, as
//! connections go to workers.

use super::{Column, Columns, Row};
use serde::Serialize;
use std::collections::HashMap;
use weir_measure::sketch::{Merged, SpaceSaving, merge};

/// Of what the heavy hitters are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeavyOf {
    /// Target URIs.
    Targets,
    /// Servers.
    Servers,
    /// Clients.
    Clients,
}

/// By what they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeavyBy {
    /// Content bytes to clients.
    Bytes,
    /// Requests.
    Requests,
}

/// The columns that are looked at.
pub const COLUMNS: Columns = Columns::of(&[
    Column::client,
    Column::connection,
    Column::server,
    Column::target,
    Column::declared_bytes,
    Column::received_bytes,
]);

/// Counts rows, exactly and in sketches.
#[derive(Debug)]
pub struct HeavyHitters {
    of: HeavyOf,
    by: HeavyBy,
    rows: u64,
    exact: HashMap<u64, u64>,
    sketches: Vec<SpaceSaving>,
}

/// One of the heaviest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeavyRow {
    /// Its hash in the trace.
    pub hash: String,
    /// Its true count.
    pub exact: u64,
    /// Its place by the true counts, from 1; equal counts have the same.
    pub exact_rank: u64,
    /// Its count in the sketches: at least the true one.
    pub count: u64,
    /// The true count is at least `count - error`.
    pub error: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeavySummary {
    /// Rows of the trace that say what was counted.
    pub rows: u64,
    /// Different names.
    pub names: u64,
    /// The sum of all counts.
    pub total: u64,
    /// The number of sketches.
    pub sketches: usize,
    /// The most that a name can have which no sketch lists.
    pub resolution: u64,
    /// The true count of each listed name is within its bound, and no other exceeds the resolution.
    pub bounds_hold: bool,
    /// The place in the sketches of the last of the ten that are truly heaviest; none if one of
    /// them is not listed.
    pub last_of_true_ten: Option<usize>,
    /// The heaviest by the sketches.
    pub heaviest: Vec<HeavyRow>,
}

impl HeavyHitters {
    /// For so many sketches.
    #[must_use]
    pub fn new(of: HeavyOf, by: HeavyBy, sketches: usize) -> Self {
        Self {
            of,
            by,
            rows: 0,
            exact: HashMap::new(),
            sketches: vec![SpaceSaving::new(); sketches.max(1)],
        }
    }

    /// Counts a row; one that does not say what is counted is left out.
    pub fn add(&mut self, row: &Row) {
        let name = match self.of {
            HeavyOf::Targets => Some(row.target),
            HeavyOf::Servers => row.server,
            HeavyOf::Clients => row.client,
        };
        let weight = match self.by {
            HeavyBy::Bytes => row.content_bytes(),
            HeavyBy::Requests => Some(1),
        };
        let (Some(name), Some(weight)) = (name, weight) else {
            return;
        };
        self.rows += 1;
        *self.exact.entry(name).or_default() += weight;
        let count = self.sketches.len() as u64;
        let place = row.connection.unwrap_or(self.rows) % count;
        // below the number of sketches
        let place = usize::try_from(place).unwrap_or_default();
        self.sketches[place].add(name, weight);
    }

    /// What was found: the `rows_max` heaviest.
    #[must_use]
    pub fn finish(&self, rows_max: usize) -> HeavySummary {
        let merged = merge(&self.sketches.iter().collect::<Vec<_>>());
        let mut counts: Vec<u64> = self.exact.values().copied().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let row = |row: &weir_measure::sketch::HeavyHitter| {
            let exact = self.exact.get(&row.key).copied().unwrap_or(0);
            HeavyRow {
                hash: format!("{:016x}", row.key),
                exact,
                exact_rank: counts.partition_point(|count| *count > exact) as u64 + 1,
                count: row.count,
                error: row.error,
            }
        };
        HeavySummary {
            rows: self.rows,
            names: self.exact.len() as u64,
            total: merged.total,
            sketches: self.sketches.len(),
            resolution: merged.resolution,
            bounds_hold: self.bounds_hold(&merged),
            last_of_true_ten: self.last_of_true_ten(&merged, &counts),
            heaviest: merged.rows.iter().take(rows_max).map(row).collect(),
        }
    }

    fn bounds_hold(&self, merged: &Merged) -> bool {
        let listed = merged.rows.iter().map(|row| (row.key, row));
        let listed: HashMap<u64, _> = listed.collect();
        let holds = |(name, exact): (&u64, &u64)| match listed.get(name) {
            Some(row) => row.count >= *exact && row.count - row.error <= *exact,
            None => *exact <= merged.resolution,
        };
        self.exact.iter().all(holds)
            && merged
                .rows
                .iter()
                .all(|row| self.exact.contains_key(&row.key))
    }

    /// `counts` are the true ones, falling.
    fn last_of_true_ten(&self, merged: &Merged, counts: &[u64]) -> Option<usize> {
        let least = *counts.get(9).or(counts.last())?;
        let is_of_them = |name: &u64| self.exact.get(name).is_some_and(|count| *count >= least);
        let true_ones = self.exact.keys().filter(|name| is_of_them(name)).count();
        let places = merged.rows.iter().zip(1..);
        let places = places.filter(|(row, _)| is_of_them(&row.key));
        let places: Vec<usize> = places.map(|(_, place)| place).collect();
        (places.len() == true_ones).then(|| places.last().copied())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: u64, connection: u64, bytes: u64) -> Row {
        Row {
            target,
            connection: Some(connection),
            received_bytes: Some(bytes),
            ..Row::default()
        }
    }

    #[test]
    fn heaviest_are_found_by_bytes_and_by_requests() {
        for sketches in [1, 3] {
            let mut bytes = HeavyHitters::new(HeavyOf::Targets, HeavyBy::Bytes, sketches);
            let mut requests = HeavyHitters::new(HeavyOf::Targets, HeavyBy::Requests, sketches);
            for at in 0..30_000_u64 {
                // 20 large ones, one popular one, and many that are asked for once
                let (target, size) = match at % 10 {
                    0 => (at / 10 % 20, 100_000 + at / 10 % 20),
                    1..5 => (100, 10),
                    _ => (1_000 + at, 10),
                };
                let row = row(target, at, size);
                bytes.add(&row);
                requests.add(&row);
            }
            let found = bytes.finish(20);
            assert!(found.bounds_hold, "{found:?}");
            assert!(found.last_of_true_ten <= Some(20) && found.last_of_true_ten.is_some());
            assert_eq!((found.rows, found.heaviest.len()), (30_000, 20));
            let found = requests.finish(1);
            assert!(found.bounds_hold);
            let first = &found.heaviest[0];
            assert_eq!((first.exact, first.exact_rank), (12_000, 1));
            assert_eq!(first.hash, format!("{:016x}", 100));
        }
    }

    #[test]
    fn rows_that_do_not_say_it_are_left_out() {
        let mut clients = HeavyHitters::new(HeavyOf::Clients, HeavyBy::Bytes, 1);
        clients.add(&row(1, 1, 5));
        let found = clients.finish(10);
        assert_eq!(
            (found.rows, found.total, found.last_of_true_ten),
            (0, 0, None)
        );
        assert!(found.bounds_hold && found.heaviest.is_empty());
    }
}
