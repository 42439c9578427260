//! Which pages of a file are free.

use std::collections::BTreeMap;

/// So many free ranges are looked at for one that is long enough.
const RANGES_LOOKED_AT_MAX: usize = 1024;

/// The free pages of a file, in ranges that do not touch.
#[derive(Debug)]
pub(super) struct FreeRanges {
    /// Pages of each range by its first.
    ranges: BTreeMap<u64, u64>,
    /// Where the search begins: behind what was taken last. Most of what is long is there.
    next: u64,
    /// Pages that are not free.
    taken: u64,
}

impl FreeRanges {
    /// All of `pages`.
    pub(super) fn new(pages: u64) -> Self {
        Self {
            ranges: BTreeMap::from([(0, pages)]),
            next: 0,
            taken: 0,
        }
    }

    /// How many pages are not free.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes `pages` that follow each other; the first.
    pub(super) fn take(&mut self, pages: u64) -> Option<u64> {
        let behind = self.ranges.range(self.next..);
        let before = self.ranges.range(..self.next);
        let mut looked_at = behind.chain(before).take(RANGES_LOOKED_AT_MAX);
        let (first, free) = looked_at.find(|(_, free)| **free >= pages)?;
        let (first, free) = (*first, *free);
        self.ranges.remove(&first);
        if free > pages {
            self.ranges.insert(first + pages, free - pages);
        }
        self.next = first + pages;
        self.taken += pages;
        Some(first)
    }

    /// `pages` from `first` on are free again.
    pub(super) fn give(&mut self, first: u64, pages: u64) {
        self.taken -= pages;
        let (mut first, mut pages) = (first, pages);
        if let Some(behind) = self.ranges.remove(&(first + pages)) {
            pages += behind;
        }
        if let Some((before, free)) = self.ranges.range(..first).next_back()
            && before + free == first
        {
            (first, pages) = (*before, free + pages);
        }
        self.ranges.insert(first, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_are_taken_by_one_at_a_time_and_all_come_back(
            steps in prop::collection::vec((1_u64..9, any::<prop::sample::Index>(), any::<bool>()), 1..200),
        ) {
            const PAGES: u64 = 64;
            let mut free = FreeRanges::new(PAGES);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (pages, which, gives) in steps {
                if gives && !taken.is_empty() {
                    let (first, pages) = taken.swap_remove(which.index(taken.len()));
                    free.give(first, pages);
                } else if let Some(first) = free.take(pages) {
                    prop_assert!(first + pages <= PAGES);
                    for (other, length) in &taken {
                        prop_assert!(first + pages <= *other || other + length <= first);
                    }
                    taken.push((first, pages));
                }
                let sum: u64 = taken.iter().map(|(_, pages)| pages).sum();
                prop_assert_eq!(free.taken(), sum);
            }
            for (first, pages) in taken.drain(..) {
                free.give(first, pages);
            }
            prop_assert_eq!(free.ranges, BTreeMap::from([(0, PAGES)]));
        }
    }

    #[test]
    fn range_that_is_too_short_is_left() {
        let mut free = FreeRanges::new(10);
        let taken: Vec<u64> = (0..5).map(|_| free.take(2).unwrap()).collect();
        assert_eq!(taken, [0, 2, 4, 6, 8]);
        free.give(2, 2);
        free.give(6, 2);
        assert_eq!(free.take(3), None);
        free.give(4, 2);
        assert_eq!(free.take(6), Some(2));
    }
}
