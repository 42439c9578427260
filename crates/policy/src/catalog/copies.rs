//! Copies of what another node of a cluster keeps: a queue of their own.
//!
//! To lose a copy costs a request to the node that keeps the response; to lose another entry costs
//! one to the origin. So when room is needed, a copy leaves first, as long as copies have more than
//! their share of the budget. Room that no other entry needs is free for them. Which copy leaves,
//! says [`Sieve`]. The last one stays, however large it is: one large response of high rate can
//! still be spread over the nodes.
//!
//! The queue takes memory from the first copy on: without a cluster there is none.

use super::in_use::InUse;
use super::{Catalog, Cell, Refusal, Slot};
use crate::digest::Digest;
use crate::eviction::{Eviction, Sieve};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Copies have one part in so many of the budget while other entries need room.
///
/// Three nodes with a third of the memory each, under a Zipf law of 0.8, asked the origin 1.033
/// times as often as one node with all of it while copies were evicted like all else, and 1.015
/// times with one part in 128; 56 % of the requests are then hits at the node that the client asks,
/// and 25 % without copies (`records/cluster-2026-11-26.json`, `-27.json`: `cargo xtask cluster`).
pub const COPIES_ARE_ONE_IN: u64 = 128;

/// The entries that are copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    queue: Sieve,
    used_bytes: u64,
}

impl Copies {
    pub(super) fn overhead_bytes(&self) -> u64 {
        self.queue.overhead_bytes()
    }

    pub(super) fn bytes_for(&self, slots: usize) -> u64 {
        self.queue.bytes_for(slots)
    }

    pub(super) fn reserve(&mut self, slots: usize) {
        self.queue.reserve(slots);
    }

    pub(super) fn shrink(&mut self, slots: usize) {
        self.queue.shrink(slots);
    }

    pub(super) fn len(&self) -> usize {
        self.queue.residents()
    }

    pub(super) fn touch(&mut self, slot: Slot) {
        self.queue.touch(slot);
    }

    pub(super) fn insert(&mut self, slot: Slot, key: Digest, size_bytes: u64) {
        self.queue.insert(slot, key, size_bytes);
        self.used_bytes += size_bytes;
    }

    pub(super) fn remove(&mut self, slot: Slot, size_bytes: u64) {
        self.queue.remove(slot);
        self.used_bytes -= size_bytes;
    }

    pub(super) fn resize(&mut self, slot: Slot, former_bytes: u64, size_bytes: u64) {
        self.queue.resize(slot, size_bytes);
        self.used_bytes = self.used_bytes - former_bytes + size_bytes;
    }

    /// # Panics
    /// If an invariant is broken.
    pub(super) fn debug_check(&self, used_bytes: u64) {
        assert_eq!(self.used_bytes, used_bytes, "bytes of copies do not add up");
        self.queue.debug_check();
    }
}

impl Catalog {
    /// As [`Self::admit`], of a copy of what another node keeps. It is not remembered when it
    /// leaves.
    ///
    /// # Errors
    /// As there; entries may have been evicted for the queue of copies.
    pub fn admit_copy(
        &mut self,
        key: Digest,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
    ) -> Result<Slot, Refusal> {
        self.begin_copies(victims, &|_| None)?;
        let slot = self.take_slot(size_bytes, victims)?;
        self.cells[slot.index()] = Cell::copy(size_bytes);
        if let Some(copies) = &mut self.copies {
            copies.insert(slot, key, size_bytes);
        }
        Ok(slot)
    }

    /// Makes the queue of copies, and room for it, unless there is one. Entries in use stay.
    ///
    /// # Errors
    /// As [`Self::make_room_to_hold`].
    pub fn begin_copies(
        &mut self,
        victims: &mut Vec<Slot>,
        in_use: InUse<'_>,
    ) -> Result<(), Refusal> {
        if self.copies.is_some() {
            return Ok(());
        }
        let mut copies = Box::<Copies>::default();
        if self.counts_overhead {
            let size_bytes = copies.bytes_for(self.cells.len());
            self.make_room_to_hold(size_bytes, victims, in_use)?;
        }
        copies.reserve(self.cells.len());
        self.copies = Some(copies);
        Ok(())
    }

    /// Whether the entry in `slot` is a copy.
    #[must_use]
    pub fn is_copy(&self, slot: Slot) -> bool {
        self.cells
            .get(slot.index())
            .is_some_and(|cell| cell.is_copy())
    }

    /// The entry in `slot`, under `key`, is no copy from now on: this node keeps it. It enters as a
    /// newcomer. Any other entry, and a vacant slot, is left as it is.
    pub fn make_own(&mut self, slot: Slot, key: Digest) {
        let (true, Some(size_bytes), Some(copies)) =
            (self.is_copy(slot), self.size_bytes(slot), &mut self.copies)
        else {
            return;
        };
        copies.remove(slot, size_bytes);
        self.cells[slot.index()] = Cell::resident(size_bytes);
        self.eviction.insert(slot, key, size_bytes);
    }

