//! Which responses are resident, and which leave to make room.
//!
//! The catalog promises one thing: `used_bytes() + overhead_bytes() + held_bytes() <=
//! budget_bytes()`, after every call. The first is what the caller says each entry costs (head,
//! body, and what its allocator adds), the second what the catalog itself holds on the heap and the
//! caller beside each slot, the third what victims have not given back yet. It stores neither
//! content nor keys: the caller keeps its records by [`Slot`], and drops those of the victims.
//!
//! Slots are dense and used again. The arrays grow by an eighth, not by doubling: the budget pays
//! for their capacity.

pub mod admission;
mod cell;
mod copies;
mod in_flight;
mod in_use;
mod load;
mod refusal;

use crate::digest::Digest;
use crate::eviction::{Eviction, EvictionKind, heap_bytes};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cell::Cell;
use copies::Copies;

pub use copies::COPIES_ARE_ONE_IN;
pub use in_flight::{IN_FLIGHT_PERCENT_MAX, check_in_flight};
pub use in_use::{InUse, SKIPPED_MAX, UNPINNED_CONTENT_BYTES_MAX};
pub use load::{LOAD_BYTES_MAX, LOADING_BYTES_MAX, LoadDecision, may_load};
pub use refusal::Refusal;

/// The place of an entry in the catalog and in arrays kept beside it; used again after the entry
/// was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// As an index into an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a response that is read from disk is also admitted to memory: do not evict a resident
/// entry for one that will not be requested again, and save a copy of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromotionDecision {
    /// Admit: it fits without an eviction, or in the place of copies above their share.
    FreeRoom,
    /// Admit: it was requested before, so recently that it would still be resident; or the
    /// algorithm does not remember requests.
    RepeatedRequest,
    /// Do not admit: this is its first request for a long time.
    FirstRequest,
}

/// The resident entries, their sizes, and the budget they share.
#[derive(Debug)]
pub struct Catalog {
    kind: EvictionKind,
    budget_bytes: u64,
    used_bytes: u64,
    held_bytes: u64,
    /// Bytes the caller keeps beside each slot.
    slot_overhead_bytes: u64,
    /// Whether the budget pays for the catalog's own arrays and for what lies beside them.
    counts_overhead: bool,
    /// The capacity of the cache that this one is a model of.
    sampled_from_bytes: Option<u64>,
    cells: Vec<Cell>,
    /// The first of the chain of vacant slots, or [`NO_SLOT`].
    vacant: u32,
    eviction: Box<dyn Eviction>,
    /// None before the first copy.
    copies: Option<Box<Copies>>,
}

impl Catalog {
    /// An empty catalog that may come to `budget_bytes`, its own structures included.
    #[must_use]
    pub fn new(budget_bytes: u64, kind: EvictionKind) -> Self {
        let mut eviction = kind.build();
        eviction.set_capacity(budget_bytes);
        Self {
            kind,
            budget_bytes,
            used_bytes: 0,
            held_bytes: 0,
            slot_overhead_bytes: 0,
            counts_overhead: true,
            sampled_from_bytes: None,
            cells: Vec::new(),
            vacant: NO_SLOT,
            eviction,
            copies: None,
        }
    }

    /// The same, for a caller that keeps `slot_overhead_bytes` in tables of its own for each slot,
    /// be it taken or vacant: they count as overhead, as tables do not shrink when entries leave.
    /// Such tables follow [`Self::slots`].
    #[must_use]
    pub fn with_slot_overhead(self, slot_overhead_bytes: u64) -> Self {
        Self {
            slot_overhead_bytes,
            ..self
        }
    }

    /// An empty catalog whose budget is for the entries alone: its own arrays, and what the caller
    /// keeps beside them, cost nothing. So capacities are meant in the literature, and so other
    /// simulators count; a cache in memory that did it would exceed its memory.
    #[must_use]
    pub fn content_only(budget_bytes: u64, kind: EvictionKind) -> Self {
        Self {
            counts_overhead: false,
            ..Self::new(budget_bytes, kind)
        }
    }

