//! Which purges are in force: the generation rule, in memory.
//!
//! A record is alive if it was requested after the last purge of its key and after the last purge
//! of everything. A purge is remembered for as long as a segment is there that may hold what it
//! concerns: those up to the one that was being written when it was journaled. Later ones cannot,
//! as the writer checks here before it writes.

use crate::format::{PurgeEntry, PurgeScope};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use weir_policy::Digest;

/// Purges of keys that are remembered, 64 bytes each or so; beyond, the oldest segments leave
/// early.
pub(crate) const PURGES_MAX: usize = 1 << 20;

/// In the journal, as the segment of a purge of everything: it concerns this directory only.
pub(crate) const LOCAL: u64 = u64::MAX;

/// The last purge, and the last one in the journal: a purge is in force at once and journaled a
/// moment later, or never if nothing is on the device.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    generation: u64,
    /// The highest segment that may hold what it concerns.
    segment: u64,
    journaled: u64,
    journaled_segment: u64,
}

impl Mark {
    fn note(&mut self, generation: u64, journaled_in: Option<u64>) {
        if generation >= self.generation {
            self.generation = generation;
            self.segment = journaled_in.unwrap_or(u64::MAX);
        }
        if let Some(segment) = journaled_in
            && generation >= self.journaled
        {
            self.journaled = generation;
            self.journaled_segment = segment;
        }
    }

    const fn is_needed(&self, oldest: u64) -> bool {
        self.segment >= oldest || (self.journaled > 0 && self.journaled_segment >= oldest)
    }

    fn entry(&self, what: PurgeScope) -> Option<PurgeEntry> {
        (self.journaled > 0).then_some(PurgeEntry {
            generation: self.journaled,
            what,
            segment: self.journaled_segment,
        })
    }
}

#[derive(Debug, Default)]
struct Known {
    all: Mark,
    keys: HashMap<Digest, Mark>,
    /// Purges up to this generation may have been dropped from here.
    floor: u64,
    /// The same of those that were journaled.
    journaled_floor: u64,
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

    /// Whether a record of `key` that was requested at `generation` is purged.
    pub(crate) fn cover(&self, key: Digest, generation: u64) -> bool {
        let known = self.read();
        generation <= known.all.generation
            || known
                .keys
                .get(&key)
                .is_some_and(|mark| generation <= mark.generation)
    }

    /// Whether a response that was requested at `generation` may not be stored any more: it is
    /// purged, or so old that a purge of it may have been dropped.
    pub(crate) fn refuse(&self, key: Digest, generation: u64) -> bool {
        self.cover(key, generation) || generation <= self.read().floor
    }

    /// Puts a purge in force. `journaled_in`: the highest segment that there was when it was
    /// journaled, if it was.
    pub(crate) fn note(&self, what: PurgeScope, generation: u64, journaled_in: Option<u64>) {
        let mut known = self.write();
        match what {
            PurgeScope::Key(key) => {
                let mark = known.keys.entry(key).or_default();
                mark.note(generation, journaled_in);
            }
            PurgeScope::All => {
                known.all.note(generation, journaled_in);
                if journaled_in.is_some() {
                    // what is journaled about keys must stay until this is
                    known.keys.retain(|_, mark| mark.generation > generation);
                }
            }
            PurgeScope::Floor => {
                known.floor = known.floor.max(generation);
                known.journaled_floor = known.journaled_floor.max(generation);
            }
        }
    }

    /// Nothing of a purge is on the device: it keeps late writes out for as long as `segment` is
    /// there, and is not journaled.
    pub(crate) fn settle(&self, what: PurgeScope, generation: u64, segment: u64) {
        let mut known = self.write();
        if let PurgeScope::Key(key) = what
            && let Some(mark) = known.keys.get_mut(&key)
            && mark.generation == generation
        {
            mark.segment = segment;
        }
    }

    /// Everything in this directory is dropped, for a reason of its own. Purges that are not listed
    /// any more count as dropped: another directory cannot learn them here.
    pub(crate) fn empty(&self, generation: u64) {
        let mut known = self.write();
        let journaled = known.keys.values().map(|mark| mark.journaled).max();
        let dropped = journaled.unwrap_or(0).max(known.all.journaled);
        known.floor = known.floor.max(dropped);
        known.journaled_floor = known.journaled_floor.max(dropped);
        drop(known);
        self.note(PurgeScope::All, generation, Some(LOCAL));
    }

