//! Open addressing: Robin Hood order, so that a miss ends early, at up to seven eighths full; it
//! grows by a quarter, so that a table has little slack at any size. A tag is spread evenly (it is
//! part of a keyed digest), so its place is its share of the table's length: no hashing, and no
//! need for a power of two.

use super::entry::Entry;

#[derive(Debug)]
pub(super) struct Table {
    entries: Box<[Entry]>,
    len: usize,
}

/// Below this a table does not shrink.
const SMALL: usize = 8;

impl Table {
    pub(super) fn new() -> Self {
        Self {
            entries: Box::default(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_empty())
    }

    pub(super) fn get_mut(&mut self, tag: u64) -> Option<&mut Entry> {
        let at = self.position(tag)?;
        self.entries.get_mut(at)
    }

    /// Replaces the entry of the same tag.
    pub(super) fn insert(&mut self, entry: Entry) {
        if let Some(found) = self.get_mut(entry.tag()) {
            *found = entry;
            return;
        }
        if self.len >= self.entries.len() * 7 / 8 {
            self.rebuild(self.entries.len() * 5 / 4 + 2);
        }
        self.place(entry);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, tag: u64) -> Option<Entry> {
        let mut at = self.position(tag)?;
        let removed = self.entries[at];
        // those behind move up until one is at home
        loop {
            let next = self.behind(at);
            let entry = self.entries[next];
            if entry.is_empty() || self.distance(entry, next) == 0 {
                break;
            }
            self.entries[at] = entry;
            at = next;
        }
        self.entries[at] = Entry::EMPTY;
        self.len -= 1;
        if self.entries.len() > SMALL && self.len < self.entries.len() / 2 {
            self.rebuild(self.len * 10 / 7 + 2);
        }
        Some(removed)
    }

    fn position(&self, tag: u64) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut at = self.home(tag);
        for distance in 0..self.entries.len() {
            let entry = self.entries[at];
            if entry.is_empty() || self.distance(entry, at) < distance {
                return None;
            }
            if entry.tag() == tag {
                return Some(at);
            }
            at = self.behind(at);
        }
        None
    }

    /// There is an empty place.
    fn place(&mut self, mut entry: Entry) {
        let mut at = self.home(entry.tag());
        let mut distance = 0;
        while !self.entries[at].is_empty() {
            let theirs = self.distance(self.entries[at], at);
            if theirs < distance {
                std::mem::swap(&mut self.entries[at], &mut entry);
                distance = theirs;
            }
            at = self.behind(at);
            distance += 1;
        }
        self.entries[at] = entry;
    }

    fn rebuild(&mut self, capacity: usize) {
        let empty = vec![Entry::EMPTY; capacity].into_boxed_slice();
        let old = std::mem::replace(&mut self.entries, empty);
        for entry in old.iter().filter(|entry| !entry.is_empty()) {
            self.place(*entry);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the table's length")]
    fn home(&self, tag: u64) -> usize {
        ((u128::from(tag) * self.entries.len() as u128) >> 64) as usize
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() {
            0
        } else {
            at + 1
        }
    }

    /// How far from home an entry at `at` is.
    fn distance(&self, entry: Entry, at: usize) -> usize {
        let home = self.home(entry.tag());
        if at >= home {
            at - home
        } else {
            at + self.entries.len() - home
        }
    }
}