    /// The same for a model of a cache that is larger: of `capacity_bytes`, of whose keys it sees a
    /// sample. What a response may come to is a part of that capacity, as its responses are as
    /// large.
    #[must_use]
    pub fn sampled_from(self, capacity_bytes: u64) -> Self {
        Self {
            sampled_from_bytes: Some(capacity_bytes),
            ..self
        }
    }

    /// Admits a response of `size_bytes` under `key`, and appends to `victims` those that leave for
    /// it.
    ///
    /// The caller sees to it that a key is resident once: to replace a stored response by another
    /// of the same key, [`Self::resize`] keeps its history, `remove` and `admit` forget it.
    ///
    /// # Errors [`Refusal::TooLarge`] and [`Refusal::NoSlot`]; no entry is evicted then.
    pub fn admit(
        &mut self,
        key: Digest,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
    ) -> Result<Slot, Refusal> {
        let slot = self.take_slot(size_bytes, victims)?;
        self.cells[slot.index()] = Cell::resident(size_bytes);
        self.eviction.insert(slot, key, size_bytes);
        Ok(slot)
    }

    /// Makes room for an entry of `size_bytes`; it has a slot from now on, and is in no queue yet.
    fn take_slot(&mut self, size_bytes: u64, victims: &mut Vec<Slot>) -> Result<Slot, Refusal> {
        self.check_room_alone(size_bytes)?;
        self.make_room_with_slot(size_bytes, victims)?;
        let slot = Slot(self.vacant);
        self.vacant = self.cells[slot.index()].next_vacant().unwrap_or(NO_SLOT);
        self.used_bytes += size_bytes;
        Ok(slot)
    }

    /// Whether a response of `size_bytes` fits into the empty catalog.
    fn check_room_alone(&self, size_bytes: u64) -> Result<(), Refusal> {
        match self.room_alone() {
            Some(room_bytes) if size_bytes <= room_bytes => Ok(()),
            room_bytes => Err(Refusal::TooLarge {
                size_bytes,
                size_max_bytes: room_bytes.unwrap_or(0),
            }),
        }
    }

    /// The largest response under `key`, which is not resident, that the eviction algorithm takes
    /// in.
    #[must_use]
    pub fn newcomer_max_bytes(&self, key: Digest) -> u64 {
        let capacity_bytes = self.sampled_from_bytes.unwrap_or(self.budget_bytes);
        self.eviction.newcomer_max_bytes(key, capacity_bytes)
    }

    /// Whether the eviction algorithm takes in a response of `size_bytes` under `key`, which is not
    /// resident. To be called before room is made for it: by [`Self::admit`], or by [`Self::hold`]
    /// while it arrives.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] and [`Refusal::TooLargeForSmallQueue`].
    pub fn check_newcomer(&self, key: Digest, size_bytes: u64) -> Result<(), Refusal> {
        let capacity_bytes = self.sampled_from_bytes.unwrap_or(self.budget_bytes);
        if size_bytes > capacity_bytes {
            return Err(Refusal::TooLarge {
                size_bytes,
                size_max_bytes: capacity_bytes,
            });
        }
        let size_max_bytes = self.newcomer_max_bytes(key);
        if size_bytes > size_max_bytes {
            return Err(Refusal::TooLargeForSmallQueue {
                size_bytes,
                size_max_bytes,
            });
        }
        Ok(())
    }

    /// Whether a response of `size_bytes` under `key` that was requested, and is stored elsewhere,
    /// should be admitted. Remembers `key` if not.
    pub fn judge_promotion(&mut self, key: Digest, size_bytes: u64) -> PromotionDecision {
        if self.check_newcomer(key, size_bytes).is_err() {
            return PromotionDecision::FirstRequest;
        }
        let has_slot = self.vacant != NO_SLOT && self.fits(size_bytes);
        let has_room = has_slot || self.fits_grown(size_bytes);
        if has_room || size_bytes <= self.copies_bytes_above_share() {
            PromotionDecision::FreeRoom
        } else if self.eviction.would_keep(key, size_bytes) {
            PromotionDecision::RepeatedRequest
        } else {
            PromotionDecision::FirstRequest
        }
    }

