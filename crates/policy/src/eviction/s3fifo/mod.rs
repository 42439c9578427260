//! S3-FIFO: three queues, nothing moves on a hit.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO Queues are All You Need for Cache Eviction", SOSP 2023,
//! algorithm 1. New entries are inserted into a *small* queue (a tenth of the bytes). At its end,
//! an entry without two requests is evicted, and only its key is remembered, in the *ghost* queue;
//! the others move to the *main* queue, where every hit (up to three are remembered) buys one more
//! round. A key that comes back while the ghost remembers it enters main at once. So one-hit
//! wonders pass through a tenth of the room.
//!
//! Our reading where the paper is silent:
//! * Shares are of the resident bytes, not of a fixed capacity: they are the same when room is
//!   needed, and the budget can then change at any time. "Main is full" is "small has less than its
//!   tenth".
//! * The ghost remembers as many bytes as main holds when small has its tenth: nine tenths of the
//!   resident ones. (The paper counts entries, all of one size.) Small responses are remembered
//!   longer so, by as many keys as there are slots at most.
//! * Until the first eviction, what small's tenth has no room for enters main, as there is room for
//!   it: else the first to leave would be those of the whole cache that came first, and main would
//!   stay empty until their keys came back. libCacheSim does the same. The capacity is that of the
//!   catalog then ([`Eviction::set_capacity`]).
//! * The frequency is cleared on the way to main (section 4.1: "access bits are cleared during the
//!   move").
//! * A response that is requested, is on disk and is not resident counts as evicted from small.
//! * What does not fit into small is not taken in, however much room there is: else it would drive
//!   all others out of small, and leave as the next. Only a key that the ghost remembers may come,
//!   as it enters main. libCacheSim does the same. Small is then a tenth of the capacity.
//! * A response removed by invalidation or purge is not remembered.

mod ghost;

use super::Eviction;
use super::list::{Links, NONE, Queue};
use super::{heap_bytes, lengthen, shorten};
use crate::catalog::Slot;
use crate::digest::Digest;
use alloc::vec::Vec;
use ghost::Ghost;

/// S3-FIFO; 40 bytes a slot: links 8, key 8, size 4, state 1, ghost 18 (plus 1 for rounding).
#[derive(Debug, Default)]
pub struct S3Fifo {
    links: Links,
    /// Half of the digest of each resident, for the ghost.
    keys: Vec<u64>,
    /// Size of each resident in units of [`UNIT_BYTES`].
    units: Vec<u32>,
    states: Vec<State>,
    small: Section,
    main: Section,
    ghost: Ghost,
    /// What small may hold until the first eviction, in units. `None`: the capacity is not known.
    small_units_max: Option<u64>,
    /// One was evicted: there is no room but that of others.
    has_evicted: bool,
}

/// A queue and what it holds.
#[derive(Debug, Default)]
struct Section {
    queue: Queue,
    units: u64,
}

impl Section {
    fn push(&mut self, links: &mut Links, slot: u32, units: u32) {
        self.queue.push(links, slot);
        self.units += u64::from(units);
    }

    fn unlink(&mut self, links: &mut Links, slot: u32, units: u32) {
        self.queue.unlink(links, slot);
        self.units -= u64::from(units);
    }
}

/// Which queue a slot is in, and how often it was requested since: 0 to [`FREQUENCY_MAX`].
#[derive(Clone, Copy, Debug, Default)]
struct State(u8);

impl State {
    const IN_MAIN: u8 = 0x80;

    /// It entered main as there was free room, and was not requested since.
    const IS_NEW: u8 = 0x40;

    const fn in_main(self) -> bool {
        self.0 & Self::IN_MAIN != 0
    }

    const fn frequency(self) -> u8 {
        self.0 & !(Self::IN_MAIN | Self::IS_NEW)
    }
}

impl S3Fifo {
    fn section_of(&mut self, slot: u32) -> (&mut Section, &mut Links) {
        let section = if self.states[slot as usize].in_main() {
            &mut self.main
        } else {
            &mut self.small
        };
        (section, &mut self.links)
    }

    fn unlink(&mut self, slot: u32) {
        let units = self.units[slot as usize];
        let (section, links) = self.section_of(slot);
        section.unlink(links, slot, units);
    }

    /// Puts `slot` at the young end of the queue `state` names.
    fn push(&mut self, slot: u32, state: State) {
        self.states[slot as usize] = state;
        let units = self.units[slot as usize];
        let (section, links) = self.section_of(slot);
        section.push(links, slot, units);
    }

    /// Whether the next to be examined is in small; `None` if only `spared` is resident.
    fn looks_in_small(&self, spared: u32) -> Option<bool> {
        let small_has = !self.small.queue.holds_only(spared);
        let main_has = !self.main.queue.holds_only(spared);
        let resident = self.small.units + self.main.units;
        match (small_has, main_has) {
            (false, false) => None,
            (true, true) => Some(self.small.units * SMALL_IS_ONE_IN >= resident),
            (small_has, _) => Some(small_has),
        }
    }

    /// Examines the oldest of small: evicts it, or moves it on.
    fn examine_small(&mut self, spared: u32) -> Option<u32> {
        let slot = self.small.queue.oldest();
        let state = self.states[slot as usize];
        let ghost_units_max = self.ghost_units_max();
        self.unlink(slot);
        if state.frequency() >= PROMOTED_FROM {
            self.push(slot, State(State::IN_MAIN));
        } else if slot == spared {
            self.push(slot, state);
        } else {
            let (key, units) = (self.keys[slot as usize], self.units[slot as usize]);
            self.ghost.push(key, units, ghost_units_max);
            return Some(slot);
        }
        None
    }

