//! Which purges are in force: the generation rule, in memory.
//!
//! A record is alive if it was asked for after the last purge of its key and after the last purge of everything. A purge
//! is remembered for as long as a segment is there that may hold what it concerns: those up to the one that was being
//! written when it was journaled. Later ones cannot, as the writer asks here before it writes.

use crate::format::{PurgeEntry, Purged};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use weir_policy::Digest;

/// Purges of keys that are remembered, 48 bytes each or so; beyond, the oldest segments leave early.
pub(crate) const PURGES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    generation: u64,
    /// The highest segment that may hold what it concerns.
    segment: u64,
}

#[derive(Debug, Default)]
struct Known {
    all: Mark,
    keys: HashMap<Digest, Mark>,
    /// Purges up to this generation may have been dropped from here.
    floor: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Purges(RwLock<Known>);

impl Purges {
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record of `key` that was asked for at `generation` is purged.
    pub(crate) fn cover(&self, key: Digest, generation: u64) -> bool {
        let known = self.read();
        generation <= known.all.generation
            || known
                .keys
                .get(&key)
                .is_some_and(|mark| generation <= mark.generation)
    }

    /// Whether a response that was asked for at `generation` may not be stored any more: it is purged, or so old that a
    /// purge of it may have been dropped.
    pub(crate) fn refuse(&self, key: Digest, generation: u64) -> bool {
        self.cover(key, generation) || generation <= self.read().floor
    }

    /// Puts a purge in force. `segment` is `None` as long as it is not journaled.
    pub(crate) fn note(&self, what: Purged, generation: u64, segment: Option<u64>) {
        let mark = Mark {
            generation,
            segment: segment.unwrap_or(u64::MAX),
        };
        let mut known = self.write();
        match what {
            Purged::Key(key) => {
                let there = known.keys.entry(key).or_default();
                if generation >= there.generation {
                    *there = mark;
                }
            }
            Purged::All => {
                if generation >= known.all.generation {
                    known.all = mark;
                    known.keys.retain(|_, mark| mark.generation > generation);
                }
            }
            Purged::Floor => known.floor = known.floor.max(generation),
        }
    }

    /// Everything in this directory is dropped, for a reason of its own. Purges that are not told any more count as
    /// dropped: another directory must not think that it can learn them here.
    pub(crate) fn empty(&self, generation: u64) {
        let mut known = self.write();
        let dropped = known.keys.values().map(|mark| mark.generation).max();
        let dropped = dropped.unwrap_or(0).max(known.all.generation);
        known.floor = known.floor.max(dropped);
        drop(known);
        self.note(Purged::All, generation, None);
    }

    /// Drops purges that no segment from `oldest` on can need; whether there were any.
    pub(crate) fn drop_before(&self, oldest: u64) -> bool {
        let mut known = self.write();
        let before = known.keys.len();
        let mut floor = known.floor;
        known.keys.retain(|_, mark| {
            let needed = mark.segment >= oldest;
            if !needed {
                floor = floor.max(mark.generation);
            }
            needed
        });
        known.floor = floor;
        known.keys.len() < before
    }

    /// What a journal must say, in ascending order of generations; those that were not journaled yet are left out.
    pub(crate) fn entries(&self) -> Vec<PurgeEntry> {
        let known = self.read();
        let keys = known
            .keys
            .iter()
            .filter(|(_, mark)| mark.segment != u64::MAX)
            .map(|(key, mark)| (Purged::Key(*key), *mark));
        let floor = Mark {
            generation: known.floor,
            segment: 0,
        };
        let all = (known.all.generation > 0).then_some((Purged::All, known.all));
        let mut entries: Vec<PurgeEntry> = keys
            .chain([(Purged::Floor, floor)])
            .chain(all)
            .map(|(what, mark)| PurgeEntry {
                generation: mark.generation,
                what,
                segment: mark.segment,
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.generation);
        entries
    }

    /// Purges of keys.
    pub(crate) fn len(&self) -> u64 {
        self.read().keys.len() as u64
    }

    pub(crate) fn is_full(&self) -> bool {
        self.read().keys.len() >= PURGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Digest = Digest(1, 1);
    const OTHER: Digest = Digest(2, 1);

    #[test]
    fn record_older_than_a_purge_is_alive_or_a_newer_one_is_not() {
        let purges = Purges::default();
        purges.note(Purged::Key(KEY), 10, None);
        assert!(purges.cover(KEY, 10) && !purges.cover(KEY, 11));
        assert!(!purges.cover(OTHER, 5));
        purges.note(Purged::Key(KEY), 7, None);
        assert!(purges.cover(KEY, 10), "an older purge undid a newer one");
        purges.note(Purged::All, 20, Some(3));
        assert!(purges.cover(OTHER, 20) && !purges.cover(KEY, 21));
        assert_eq!(purges.len(), 0);
    }

    #[test]
    fn purge_is_dropped_while_a_segment_needs_it_or_late_writes_pass_then() {
        let purges = Purges::default();
        purges.note(Purged::Key(KEY), 10, None);
        assert!(!purges.drop_before(100), "not journaled yet");
        purges.note(Purged::Key(KEY), 10, Some(4));
        assert!(!purges.drop_before(4));
        assert!(purges.drop_before(5));
        assert!(!purges.cover(KEY, 9), "nothing of it can be on the device");
        assert!(purges.refuse(KEY, 9) && purges.refuse(OTHER, 10));
        assert!(!purges.refuse(KEY, 11));
        assert_eq!(purges.entries().len(), 1, "the floor");
    }

    #[test]
    fn journal_is_out_of_order_or_lacks_a_purge() {
        let purges = Purges::default();
        for (key, generation) in [(KEY, 30), (OTHER, 20)] {
            purges.note(Purged::Key(key), generation, Some(1));
        }
        purges.note(Purged::All, 15, Some(1));
        purges.note(Purged::Floor, 12, None);
        let entries = purges.entries();
        let generations: Vec<u64> = entries.iter().map(|entry| entry.generation).collect();
        assert_eq!(generations, [12, 15, 20, 30]);
    }
}