    /// The entry in `slot` was requested. A vacant slot is left alone: a driver may report hits
    /// later, in batches.
    pub fn touch(&mut self, slot: Slot) {
        let Some(cell) = self.cells.get(slot.index()) else {
            return;
        };
        match &mut self.copies {
            Some(copies) if cell.is_copy() => copies.touch(slot),
            _ if cell.size_bytes().is_some() => self.eviction.touch(slot),
            _ => {}
        }
    }

    /// The entry in `slot` now has `size_bytes`; appends to `victims` those that leave for it,
    /// never itself.
    ///
    /// # Errors [`Refusal::TooLarge`] and [`Refusal::NotResident`]; no entry is evicted, and this
    /// one keeps its former size.
    pub fn resize(
        &mut self,
        slot: Slot,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
    ) -> Result<(), Refusal> {
        let old_bytes = self.size_bytes(slot).ok_or(Refusal::NotResident)?;
        let size_max_bytes = self
            .budget_bytes
            .saturating_sub(self.overhead_bytes())
            .saturating_sub(self.held_bytes)
            .min(Cell::SIZE_MAX_BYTES);
        if size_bytes > size_max_bytes {
            return Err(Refusal::TooLarge {
                size_bytes,
                size_max_bytes,
            });
        }
        // It is not in the sum during the search, so that sums never exceed the budget.
        self.used_bytes -= old_bytes;
        while !self.fits(size_bytes) && self.evict_one(Some(slot), victims) {}
        self.used_bytes += size_bytes;
        let cell = &mut self.cells[slot.index()];
        match &mut self.copies {
            Some(copies) if cell.is_copy() => {
                *cell = Cell::copy(size_bytes);
                copies.resize(slot, old_bytes, size_bytes);
            }
            _ => {
                *cell = Cell::resident(size_bytes);
                self.eviction.resize(slot, size_bytes);
            }
        }
        Ok(())
    }

    /// Removes the entry in `slot`: it was invalidated, purged, or replaced. A vacant slot stays
    /// vacant.
    pub fn remove(&mut self, slot: Slot) {
        debug_assert!(
            self.size_bytes(slot).is_some(),
            "{slot:?} was already vacant"
        );
        if self.size_bytes(slot).is_some() {
            self.unlink(slot);
            self.vacate(slot);
        }
    }

    /// Changes the budget, and appends to `victims` those that leave for it.
    ///
    /// Slots cannot move, so a budget cut to a small part (one of which the arrays alone would take
    /// a quarter) drops the upper slots first, with their entries, to give back their memory;
    /// at worst no entry stays.
    pub fn set_budget(&mut self, budget_bytes: u64, victims: &mut Vec<Slot>) {
        let former = core::mem::replace(&mut self.budget_bytes, budget_bytes);
        if self.overhead_bytes() > budget_bytes / 4 && budget_bytes < former {
            let slots = self.cells.len() as u128 * u128::from(budget_bytes) / u128::from(former);
            self.cut(usize::try_from(slots).unwrap_or(usize::MAX), victims);
        }
        self.evict_to_fit(victims);
    }

    /// A victim was evicted, but `bytes` of it are still in use: they count until
    /// [`Self::release`]. Appends to `victims` those that leave instead.
    pub fn hold(&mut self, bytes: u64, victims: &mut Vec<Slot>) {
        self.held_bytes += bytes;
        self.evict_to_fit(victims);
    }

