//! Sketches of several workers as one: Agarwal and others, "Mergeable Summaries", 2012.

use super::SpaceSaving;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A key with its weight as far as it is known: from `count - error` to `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyHitter {
    /// The key.
    pub key: u64,
    /// At least its true weight.
    pub count: u64,
    /// The true weight is at least `count - error`.
    pub error: u64,
}

/// What several sketches have together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// All keys that one of them has, the largest count first; equal ones in the order of their
    /// keys.
    pub rows: Vec<HeavyHitter>,
    /// The most that a key which none of them has can weigh. At most a thousandth of `total`, and
    /// one for each sketch, whatever the number of sketches.
    pub resolution: u64,
    /// Weight of all that was added.
    pub total: u64,
}

impl Merged {
    /// The heaviest `rows_max` keys, and the most that any other key can weigh.
    #[must_use]
    pub fn heaviest(&self, rows_max: usize) -> (&[HeavyHitter], u64) {
        let (listed, left_out) = self.rows.split_at(rows_max.min(self.rows.len()));
        let next = left_out.first().map_or(0, |row| row.count);
        (listed, next.max(self.resolution))
    }

    /// Whether `row` certainly weighs more than every key that has no row.
    #[must_use]
    pub const fn is_certain(&self, row: &HeavyHitter) -> bool {
        row.count - row.error > self.resolution
    }
}

/// Merges sketches of different parts of a stream. Where a full one lacks a key, the key may still
/// have come, with at most the smallest count there: this is added to its count and its error.
#[must_use]
pub fn merge(parts: &[&SpaceSaving]) -> Merged {
    let keys = parts.iter().flat_map(|part| part.rows());
    let keys: BTreeSet<u64> = keys.map(|row| row.key).collect();
    let mut rows: Vec<HeavyHitter> = keys.into_iter().map(|key| sum(parts, key)).collect();
    // stable: equal counts keep the order of their keys
    rows.sort_by_key(|row| Reverse(row.count));
    let sum = |of: fn(&SpaceSaving) -> u64| {
        let values = parts.iter().map(|part| of(part));
        values.fold(0, u64::saturating_add)
    };
    Merged {
        rows,
        resolution: sum(SpaceSaving::weight_max_of_others),
        total: sum(SpaceSaving::total),
    }
}

fn sum(parts: &[&SpaceSaving], key: u64) -> HeavyHitter {
    let mut sum = HeavyHitter {
        key,
        count: 0,
        error: 0,
    };
    for part in parts {
        let least = part.weight_max_of_others();
        let (count, error) = part
            .row(key)
            .map_or((least, least), |row| (row.count, row.error));
        sum.count = sum.count.saturating_add(count);
        sum.error = sum.error.saturating_add(error);
    }
    sum
}
