//! The set of ids that the origin has received, a bit for each.

use crate::mark::Id;

/// Numbers of one share and phase are below this.
pub(super) const NUMBERS: u64 = 1 << 32;

/// Bits of a page, which is made when one of its numbers is seen.
const PAGE_BITS: u64 = 1 << 16;

/// Words of a page: 8 KiB.
const PAGE_WORDS: usize = 1 << 10;

/// Pages of all phases and shares: 128 MiB, a thousand million requests if their numbers are dense.
const PAGES_MAX: usize = 1 << 14;

/// Phases that may have ids; a scenario has twelve at most.
const PHASES_MAX: u8 = 64;

/// Whether an id is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdStatus {
    /// For the first time.
    First,
    /// Not for the first time.
    Repeated,
    /// The id is outside of the run, or there is no room to remember it.
    Outside,
}

/// The ids that were received.
#[derive(Debug)]
pub(super) struct IdSet {
    /// By phase and share.
    phases: Vec<Vec<Share>>,
    shares: u32,
    pages: usize,
}

/// The pages of one phase and share, by number.
type Share = Vec<Option<Box<[u64; PAGE_WORDS]>>>;

impl IdSet {
    /// For a run of so many participants.
    pub(super) const fn new(shares: u32) -> Self {
        Self {
            phases: Vec::new(),
            shares,
            pages: 0,
        }
    }

    /// Notes the id.
    pub(super) fn see(&mut self, id: Id) -> IdStatus {
        if id.phase >= PHASES_MAX || id.share >= self.shares || id.number >= NUMBERS {
            return IdStatus::Outside;
        }
        let page = place(&mut self.phases, usize::from(id.phase));
        let page = place(page, index(u64::from(id.share)));
        let page = place(page, index(id.number / PAGE_BITS));
        if page.is_none() {
            if self.pages >= PAGES_MAX {
                return IdStatus::Outside;
            }
            self.pages += 1;
        }
        let page = page.get_or_insert_with(|| Box::new([0; PAGE_WORDS]));
        let bit = id.number % PAGE_BITS;
        let word = &mut page[index(bit / 64)];
        let mask = 1 << (bit % 64);
        if *word & mask != 0 {
            return IdStatus::Repeated;
        }
        *word |= mask;
        IdStatus::First
    }
}

/// The place with this index, made with those before it if need be.
fn place<T: Default>(places: &mut Vec<T>, index: usize) -> &mut T {
    if places.len() <= index {
        places.resize_with(index + 1, T::default);
    }
    &mut places[index]
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("limits keep it below 2^32")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn id(phase: u8, share: u32, number: u64) -> Id {
        Id {
            phase,
            share,
            number,
        }
    }

    #[test]
    fn id_outside_the_run_is_never_recorded() {
        let mut ids = IdSet::new(2);
        for outside in [
            id(PHASES_MAX, 0, 0),
            id(0, 2, 0),
            id(0, u32::MAX, 0),
            id(0, 0, NUMBERS),
        ] {
            assert_eq!(ids.see(outside), IdStatus::Outside, "{outside:?}");
            assert_eq!(ids.see(outside), IdStatus::Outside, "{outside:?}");
        }
        assert_eq!(ids.see(id(PHASES_MAX - 1, 1, NUMBERS - 1)), IdStatus::First);
        assert_eq!(
            ids.see(id(PHASES_MAX - 1, 1, NUMBERS - 1)),
            IdStatus::Repeated
        );
    }

    #[test]
    fn id_that_needs_a_page_beyond_the_limit_counts_as_outside() {
        let mut ids = IdSet::new(1);
        for page in 0..PAGES_MAX as u64 {
            ids.pages = ids.pages.max(PAGES_MAX - 2);
            let expected = if page < 2 {
                IdStatus::First
            } else {
                IdStatus::Outside
            };
            assert_eq!(ids.see(id(0, 0, page * PAGE_BITS)), expected);
        }
        assert_eq!(
            ids.see(id(0, 0, 1)),
            IdStatus::First,
            "on a page that is there"
        );
    }

    proptest! {
        #[test]
        fn bitmap_agrees_with_a_hash_set(
            numbers in prop::collection::vec((0_u8..3, 0_u32..3, prop_oneof![0_u64..70, 65_500_u64..65_600]), 0..300)
        ) {
            let (mut ids, mut set) = (IdSet::new(3), HashSet::new());
            for (phase, share, number) in numbers {
                let id = id(phase, share, number);
                let expected = if set.insert(id) { IdStatus::First } else { IdStatus::Repeated };
                prop_assert_eq!(ids.see(id), expected);
            }
        }
    }
}
