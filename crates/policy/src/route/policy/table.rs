//! Which targets are mapped to which nodes: a bounded table, least recently used first out.

use super::rendezvous::mix;
use crate::route::cluster::TargetKey;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// The most targets of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappedMax(u32);

impl MappedMax {
    /// 65 536: the 31 000 to 37 703 targets of the papers' traces (ASPLOS'98 §3.2, USENIX'99 §6)
    /// twice.
    pub const DEFAULT: Self = Self(1 << 16);

    /// So many targets, at least 1 and at most 2^24.
    #[must_use]
    pub const fn new(targets: u32) -> Self {
        Self(match targets {
            0 => 1,
            targets if targets > 1 << 24 => 1 << 24,
            targets => targets,
        })
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for MappedMax {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// No entry: the end of a chain or of the list.
const NONE: u32 = u32::MAX;

/// A target with its value: 20 bytes and the value, and 4 to 8 bytes for its bucket.
#[derive(Clone, Debug)]
struct Entry<V> {
    target: TargetKey,
    /// The next one of the same bucket.
    chained: u32,
    newer: u32,
    older: u32,
    value: V,
}

/// The table. Its memory is allocated when it is made, and the pages that are not used stay
/// untouched.
#[derive(Clone, Debug)]
pub(super) struct MappingTable<V> {
    /// First entries of the buckets, one more than the number; 0: none. Zeros, so that pages of an
    /// empty table are not touched.
    buckets: Box<[u32]>,
    entries: Vec<Entry<V>>,
    newest: u32,
    oldest: u32,
    max: u32,
    /// Mixed into the bucket of a target: clients choose targets, and must not choose buckets.
    secret: u64,
}

impl<V> MappingTable<V> {
    pub(super) fn new(max: MappedMax, secret: u64) -> Self {
        let targets = max.get() as usize;
        Self {
            buckets: vec![0; targets.next_power_of_two()].into_boxed_slice(),
            entries: Vec::with_capacity(targets),
            newest: NONE,
            oldest: NONE,
            max: max.get(),
            secret,
        }
    }

    /// How many targets are in it.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.buckets) + self.entries.capacity() * size_of::<Entry<V>>()
    }

    /// The value of `target`, which becomes the most recently used.
    pub(super) fn get(&mut self, target: TargetKey) -> Option<&mut V> {
        let index = self.find(target)?;
        self.unlink(index);
        self.link(index);
        Some(&mut self.entries[index as usize].value)
    }

    /// The value of `target`, without a use of it.
    pub(super) fn peek(&self, target: TargetKey) -> Option<&V> {
        self.find(target)
            .map(|index| &self.entries[index as usize].value)
    }

    /// Sets the value of `target`; the least recently used leaves a full table for it.
    pub(super) fn insert(&mut self, target: TargetKey, value: V) {
        if let Some(known) = self.get(target) {
            *known = value;
            return;
        }
        let entry = Entry {
            target,
            chained: NONE,
            newer: NONE,
            older: NONE,
            value,
        };
        let len = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let index = if len < self.max {
            self.entries.push(entry);
            len
        } else {
            let oldest = self.oldest;
            self.unlink(oldest);
            self.unchain(oldest);
            self.entries[oldest as usize] = entry;
            oldest
        };
        self.chain(index);
        self.link(index);
    }

    /// Every value, in no order.
    pub(super) fn values(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    fn find(&self, target: TargetKey) -> Option<u32> {
        let mut index = self.first_of(self.bucket(target));
        while index != NONE {
            let entry = &self.entries[index as usize];
            if entry.target == target {
                return Some(index);
            }
            index = entry.chained;
        }
        None
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lowest bits are the bucket"
    )]
    fn bucket(&self, target: TargetKey) -> usize {
        mix(target.0 ^ self.secret) as usize & (self.buckets.len() - 1)
    }

    fn first_of(&self, bucket: usize) -> u32 {
        self.buckets[bucket].wrapping_sub(1)
    }

    fn chain(&mut self, index: u32) {
        let bucket = self.bucket(self.entries[index as usize].target);
        self.entries[index as usize].chained = self.first_of(bucket);
        self.buckets[bucket] = index + 1;
    }

    fn unchain(&mut self, index: u32) {
        let Entry {
            target, chained, ..
        } = self.entries[index as usize];
        let bucket = self.bucket(target);
        let mut before = self.first_of(bucket);
        if before == index {
            self.buckets[bucket] = chained.wrapping_add(1);
            return;
        }
        while self.entries[before as usize].chained != index {
            before = self.entries[before as usize].chained;
        }
        self.entries[before as usize].chained = chained;
    }

    /// Makes it the newest.
    fn link(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.newer = NONE;
        entry.older = self.newest;
        match self.newest {
            NONE => self.oldest = index,
            newest => self.entries[newest as usize].newer = index,
        }
        self.newest = index;
    }

    fn unlink(&mut self, index: u32) {
        let Entry { newer, older, .. } = self.entries[index as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same written without any care for speed: the newest last.
    struct Naive(Vec<(u64, u32)>, usize);

    impl Naive {
        fn get(&mut self, target: u64) -> Option<u32> {
            let at = self.0.iter().position(|(other, _)| *other == target)?;
            let entry = self.0.remove(at);
            self.0.push(entry);
            Some(entry.1)
        }

        fn insert(&mut self, target: u64, value: u32) {
            if self.get(target).is_some() {
                self.0.pop();
            } else if self.0.len() == self.1 {
                self.0.remove(0);
            }
            self.0.push((target, value));
        }
    }

    proptest! {
        #[test]
        fn table_holds_what_the_naive_one_holds(
            max in 1..20_u32,
            steps in prop::collection::vec((0..40_u64, any::<bool>()), 0..300),
        ) {
            let mut table = MappingTable::new(MappedMax::new(max), 7);
            let mut naive = Naive(Vec::new(), max as usize);
            let before = table.heap_bytes();
            for (step, (target, inserts)) in (0_u32..).zip(steps) {
                if inserts {
                    table.insert(TargetKey(target), step);
                    naive.insert(target, step);
                } else {
                    let got = table.get(TargetKey(target)).copied();
                    prop_assert_eq!(got, naive.get(target));
                }
                prop_assert_eq!(table.len(), naive.0.len());
                for target in 0..40 {
                    let expected = naive.0.iter().find(|(other, _)| *other == target);
                    let got = table.peek(TargetKey(target)).copied();
                    prop_assert_eq!(got, expected.map(|(_, value)| *value));
                }
            }
            prop_assert_eq!(table.heap_bytes(), before, "it never grows");
        }
    }

    #[test]
    fn table_takes_24_bytes_a_target_with_a_place_and_its_bucket() {
        let bytes = |max| MappingTable::<u16>::new(MappedMax::new(max), 0).heap_bytes();
        assert_eq!(bytes(1 << 16), (24 + 4) << 16);
        assert!(bytes(40_000) <= (24 + 8) * 40_000);
    }
}
