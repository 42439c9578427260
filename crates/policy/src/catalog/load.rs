//! Whether content that is on disk is loaded into memory when it is requested, where a device has
//! to be read for it.
//!
//! A look-up on disk brings short content with its head, and [`Catalog::judge_promotion`] decides
//! whether it stays. Of longer content memory keeps the head, which takes little: it is a resident
//! that the eviction algorithm sees the requests of, and that grows if its content is loaded. What
//! the page cache has is not loaded: it would be in memory twice.

use super::{Catalog, Slot};

/// The longest content that is loaded, bytes. One read of a device brings it: 10 ms of a rotating
/// disk. The first byte for the client waits for all of it.
pub const LOAD_BYTES_MAX: u64 = 1 << 20;

/// What is loaded at once, bytes of content: a load takes as much again while it is read and
/// verified, and that is not in the budget.
pub const LOADING_BYTES_MAX: u64 = 4 << 20;

/// One response takes at most one part in so many of the budget: as much as S3-FIFO leaves to
/// newcomers, so that a load does not drive all of them out.
const LOAD_IS_AT_MOST_ONE_IN: u64 = 10;

/// Whether the content of a resident is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDecision {
    /// Load: it fits without an eviction.
    FreeRoom,
    /// Load: the resident was requested before, so recently that it is still here; or the algorithm
    /// does not remember requests.
    RepeatedRequest,
    /// Do not load: this is its first request for a long time.
    FirstRequest,
    /// Do not load: it would take too much of the budget.
    TooLarge,
    /// Do not load: it is a copy, which another node of the cluster keeps.
    Copy,
    /// Do not load: it was evicted, purged or replaced.
    NotResident,
}

impl LoadDecision {
    /// Whether it is loaded.
    #[must_use]
    pub const fn is_load(self) -> bool {
        matches!(self, Self::FreeRoom | Self::RepeatedRequest)
    }
}

/// Whether content of so many bytes may be loaded beside what is being loaded, `loading_bytes`.
#[must_use]
pub const fn may_load(loading_bytes: u64, content_bytes: u64) -> bool {
    content_bytes <= LOAD_BYTES_MAX
        && loading_bytes.saturating_add(content_bytes) <= LOADING_BYTES_MAX
}

