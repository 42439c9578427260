//! Where the record of a key lies: the one structure that has an entry for every stored response.
//!
//! Sixteen bytes an entry ([`entry`]) in shards of open addressing ([`table`]): at most 23 bytes a
//! stored response with the slack of a large table, whatever its size. An entry knows 64 bits of
//! the 128 of a key: a look-up may return a place of another key, which the record there shows.

mod entry;
mod table;

pub(crate) use entry::{Place, SLOTS_MAX};

use entry::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use table::Table;
use weir_policy::Digest;

/// Shards, each behind a mutex that is held for one look-up.
const SHARDS: usize = 64;

/// What is known of a key without reading.
#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[Mutex<Table>]>,
}

/// An entry found by its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    shard: usize,
    tag: u64,
    pub(crate) place: Place,
    pub(crate) was_asked_for: bool,
}

impl Resident {
    /// Whether it may be the entry of `key`.
    pub(crate) fn may_be(&self, key: Digest) -> bool {
        shard_of(key) == self.shard && tag_of(key) == self.tag
    }
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Table::new())).collect(),
        }
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Table> {
        self.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of `key`; notes the request.
    pub(crate) fn ask(&self, key: Digest) -> Option<Place> {
        let mut shard = self.shard(shard_of(key));
        let entry = shard.get_mut(tag_of(key))?;
        *entry = entry.asked_for(true);
        Some(entry.place())
    }

    /// The place of `key`, and whether it was requested.
    pub(crate) fn peek(&self, key: Digest) -> Option<(Place, bool)> {
        let mut shard = self.shard(shard_of(key));
        let entry = shard.get_mut(tag_of(key))?;
        Some((entry.place(), entry.was_asked_for()))
    }

    /// Puts `key` at `place`, instead of where it was.
    pub(crate) fn insert(&self, key: Digest, place: Place) {
        self.shard(shard_of(key))
            .insert(Entry::new(tag_of(key), place));
    }

    /// Puts `key` at `place` if it has no place yet.
    pub(crate) fn insert_new(&self, key: Digest, place: Place) {
        let mut shard = self.shard(shard_of(key));
        if shard.get_mut(tag_of(key)).is_none() {
            shard.insert(Entry::new(tag_of(key), place));
        }
    }

    /// Moves `key` if it is still at `from`.
    pub(crate) fn relocate(&self, key: Digest, from: Place, to: Place) -> bool {
        let mut shard = self.shard(shard_of(key));
        match shard.get_mut(tag_of(key)) {
            Some(entry) if entry.place().is_at(from) => {
                *entry = Entry::new(tag_of(key), to);
                true
            }
            _ => false,
        }
    }

    /// Takes `key` out.
    pub(crate) fn remove(&self, key: Digest) -> bool {
        self.shard(shard_of(key)).remove(tag_of(key)).is_some()
    }

    /// Takes `key` out if it is at `place`.
    pub(crate) fn remove_at(&self, key: Digest, place: Place) -> bool {
        self.remove_entry(shard_of(key), tag_of(key), place)
    }

    /// Takes a resident out if it is still there.
    pub(crate) fn remove_resident(&self, resident: &Resident) -> bool {
        self.remove_entry(resident.shard, resident.tag, resident.place)
    }

    fn remove_entry(&self, shard: usize, tag: u64, place: Place) -> bool {
        let mut shard = self.shard(shard);
        let is_there = shard
            .get_mut(tag)
            .is_some_and(|entry| entry.place().is_at(place));
        is_there && shard.remove(tag).is_some()
    }

    /// All entries of a segment, in the order of their places. Looks at the whole index, one shard
    /// after the other: a millisecond for 10^6 entries, once a segment.
    pub(crate) fn residents(&self, slot: u16) -> Vec<Resident> {
        let mut found = self.collect(|place| place.slot == slot);
        found.sort_unstable_by_key(|resident| resident.place.unit);
        found
    }

    /// All entries.
    pub(crate) fn all(&self) -> Vec<Resident> {
        self.collect(|_| true)
    }

    fn collect(&self, wanted: impl Fn(Place) -> bool) -> Vec<Resident> {
        let mut found = Vec::new();
        for number in 0..SHARDS {
            let shard = self.shard(number);
            let entries = shard.entries().filter(|entry| wanted(entry.place()));
            found.extend(entries.map(|entry| Resident {
                shard: number,
                tag: entry.tag(),
                place: entry.place(),
                was_asked_for: entry.was_asked_for(),
            }));
        }
        found
    }

    /// The first 64 bits of all keys, one shard after the other; no lock is held while they are
    /// visited.
    pub(crate) fn tags(&self, mut visit: impl FnMut(u64)) {
        for number in 0..SHARDS {
            let shard = self.shard(number);
            let tags: Vec<u64> = shard.entries().map(|entry| entry.tag()).collect();
            drop(shard);
            tags.into_iter().for_each(&mut visit);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        for number in 0..SHARDS {
            *self.shard(number) = Table::new();
        }
    }

    /// Entries.
    pub(crate) fn len(&self) -> u64 {
        (0..SHARDS)
            .map(|number| self.shard(number).len() as u64)
            .sum()
    }

    /// Memory in bytes: tables with their slack, and what there is without any entry.
    pub(crate) fn bytes(&self) -> u64 {
        let tables: usize = (0..SHARDS).map(|number| self.shard(number).bytes()).sum();
        (tables + SHARDS * size_of::<Mutex<Table>>()) as u64
    }
}

fn shard_of(key: Digest) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "a number below 64")]
    let shard = (key.1 % SHARDS as u64) as usize;
    shard
}

const fn tag_of(key: Digest) -> u64 {
    key.0
}

#[cfg(test)]
mod tests;
