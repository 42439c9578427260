//! What is known of each target.

use std::cmp::Reverse;
use std::collections::HashMap;

/// The targets so far, by their hash.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetTable(HashMap<u64, TargetCounts>);

/// The requests for a target so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TargetCounts {
    requests: u32,
    pub(super) cachable: bool,
    pub(super) cachable_obeying_cookies: bool,
    /// The most bytes that a client received of it.
    bytes: u64,
}

impl TargetTable {
    /// Counts a request.
    pub(super) fn add(&mut self, target: u64, bytes: u64) -> &mut TargetCounts {
        let counts = self.0.entry(target).or_default();
        counts.requests = counts.requests.saturating_add(1);
        counts.bytes = counts.bytes.max(bytes);
        counts
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many had one request.
    pub(super) fn once(&self) -> usize {
        let once = self.0.values().filter(|counts| counts.requests == 1);
        once.count()
    }

    /// The sum of their sizes.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|counts| counts.bytes).sum()
    }

    /// The sizes of the most popular targets that together have this share of all requests, in
    /// percent; of equally popular ones, those with the smaller hash.
    pub(super) fn bytes_of(&self, percent: u64) -> Option<f64> {
        let mut all: Vec<(u64, TargetCounts)> = self
            .0
            .iter()
            .map(|(hash, counts)| (*hash, *counts))
            .collect();
        all.sort_unstable_by_key(|(hash, counts)| (Reverse(counts.requests), *hash));
        let requests = |counts: &TargetCounts| u64::from(counts.requests);
        let whole: u64 = all.iter().map(|(_, counts)| requests(counts)).sum();
        let (mut reached, mut bytes) = (0, 0);
        for (_, counts) in &all {
            reached += requests(counts);
            bytes += counts.bytes;
            if reached * 100 >= whole * percent {
                return Some(bytes as f64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(targets: &[(u64, u32, u64)]) -> TargetTable {
        let mut table = TargetTable::default();
        for (hash, requests, bytes) in targets {
            for _ in 0..*requests {
                table.add(*hash, *bytes);
            }
        }
        table
    }

    #[test]
    fn bytes_of_a_share_are_those_of_the_most_popular_targets_that_reach_it() {
        let table = table(&[(1, 1, 1000), (2, 97, 10), (3, 2, 100)]);
        assert_eq!(table.bytes_of(97), Some(10.0));
        assert_eq!(table.bytes_of(98), Some(110.0));
        assert_eq!(table.bytes_of(99), Some(110.0));
        assert_eq!(table.bytes_of(100), Some(1110.0));
        assert_eq!((table.bytes(), table.len(), table.once()), (1110, 3, 1));
    }

    #[test]
    fn equally_popular_targets_come_in_order_of_hash() {
        let table = table(&[(5, 1, 50), (4, 1, 40), (6, 1, 60)]);
        assert_eq!(table.bytes_of(34), Some(90.0));
    }

    #[test]
    fn no_targets_have_no_bytes_of_a_share() {
        assert_eq!(TargetTable::default().bytes_of(97), None);
    }

    #[test]
    fn size_of_a_target_is_the_most_that_was_received() {
        let mut table = TargetTable::default();
        [3, 9, 0].into_iter().for_each(|bytes| {
            table.add(1, bytes);
        });
        assert_eq!(table.bytes(), 9);
    }
}
