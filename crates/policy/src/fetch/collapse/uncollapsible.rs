//! Targets whose response could not be shared: for a while their requests do not wait for each
//! other (Varnish: hit-for-miss).

use crate::now::{Now, Tick};
use alloc::collections::{BTreeMap, BTreeSet};

/// Targets that are remembered, over all parts; for another one that is forgotten which ends first.
/// They take 4 MiB at most. Varnish has no such bound, as it keeps them in its store.
pub const UNCOLLAPSIBLE_MAX: usize = 65_536;

/// Targets that are hit-for-miss, and until when.
#[derive(Clone, Debug)]
pub struct Uncollapsible<K> {
    until: BTreeMap<K, Tick>,
    by_end: BTreeSet<(Tick, K)>,
    targets_max: usize,
}

impl<K: Copy + Ord> Uncollapsible<K> {
    /// No target; one of `parts` equal parts of [`UNCOLLAPSIBLE_MAX`].
    #[must_use]
    pub fn part_of(parts: usize) -> Self {
        Self {
            until: BTreeMap::new(),
            by_end: BTreeSet::new(),
            targets_max: (UNCOLLAPSIBLE_MAX / parts.max(1)).max(1),
        }
    }

    /// Remembers `key` until `until`.
    pub fn insert(&mut self, now: Now, key: K, until: Tick) {
        self.remove(key);
        if until <= now.tick {
            return;
        }
        while let Some((end, first)) = self.by_end.first().copied()
            && (end <= now.tick || self.until.len() >= self.targets_max)
        {
            self.remove(first);
        }
        self.until.insert(key, until);
        self.by_end.insert((until, key));
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: K) {
        if let Some(until) = self.until.remove(&key) {
            self.by_end.remove(&(until, key));
        }
    }

    /// Whether `key` is remembered.
    #[must_use]
    pub fn contains(&self, now: Now, key: K) -> bool {
        let until = self.until.get(&key);
        until.is_some_and(|until| *until > now.tick)
    }

    /// How many targets there are, ended ones included that were not forgotten yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}