impl Catalog {
    /// Whether the resident in `slot`, which has just been requested, is to come to `size_bytes`,
    /// with its content in memory.
    #[must_use]
    pub fn judge_load(&self, slot: Slot, size_bytes: u64) -> LoadDecision {
        let Some(held_bytes) = self.size_bytes(slot) else {
            return LoadDecision::NotResident;
        };
        let more_bytes = size_bytes.saturating_sub(held_bytes);
        if self.is_copy(slot) {
            LoadDecision::Copy
        } else if size_bytes > self.budget_bytes() / LOAD_IS_AT_MOST_ONE_IN {
            LoadDecision::TooLarge
        } else if self.fits(more_bytes) {
            LoadDecision::FreeRoom
        } else if self.eviction.was_requested_again(slot) {
            LoadDecision::RepeatedRequest
        } else {
            LoadDecision::FirstRequest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::eviction::EvictionKind;
    use alloc::vec::Vec;

    const BUDGET_BYTES: u64 = 10_000;
    const HEAD_BYTES: u64 = 100;

    const fn key(number: u64) -> Digest {
        Digest(number, number)
    }

    /// A catalog that is full of heads; the slots are in the order of their numbers.
    fn full_of_heads(kind: EvictionKind) -> Catalog {
        let mut catalog = Catalog::content_only(BUDGET_BYTES, kind);
        let mut victims = Vec::new();
        for number in 0..BUDGET_BYTES / HEAD_BYTES {
            let admitted = catalog.admit(key(number), HEAD_BYTES, &mut victims);
            assert_eq!(u64::from(admitted.expect("room").0), number);
        }
        assert!(victims.is_empty());
        catalog
    }

    #[test]
    fn content_of_a_full_catalog_is_loaded_at_the_second_request() {
        let mut catalog = full_of_heads(EvictionKind::S3Fifo);
        assert_eq!(catalog.judge_load(Slot(7), 500), LoadDecision::FirstRequest);
        catalog.touch(Slot(7));
        assert_eq!(
            catalog.judge_load(Slot(7), 500),
            LoadDecision::RepeatedRequest
        );
        assert_eq!(catalog.judge_load(Slot(8), 500), LoadDecision::FirstRequest);
    }

    #[test]
    fn content_is_loaded_at_the_first_request_if_the_algorithm_remembers_none() {
        for kind in EvictionKind::ALL {
            let catalog = full_of_heads(kind);
            let expected = match kind {
                EvictionKind::S3Fifo => LoadDecision::FirstRequest,
                _ => LoadDecision::RepeatedRequest,
            };
            assert_eq!(catalog.judge_load(Slot(7), 500), expected, "{kind}");
        }
    }

    #[test]
    fn content_is_loaded_at_the_first_request_into_free_room_alone() {
        let mut catalog = full_of_heads(EvictionKind::S3Fifo);
        catalog.remove(Slot(3));
        let judge = |size| catalog.judge_load(Slot(7), size);
        // a head left, and its own is there
        assert_eq!(judge(2 * HEAD_BYTES), LoadDecision::FreeRoom);
        assert_eq!(judge(2 * HEAD_BYTES + 1), LoadDecision::FirstRequest);
    }

    #[test]
    fn response_that_came_back_after_its_eviction_is_loaded_at_once() {
        let mut catalog = full_of_heads(EvictionKind::S3Fifo);
        let mut victims = Vec::new();
        let mut slots = Vec::new();
        for number in [1000, 0] {
            let admitted = catalog.admit(key(number), HEAD_BYTES, &mut victims);
            slots.push(admitted.expect("room"));
        }
        assert_eq!(victims[0], Slot(0), "the first is remembered");
        let decisions = slots.iter().map(|slot| catalog.judge_load(*slot, 500));
        assert_eq!(
            decisions.collect::<Vec<_>>(),
            [LoadDecision::FirstRequest, LoadDecision::RepeatedRequest]
        );
    }

    #[test]
    fn load_may_take_a_tenth_of_the_budget() {
        let mut catalog = full_of_heads(EvictionKind::S3Fifo);
        catalog.touch(Slot(7));
        assert!(catalog.judge_load(Slot(7), 1000).is_load());
        assert_eq!(catalog.judge_load(Slot(7), 1001), LoadDecision::TooLarge);
    }

    #[test]
    fn copies_and_what_has_left_are_not_loaded() {
        let mut catalog = Catalog::content_only(BUDGET_BYTES, EvictionKind::Lru);
        let mut victims = Vec::new();
        catalog.begin_copies(&mut victims, &|_| None).expect("room");
        let copy = catalog.admit_copy(key(1), HEAD_BYTES, &mut victims);
        let copy = copy.expect("room");
        assert_eq!(catalog.judge_load(copy, 200), LoadDecision::Copy);
        catalog.make_own(copy, key(1));
        assert_eq!(catalog.judge_load(copy, 200), LoadDecision::FreeRoom);
        catalog.remove(copy);
        assert_eq!(catalog.judge_load(copy, 200), LoadDecision::NotResident);
        assert_eq!(catalog.judge_load(Slot(99), 200), LoadDecision::NotResident);
    }

    #[test]
    fn loads_are_bounded_each_and_in_sum() {
        assert!(may_load(0, LOAD_BYTES_MAX));
        assert!(!may_load(0, LOAD_BYTES_MAX + 1));
        assert!(may_load(LOADING_BYTES_MAX - 500, 500));
        assert!(!may_load(LOADING_BYTES_MAX - 500, 501));
        assert!(!may_load(u64::MAX, 1));
    }
}