    /// Bytes that were held are given back.
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held_bytes, "more released than held");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    fn evict_to_fit(&mut self, victims: &mut Vec<Slot>) {
        while !self.fits(0) {
            if !self.evict_one(None, victims) {
                self.cut(0, victims);
                // only what is held can exceed now, and only a budget that was cut meanwhile
                return;
            }
        }
    }

    /// What the resident entries come to.
    #[must_use]
    pub const fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// What victims have not given back yet.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// What entries and structures may come to together.
    #[must_use]
    pub const fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// What the catalog itself holds on the heap, and the caller beside its slots: capacity, not
    /// use. 0 where the budget does not pay for it ([`Self::content_only`]).
    #[must_use]
    pub fn overhead_bytes(&self) -> u64 {
        if !self.counts_overhead {
            return 0;
        }
        let beside = self.cells.len() as u64 * self.slot_overhead_bytes;
        let copies = self.copies.as_ref();
        let copies = copies.map_or(0, |copies| copies.overhead_bytes());
        heap_bytes(&self.cells) + self.eviction.overhead_bytes() + copies + beside
    }

    /// How many slots there are, taken or vacant: every slot is below.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.cells.len()
    }

    /// The largest response [`Self::admit`] takes; 0 also if it takes none.
    #[must_use]
    pub fn size_max_bytes(&self) -> u64 {
        self.room_alone().unwrap_or(0)
    }

    /// The size of the entry in `slot`; `None` if it is vacant.
    #[must_use]
    pub fn size_bytes(&self, slot: Slot) -> Option<u64> {
        self.cells
            .get(slot.index())
            .and_then(|cell| cell.size_bytes())
    }

    /// How many entries are resident.
    #[must_use]
    pub fn len(&self) -> usize {
        self.eviction.residents() + self.copies()
    }

    /// Whether no entry is resident.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The algorithm that chooses the victims.
    #[must_use]
    pub const fn kind(&self) -> EvictionKind {
        self.kind
    }

    /// Walks the whole catalog; for tests, here and in the crates that use it.
    ///
    /// # Panics
    /// If an invariant is broken, first of all that the budget is kept.
    pub fn debug_check(&self) {
        let total = self.used_bytes + self.overhead_bytes() + self.held_bytes;
        assert!(
            total <= self.budget_bytes || self.cells.is_empty(),
            "{total} of {} bytes",
            self.budget_bytes
        );
        let sizes = self.cells.iter().filter_map(|cell| cell.size_bytes());
        assert_eq!(sizes.sum::<u64>(), self.used_bytes, "sizes do not add up");
        let resident = self
            .cells
            .iter()
            .filter(|cell| cell.size_bytes().is_some())
            .count();
        assert_eq!(
            resident,
            self.len(),
            "the algorithm has lost or kept an entry"
        );
        let mut vacant = 0;
        let mut next = self.vacant;
        while next != NO_SLOT {
            vacant += 1;
            assert!(
                vacant + resident <= self.cells.len(),
                "the vacant slots go round"
            );
            next = self.cells[next as usize].next_vacant().unwrap_or(NO_SLOT);
        }
        assert_eq!(vacant + resident, self.cells.len(), "a vacant slot is lost");
        self.eviction.debug_check();
        let copies = self.cells.iter().filter(|cell| cell.is_copy());
        let of_copies = copies.filter_map(|cell| cell.size_bytes()).sum();
        match &self.copies {
            Some(copies) => copies.debug_check(of_copies),
            None => assert_eq!(of_copies, 0, "a copy without its queue"),
        }
    }

    /// Evicts until there are a vacant slot and `size_bytes` free; at most
    /// [`Self::size_max_bytes`].
    fn make_room_with_slot(
        &mut self,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
    ) -> Result<(), Refusal> {
        loop {
            if self.vacant != NO_SLOT {
                if self.fits(size_bytes) {
                    return Ok(());
                }
            } else if self.cells.len() >= SLOTS_MAX {
                // An entry would have to leave though there is room: rather refuse than hide that.
                return Err(Refusal::NoSlot);
            } else if self.fits_grown(size_bytes) {
                self.grow();
                continue;
            }
            if !self.evict_one(None, victims) {
                // No entry is left, and the empty arrays take the room.
                self.cut(0, victims);
                self.grow();
                return Ok(());
            }
        }
    }

    /// What a single entry may come to; `None` if not even the smallest arrays are within the
    /// budget.
    fn room_alone(&self) -> Option<u64> {
        let smallest = self.overhead_for(GROWTH_SLOTS_MIN);
        let room = self.budget_bytes.checked_sub(smallest)?;
        let room = room.checked_sub(self.held_bytes)?;
        Some(room.min(Cell::SIZE_MAX_BYTES))
    }

    fn fits(&self, more_bytes: u64) -> bool {
        self.fits_beside(self.overhead_bytes(), more_bytes)
    }

    /// Whether there is room for `more_bytes` after the arrays have grown.
    fn fits_grown(&self, more_bytes: u64) -> bool {
        self.fits_beside(self.overhead_for(self.slots_grown()), more_bytes)
    }

    fn fits_beside(&self, overhead_bytes: u64, more_bytes: u64) -> bool {
        let total = self.used_bytes.checked_add(overhead_bytes);
        let total = total.and_then(|total| total.checked_add(self.held_bytes));
        let total = total.and_then(|total| total.checked_add(more_bytes));
        total.is_some_and(|total| total <= self.budget_bytes)
    }

    fn slots_grown(&self) -> usize {
        let step = (self.cells.len() / 8).max(GROWTH_SLOTS_MIN);
        (self.cells.len() + step).min(SLOTS_MAX)
    }

    fn overhead_for(&self, slots: usize) -> u64 {
        if !self.counts_overhead {
            return 0;
        }
        let each = size_of::<Cell>() as u64 + self.slot_overhead_bytes;
        let copies = self.copies.as_ref();
        let copies = copies.map_or(0, |copies| copies.bytes_for(slots));
        slots as u64 * each + self.eviction.bytes_for(slots) + copies
    }

    fn grow(&mut self) {
        let (former, slots) = (self.cells.len(), self.slots_grown());
        self.eviction.reserve(slots);
        if let Some(copies) = &mut self.copies {
            copies.reserve(slots);
        }
        self.cells.reserve_exact(slots - former);
        self.cells.resize(slots, Cell::vacant(NO_SLOT));
        self.chain_vacant(former);
    }

    /// Puts the vacant slots from `first` on at the head of the chain, the lowest foremost.
    fn chain_vacant(&mut self, first: usize) {
        for index in (first..self.cells.len()).rev() {
            if self.cells[index].size_bytes().is_none() {
                self.cells[index] = Cell::vacant(self.vacant);
                self.vacant = u32::try_from(index).unwrap_or(NO_SLOT);
            }
        }
    }

    /// Drops the slots from `slots` on, with their entries, and gives back their memory.
    fn cut(&mut self, slots: usize, victims: &mut Vec<Slot>) {
        for index in slots..self.cells.len() {
            if let (Some(size_bytes), Ok(slot)) =
                (self.cells[index].size_bytes(), u32::try_from(index))
            {
                self.unlink(Slot(slot));
                self.used_bytes -= size_bytes;
                victims.push(Slot(slot));
            }
        }
        self.cells.truncate(slots);
        self.cells.shrink_to_fit();
        self.eviction.shrink(slots);
        if let Some(copies) = &mut self.copies {
            copies.shrink(slots);
        }
        self.vacant = NO_SLOT;
        self.chain_vacant(0);
    }

    fn evict_one(&mut self, spared: Option<Slot>, victims: &mut Vec<Slot>) -> bool {
        let Some(victim) = self.choose_victim(spared, false) else {
            return false;
        };
        self.vacate(victim);
        victims.push(victim);
        true
    }

    fn vacate(&mut self, slot: Slot) {
        let cell = &mut self.cells[slot.index()];
        self.used_bytes -= cell.size_bytes().unwrap_or(0);
        *cell = Cell::vacant(self.vacant);
        self.vacant = slot.0;
    }
}

/// No slot: the end of the chain of vacant slots; the algorithms use the same number.
const NO_SLOT: u32 = u32::MAX;

/// Every number but [`NO_SLOT`].
const SLOTS_MAX: usize = NO_SLOT as usize;

/// The arrays grow by at least so many slots: under a kilobyte, which the smallest sensible budget
/// can spare.
const GROWTH_SLOTS_MIN: usize = 16;

#[cfg(test)]
mod tests;