    /// Examines the oldest of main: evicts it, or gives it one more round.
    fn examine_main(&mut self, spared: u32) -> Option<u32> {
        let slot = self.main.queue.oldest();
        let state = self.states[slot as usize];
        self.unlink(slot);
        if state.frequency() > 0 {
            self.push(slot, State(state.0 - 1));
        } else if slot == spared {
            self.push(slot, state);
        } else {
            return Some(slot);
        }
        None
    }

    /// Whether small has its tenth, while nothing had to be evicted yet.
    fn has_free_room_in_main_alone(&self) -> bool {
        let is_small_full = |max: u64| self.small.units >= max;
        !self.has_evicted && self.small_units_max.is_some_and(is_small_full)
    }

    /// What the ghost may cover: as much as main.
    fn ghost_units_max(&self) -> u64 {
        let resident = self.small.units + self.main.units;
        resident - resident / SMALL_IS_ONE_IN
    }
}

impl Eviction for S3Fifo {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        lengthen(&mut self.keys, slots, 0);
        lengthen(&mut self.units, slots, 0);
        lengthen(&mut self.states, slots, State::default());
        self.ghost.reserve(slots);
    }

    fn shrink(&mut self, slots: usize) {
        self.links.shrink(slots);
        shorten(&mut self.keys, slots);
        shorten(&mut self.units, slots);
        shorten(&mut self.states, slots);
        self.ghost.shrink(slots);
    }

    fn bytes_for(&self, slots: usize) -> u64 {
        let per_slot = Links::BYTES_PER_SLOT
            + (size_of::<u64>() + size_of::<u32>() + size_of::<State>()) as u64;
        slots as u64 * per_slot + Ghost::bytes_for(slots)
    }

    fn insert(&mut self, slot: Slot, key: Digest, size_bytes: u64) {
        self.keys[slot.index()] = key.1;
        self.units[slot.index()] = units(size_bytes);
        let is_remembered = self.ghost.take(key.1);
        let state = if is_remembered {
            State::IN_MAIN
        } else if self.has_free_room_in_main_alone() {
            State::IN_MAIN | State::IS_NEW
        } else {
            0
        };
        self.push(slot.0, State(state));
    }

    fn would_keep(&mut self, key: Digest, size_bytes: u64) -> bool {
        let is_remembered = self.ghost.holds(key.1);
        if !is_remembered {
            let max = self.ghost_units_max();
            self.ghost.push(key.1, units(size_bytes), max);
        }
        is_remembered
    }

    fn set_capacity(&mut self, capacity_bytes: u64) {
        self.small_units_max = Some(capacity_bytes / SMALL_IS_ONE_IN / UNIT_BYTES);
    }

    fn newcomer_max_bytes(&self, key: Digest, capacity_bytes: u64) -> u64 {
        if self.ghost.holds(key.1) {
            capacity_bytes
        } else {
            capacity_bytes / SMALL_IS_ONE_IN
        }
    }

    fn was_requested_again(&self, slot: Slot) -> bool {
        let state = self.states.get(slot.index()).copied().unwrap_or_default();
        state.0 & (State::IN_MAIN | State::IS_NEW) == State::IN_MAIN || state.frequency() > 0
    }

    fn touch(&mut self, slot: Slot) {
        let state = &mut self.states[slot.index()];
        state.0 &= !State::IS_NEW;
        if state.frequency() < FREQUENCY_MAX {
            state.0 += 1;
        }
    }

    fn resize(&mut self, slot: Slot, size_bytes: u64) {
        let old = core::mem::replace(&mut self.units[slot.index()], units(size_bytes));
        let (section, _) = self.section_of(slot.0);
        section.units = section.units - u64::from(old) + u64::from(units(size_bytes));
    }

    fn remove(&mut self, slot: Slot) {
        self.unlink(slot.0);
    }

    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let spared = spared.map_or(NONE, |slot| slot.0);
        // Ends: every step evicts, empties small by one, or takes a unit of frequency; `spared` is
        // met again only after all others of its queue.
        loop {
            let victim = if self.looks_in_small(spared)? {
                self.examine_small(spared)
            } else {
                self.examine_main(spared)
            };
            if let Some(slot) = victim {
                self.has_evicted = true;
                return Some(Slot(slot));
            }
        }
    }

    fn residents(&self) -> usize {
        self.small.queue.len() + self.main.queue.len()
    }

    fn overhead_bytes(&self) -> u64 {
        self.links.heap_bytes()
            + heap_bytes(&self.keys)
            + heap_bytes(&self.units)
            + heap_bytes(&self.states)
            + self.ghost.overhead_bytes()
    }

    fn debug_check(&self) {
        for (section, in_main) in [(&self.small, false), (&self.main, true)] {
            let mut sum = 0;
            for slot in section.queue.checked_slots(&self.links) {
                let state = self.states[slot as usize];
                assert_eq!(
                    state.in_main(),
                    in_main,
                    "slot {slot} is in the other queue"
                );
                assert!(state.frequency() <= FREQUENCY_MAX, "slot {slot}: {state:?}");
                sum += u64::from(self.units[slot as usize]);
            }
            assert_eq!(section.units, sum, "bytes of a queue do not add up");
        }
        self.ghost.debug_check();
    }
}

/// `size_bytes` in units, rounded up.
fn units(size_bytes: u64) -> u32 {
    u32::try_from(size_bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Small has a tenth of the bytes (paper, section 4.1; it found 5 to 20 % alike).
const SMALL_IS_ONE_IN: u64 = 10;

/// Two bits.
const FREQUENCY_MAX: u8 = 3;

/// Requested more than once while in small.
const PROMOTED_FROM: u8 = 2;

/// Sizes are kept in four bytes: they only decide which queue is examined, and 16 GiB is enough for
/// one response.
const UNIT_BYTES: u64 = 4;

#[cfg(test)]
mod tests;