    /// What the copies come to, bytes.
    #[must_use]
    pub fn copies_bytes(&self) -> u64 {
        self.copies.as_ref().map_or(0, |copies| copies.used_bytes)
    }

    /// How many entries are copies.
    #[must_use]
    pub fn copies(&self) -> usize {
        self.copies.as_ref().map_or(0, |copies| copies.len())
    }

    /// What copies may come to while other entries need room, bytes.
    #[must_use]
    pub const fn copies_max_bytes(&self) -> u64 {
        self.budget_bytes / COPIES_ARE_ONE_IN
    }

    /// What of the copies leaves for any other entry, bytes.
    pub(super) fn copies_bytes_above_share(&self) -> u64 {
        match self.copies() {
            0 | 1 => 0,
            _ => self.copies_bytes().saturating_sub(self.copies_max_bytes()),
        }
    }

    /// Chooses who leaves, and takes it out of its queue; never `spared`. Copies are looked at
    /// first if they have more than their share, or if there is nothing else; not at all if
    /// `skips_copies`.
    pub(super) fn choose_victim(
        &mut self,
        spared: Option<Slot>,
        skips_copies: bool,
    ) -> Option<Slot> {
        let has_more = self.copies_bytes_above_share() > 0;
        let first = has_more && !skips_copies;
        let victim = if first { self.evict_copy(spared) } else { None };
        let victim = victim.or_else(|| self.eviction.evict(spared));
        victim.or_else(|| self.evict_copy(spared))
    }

    fn evict_copy(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let copies = self.copies.as_mut()?;
        let victim = copies.queue.evict(spared)?;
        let size_bytes = self.cells[victim.index()].size_bytes().unwrap_or(0);
        copies.used_bytes -= size_bytes;
        Some(victim)
    }

    /// Puts one that [`Self::choose_victim`] has taken out at the young end of its queue.
    pub(super) fn put_back(&mut self, slot: Slot, key: Digest) {
        let cell = self.cells[slot.index()];
        let size_bytes = cell.size_bytes().unwrap_or(0);
        match &mut self.copies {
            Some(copies) if cell.is_copy() => copies.insert(slot, key, size_bytes),
            _ => self.eviction.insert(slot, key, size_bytes),
        }
    }