    /// Drops purges that no segment from `oldest` on can need; whether there were any.
    pub(crate) fn drop_before(&self, oldest: u64) -> bool {
        let mut known = self.write();
        let before = known.keys.len();
        let (mut floor, mut journaled_floor) = (known.floor, known.journaled_floor);
        known.keys.retain(|_, mark| {
            let is_needed = mark.is_needed(oldest);
            if !is_needed {
                floor = floor.max(mark.generation);
                journaled_floor = journaled_floor.max(mark.journaled);
            }
            is_needed
        });
        known.floor = floor;
        known.journaled_floor = journaled_floor;
        known.keys.len() < before
    }

    /// What a journal must say, in ascending order of generations.
    pub(crate) fn entries(&self) -> Vec<PurgeEntry> {
        let known = self.read();
        let floor = PurgeEntry {
            generation: known.journaled_floor,
            what: PurgeScope::Floor,
            segment: 0,
        };
        let keys = known.keys.iter();
        let mut entries: Vec<PurgeEntry> = keys
            .filter_map(|(key, mark)| mark.entry(PurgeScope::Key(*key)))
            .chain([floor])
            .chain(known.all.entry(PurgeScope::All))
            .collect();
        entries.sort_unstable_by_key(|entry| entry.generation);
        entries
    }

    /// The generation of the newest one in the journal.
    pub(crate) fn newest_journaled(&self) -> u64 {
        let known = self.read();
        let keys = known.keys.values().map(|mark| mark.journaled).max();
        let all = known.all.journaled.max(known.journaled_floor);
        keys.unwrap_or(0).max(all)
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
    fn purge_covers_records_up_to_its_generation_and_no_newer_ones() {
        let purges = Purges::default();
        purges.note(PurgeScope::Key(KEY), 10, None);
        assert!(purges.cover(KEY, 10) && !purges.cover(KEY, 11));
        assert!(!purges.cover(OTHER, 5));
        purges.note(PurgeScope::Key(KEY), 7, None);
        assert!(purges.cover(KEY, 10), "an older purge undid a newer one");
        purges.note(PurgeScope::All, 20, Some(3));
        assert!(purges.cover(OTHER, 20) && !purges.cover(KEY, 21));
        assert_eq!(purges.len(), 0);
    }

    #[test]
    fn purge_is_dropped_once_no_segment_needs_it_and_late_writes_stay_refused() {
        let purges = Purges::default();
        purges.note(PurgeScope::Key(KEY), 10, None);
        assert!(!purges.drop_before(100), "not journaled yet");
        purges.note(PurgeScope::Key(KEY), 10, Some(4));
        assert!(!purges.drop_before(4));
        assert!(purges.drop_before(5));
        assert!(!purges.cover(KEY, 9), "nothing of it can be on the device");
        assert!(purges.refuse(KEY, 9) && purges.refuse(OTHER, 10));
        assert!(!purges.refuse(KEY, 11));
        assert_eq!(purges.entries().len(), 1, "the floor");
    }

    #[test]
    fn journal_lists_a_journaled_purge_while_a_newer_one_is_pending() {
        let purges = Purges::default();
        purges.note(PurgeScope::Key(KEY), 10, Some(1));
        purges.note(PurgeScope::Key(KEY), 20, None);
        purges.note(PurgeScope::All, 30, None);
        let generations = |purges: &Purges| -> Vec<u64> {
            purges.entries().iter().map(|it| it.generation).collect()
        };
        assert_eq!(generations(&purges), [0, 10]);
        assert!(purges.cover(KEY, 30));
        purges.settle(PurgeScope::Key(KEY), 20, 1);
        assert!(purges.drop_before(2));
        assert_eq!(
            generations(&purges),
            [10],
            "the floor of what was journaled"
        );
        assert!(purges.refuse(OTHER, 20));
        purges.empty(40);
        assert_eq!(generations(&purges), [10, 40]);
        assert_eq!(purges.entries()[1].segment, LOCAL);
    }

    #[test]
    fn journal_entries_include_every_purge_in_order_of_generation() {
        let purges = Purges::default();
        for (key, generation) in [(KEY, 30), (OTHER, 20)] {
            purges.note(PurgeScope::Key(key), generation, Some(1));
        }
        purges.note(PurgeScope::All, 15, Some(1));
        purges.note(PurgeScope::Floor, 12, None);
        let entries = purges.entries();
        let generations: Vec<u64> = entries.iter().map(|entry| entry.generation).collect();
        assert_eq!(generations, [12, 15, 20, 30]);
    }
}
