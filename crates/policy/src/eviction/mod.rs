//! Which resident leaves when room is needed: one algorithm a file.
//!
//! An algorithm knows slots and sizes, never a stored response. Its state lies in dense arrays
//! indexed by slot, with links of four bytes instead of pointers, so that a resident costs some
//! tens of bytes and a hit writes one byte (S3-FIFO, SIEVE), two links (LRU) or nothing (FIFO).
//! Only [`Eviction::reserve`] and [`Eviction::shrink`] change how much memory is held; both say so
//! beforehand through [`Eviction::bytes_for`], and the catalog pays for it.

mod fifo;
mod list;
mod lru;
mod s3fifo;
mod sieve;
#[cfg(test)]
pub(crate) mod twin;

use crate::catalog::Slot;
use crate::digest::Digest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

pub use fifo::Fifo;
pub use lru::Lru;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;

/// An eviction algorithm over the slots of a catalog.
///
/// `touch`, `resize` and `remove` want a slot that was inserted and has not left since; the catalog
/// sees to that.
pub trait Eviction: fmt::Debug + Send + Sync {
    /// The algorithm's name as configuration and reports write it: that of its [`EvictionKind`].
    fn name(&self) -> &'static str;

    /// Holds memory for the slots `0..slots`, and not more. Never gives any back.
    fn reserve(&mut self, slots: usize);

    /// Gives back the memory beyond the slots `0..slots`; none of those beyond may be resident.
    fn shrink(&mut self, slots: usize);

    /// Bytes of heap [`Self::overhead_bytes`] comes to after `reserve(slots)`.
    fn bytes_for(&self, slots: usize) -> u64;

    /// A response of `size_bytes` under `key` becomes resident in `slot`.
    ///
    /// # Panics
    /// If `slot` was not reserved.
    fn insert(&mut self, slot: Slot, key: Digest, size_bytes: u64);

    /// One under `key` was asked for that is not resident: whether it was so lately enough that it
    /// would be kept if it were. If not, it is remembered as if it had come and gone. An algorithm
    /// without a memory of who has gone keeps everybody.
    fn would_keep(&mut self, key: Digest) -> bool {
        let _ = key;
        true
    }

    /// The largest response under `key` that a cache of `capacity_bytes` takes in. That is all of
    /// it, unless newcomers enter a part of the room first.
    fn newcomer_max_bytes(&self, key: Digest, capacity_bytes: u64) -> u64 {
        let _ = key;
        capacity_bytes
    }

    /// The resident in `slot` was asked for. Allocates nothing.
    fn touch(&mut self, slot: Slot);

    /// The resident in `slot` has `size_bytes` from now on; it keeps its place.
    fn resize(&mut self, slot: Slot, size_bytes: u64);

    /// Forgets the resident in `slot` (invalidated, purged, replaced): not an eviction, so nothing
    /// is learnt from it.
    fn remove(&mut self, slot: Slot);

    /// Chooses a victim and forgets it; never `spared`. `None` if there is nobody else.
    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot>;

    /// How many are resident.
    fn residents(&self) -> usize;

    /// Bytes of heap the structure itself holds: capacity, not use.
    fn overhead_bytes(&self) -> u64;

    /// Walks the whole structure; for tests.
    ///
    /// # Panics
    /// If an invariant is broken.
    fn debug_check(&self);
}

/// The algorithms there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionKind {
    /// [`S3Fifo`]: the default; one-hit wonders leave early, nothing moves on a hit.
    #[default]
    S3Fifo,
    /// [`Sieve`]: the smallest; close to S3-FIFO on web traces, not scan-resistant.
    Sieve,
    /// [`Lru`]: the reference that most papers and proxies compare with.
    Lru,
    /// [`Fifo`]: the floor that every other one must be better than.
    Fifo,
}

impl EvictionKind {
    /// Every kind, for help texts and comparisons.
    pub const ALL: [Self; 4] = [Self::S3Fifo, Self::Sieve, Self::Lru, Self::Fifo];

    /// The name in configuration, reports and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3Fifo => "s3-fifo",
            Self::Sieve => "sieve",
            Self::Lru => "lru",
            Self::Fifo => "fifo",
        }
    }

    /// An empty structure of this kind.
    #[must_use]
    pub fn build(self) -> Box<dyn Eviction> {
        match self {
            Self::S3Fifo => Box::new(S3Fifo::default()),
            Self::Sieve => Box::new(Sieve::default()),
            Self::Lru => Box::new(Lru::default()),
            Self::Fifo => Box::new(Fifo::default()),
        }
    }
}

impl fmt::Display for EvictionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EvictionKind {
    type Err = UnknownEviction;

    fn from_str(name: &str) -> Result<Self, UnknownEviction> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or(UnknownEviction)
    }
}

/// No eviction algorithm has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEviction;

impl fmt::Display for UnknownEviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown eviction algorithm, expected one of s3-fifo, sieve, lru, fifo")
    }
}

impl core::error::Error for UnknownEviction {}

/// Bytes of heap behind `array`.
pub(crate) fn heap_bytes<T>(array: &Vec<T>) -> u64 {
    (array.capacity() * size_of::<T>()) as u64
}

/// Makes `array` exactly `slots` long if it is shorter, without the slack of doubling.
fn lengthen<T: Clone>(array: &mut Vec<T>, slots: usize, fill: T) {
    if slots > array.len() {
        array.reserve_exact(slots - array.len());
        array.resize(slots, fill);
    }
}

/// Makes `array` at most `slots` long and gives the rest back.
fn shorten<T>(array: &mut Vec<T>, slots: usize) {
    array.truncate(slots);
    array.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_kind_round_trips_through_its_name() {
        for kind in EvictionKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.build().name(), kind.as_str());
        }
        assert_eq!("LRU".parse::<EvictionKind>(), Err(UnknownEviction));
        assert_eq!("".parse::<EvictionKind>(), Err(UnknownEviction));
    }

    #[test]
    fn overhead_after_reserve_and_shrink_equals_announced_bytes() {
        for kind in EvictionKind::ALL {
            let mut eviction = kind.build();
            assert_eq!(eviction.overhead_bytes(), 0);
            for slots in [1, 2, 16, 17, 1000] {
                let announced = eviction.bytes_for(slots);
                eviction.reserve(slots);
                assert_eq!(eviction.overhead_bytes(), announced, "{kind} {slots}");
            }
            eviction.shrink(16);
            assert_eq!(eviction.overhead_bytes(), eviction.bytes_for(16), "{kind}");
            eviction.shrink(0);
            assert_eq!(eviction.overhead_bytes(), 0, "{kind}");
        }
    }

    #[test]
    fn bytes_per_slot_match_documented_cost() {
        let per_slot = |kind: EvictionKind| kind.build().bytes_for(1_000_000).div_ceil(1_000_000);
        assert_eq!(per_slot(EvictionKind::Lru), 8);
        assert_eq!(per_slot(EvictionKind::Fifo), 8);
        assert_eq!(per_slot(EvictionKind::Sieve), 9);
        assert_eq!(per_slot(EvictionKind::S3Fifo), 36);
    }
}