    /// Takes the entry in `slot` out of its queue.
    pub(super) fn unlink(&mut self, slot: Slot) {
        let cell = self.cells[slot.index()];
        match &mut self.copies {
            Some(copies) if cell.is_copy() => {
                copies.remove(slot, cell.size_bytes().unwrap_or(0));
            }
            _ => self.eviction.remove(slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::PromotionDecision;
    use crate::eviction::EvictionKind;
    use crate::eviction::reference::Random;

    const SIZE_BYTES: u64 = 100;

    /// As many entries of [`SIZE_BYTES`] as copies have room for in their share.
    const COPIES: usize = 4;

    /// As many as there is room for.
    const ENTRIES: usize = COPIES * 128;

    struct Script {
        catalog: Catalog,
        key: u64,
        victims: Vec<Slot>,
    }

    impl Script {
        fn new(kind: EvictionKind) -> Self {
            Self {
                catalog: Catalog::content_only(ENTRIES as u64 * SIZE_BYTES, kind),
                key: 0,
                victims: Vec::new(),
            }
        }

        fn admit(&mut self, is_copy: bool, size_bytes: u64) -> Slot {
            self.key += 1;
            let admit = if is_copy {
                Catalog::admit_copy
            } else {
                Catalog::admit
            };
            let key = Digest(self.key, self.key);
            let slot = admit(&mut self.catalog, key, size_bytes, &mut self.victims);
            self.catalog.debug_check();
            slot.unwrap()
        }

        fn own(&mut self) -> Slot {
            self.admit(false, SIZE_BYTES)
        }

        fn copy(&mut self) -> Slot {
            self.admit(true, SIZE_BYTES)
        }

        /// Those that have left since the last call.
        fn left(&mut self) -> Vec<Slot> {
            core::mem::take(&mut self.victims)
        }
    }

    #[test]
    fn copies_have_all_room_that_no_other_entry_needs() {
        for kind in EvictionKind::ALL {
            let mut script = Script::new(kind);
            for _ in 0..ENTRIES {
                script.copy();
            }
            assert_eq!((script.left(), script.catalog.copies()), (vec![], ENTRIES));
        }
    }

    #[test]
    fn copies_above_their_share_leave_before_all_other_entries() {
        for kind in EvictionKind::ALL {
            let mut script = Script::new(kind);
            let copies: Vec<Slot> = (0..ENTRIES / 2).map(|_| script.copy()).collect();
            for _ in 0..ENTRIES / 2 {
                script.own();
            }
            for expected in &copies[..copies.len() - COPIES] {
                script.catalog.touch(copies[copies.len() - 1]);
                script.own();
                assert_eq!(script.left(), [*expected], "{kind}");
            }
            assert_eq!(script.catalog.copies(), COPIES, "{kind}");
            script.own();
            let left = script.left();
            assert!(!copies.contains(&left[0]), "{kind}: within its share");
        }
    }

    #[test]
    fn copies_never_leave_other_entries_less_than_all_but_their_share() {
        for kind in EvictionKind::ALL {
            let mut script = Script::new(kind);
            let mut random = Random::new(1);
            for _ in 0..ENTRIES {
                script.own();
            }
            for _ in 0..10 * ENTRIES {
                script.admit(random.below(3) > 0, SIZE_BYTES);
                let copies = script.catalog.copies();
                assert!(copies <= COPIES + 1, "{kind}: {copies}");
                let others = script.catalog.len() - copies;
                assert!(others >= ENTRIES - COPIES - 1, "{kind}: {others}");
            }
        }
    }

    #[test]
    fn requested_copy_stays_while_others_come_and_go() {
        let mut script = Script::new(EvictionKind::S3Fifo);
        for _ in 0..ENTRIES {
            script.own();
        }
        let requested = script.copy();
        for _ in 0..10 * ENTRIES {
            script.catalog.touch(requested);
            script.copy();
        }
        assert!(script.catalog.is_copy(requested));
    }

    #[test]
    fn one_copy_may_be_larger_than_the_share() {
        let mut script = Script::new(EvictionKind::S3Fifo);
        for _ in 0..ENTRIES {
            script.own();
        }
        let large = script.admit(true, 10 * COPIES as u64 * SIZE_BYTES);
        script.left();
        for _ in 0..ENTRIES / 4 {
            script.own();
        }
        assert!(!script.left().contains(&large));
        script.copy();
        script.own();
        assert!(script.left().contains(&large));
    }

    #[test]
    fn copy_that_becomes_own_is_evicted_as_other_entries_are() {
        let mut script = Script::new(EvictionKind::Lru);
        let copies: Vec<Slot> = (0..COPIES + 2).map(|_| script.copy()).collect();
        for _ in copies.len()..ENTRIES {
            script.own();
        }
        script.catalog.make_own(copies[0], Digest(0, 0));
        script.catalog.debug_check();
        assert!(!script.catalog.is_copy(copies[0]));
        script.own();
        assert_eq!(script.left(), [copies[1]]);
        // no copy is above the share any more: the least recently used other one
        script.own();
        assert_ne!(script.left(), [copies[2]]);
        assert!(script.catalog.size_bytes(copies[0]).is_some());
    }

    #[test]
    fn copies_in_use_do_not_keep_other_entries_from_leaving() {
        for kind in EvictionKind::ALL {
            let mut script = Script::new(kind);
            let copies: Vec<Slot> = (0..ENTRIES / 2).map(|_| script.copy()).collect();
            for _ in copies.len()..ENTRIES {
                script.own();
            }
            let in_use = |slot: Slot| copies.contains(&slot).then(|| Digest(slot.0.into(), 0));
            let mut victims = Vec::new();
            let (catalog, size_bytes) = (&mut script.catalog, SIZE_BYTES);
            let room = catalog.make_room_to_admit(size_bytes, &mut victims, &in_use);
            assert_eq!((room, victims.len()), (Ok(()), 1), "{kind}");
            assert!(!copies.contains(&victims[0]), "{kind}");
            script.catalog.debug_check();
        }
    }

    #[test]
    fn response_on_disk_takes_the_place_of_copies_above_their_share_at_once() {
        let mut script = Script::new(EvictionKind::S3Fifo);
        let judge = |script: &mut Script, key| {
            let catalog = &mut script.catalog;
            catalog.judge_promotion(Digest(key, key), SIZE_BYTES)
        };
        for _ in 0..ENTRIES - COPIES {
            script.own();
        }
        for _ in 0..COPIES {
            script.copy();
        }
        let refused = judge(&mut script, 10_000);
        assert_eq!(refused, PromotionDecision::FirstRequest);
        script.copy();
        let admitted = judge(&mut script, 10_001);
        assert_eq!(admitted, PromotionDecision::FreeRoom);
    }

    #[test]
    fn queue_of_copies_costs_memory_from_the_first_copy_on() {
        let mut catalog = Catalog::new(100_000, EvictionKind::S3Fifo);
        let mut victims = Vec::new();
        catalog.admit(Digest(1, 1), 100, &mut victims).unwrap();
        let without = catalog.overhead_bytes();
        catalog.admit_copy(Digest(2, 2), 100, &mut victims).unwrap();
        let slots = catalog.slots() as u64;
        assert_eq!(catalog.overhead_bytes(), without + 9 * slots);
        assert!(victims.is_empty());
    }
}
