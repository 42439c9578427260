//! Which resident is evicted when room is needed: one algorithm a file.
//!
//! An algorithm knows slots and sizes, never a stored response. Its state lies in dense arrays
//! indexed by slot, with links of four bytes instead of pointers, so that a resident costs some
//! tens of bytes and a hit writes one byte (S3-FIFO, SIEVE), two links (LRU), nothing (FIFO) or a
//! path in a heap (GDS). Only [`Eviction::reserve`] and [`Eviction::shrink`] change how much memory
//! is held; both say so beforehand through [`Eviction::bytes_for`], and the catalog pays for it.
//!
//! The table below is the only list of algorithms: configuration, flags, messages, tests and
//! documents are made from it. A new algorithm is a file here and a line there.

mod list;
#[cfg(test)]
pub(crate) mod reference;
mod single_queue;

use crate::catalog::Slot;
use crate::digest::Digest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// Declares the algorithms: `type in file = name`.
macro_rules! algorithms {
    ($( $(#[$meta:meta])* $Algorithm:ident in $file:ident = $word:literal, )+) => {
        $(
            mod $file;
            pub use $file::$Algorithm;
        )+

        crate::choice! {
            /// The algorithms there are.
            #[derive(Default, PartialOrd, Ord)]
            pub enum EvictionKind {
                $( $(#[$meta])* $Algorithm = $word, )+
            }
        }

        impl EvictionKind {
            /// An empty structure of this kind.
            #[must_use]
            pub fn build(self) -> Box<dyn Eviction> {
                match self {
                    $( Self::$Algorithm => Box::new($Algorithm::default()), )+
                }
            }
        }
    };
}

algorithms! {
    /// [`S3Fifo`]: small, main and ghost queue (Yang et al., SOSP 2023). The default; one-hit
    /// wonders leave early, nothing moves on a hit.
    #[default]
    S3Fifo in s3fifo = "s3-fifo",
    /// [`Sieve`]: one queue and a hand (Zhang et al., NSDI 2024). The smallest; close to S3-FIFO on
    /// web traces, not scan-resistant.
    Sieve in sieve = "sieve",
    /// [`Lru`]: least recently used. The reference that most papers and proxies compare with.
    Lru in lru = "lru",
    /// [`Fifo`]: first in, first out. The floor that every other one must be better than.
    Fifo in fifo = "fifo",
    /// [`Gds`]: GreedyDual-Size with cost 1 (Cao, Irani, USITS 1997). The policy of LARD's papers;
    /// small responses stay, and a hit moves one through a heap.
    Gds in gds = "gds",
}

impl EvictionKind {
    /// The default: S3-FIFO keeps responses that are requested once from evicting the others.
    pub const DEFAULT: Self = Self::S3Fifo;
}

/// An eviction algorithm over the slots of a catalog.
///
/// `touch`, `resize` and `remove` require a slot of a resident; the catalog ensures that.
pub trait Eviction: fmt::Debug + Send + Sync {
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

    /// The cache is of `capacity_bytes` from now on. An algorithm that needs no more than what is
    /// resident leaves it at that.
    fn set_capacity(&mut self, capacity_bytes: u64) {
        let _ = capacity_bytes;
    }

    /// A response of `size_bytes` under `key` that is not resident was requested: whether its last
    /// request is recent enough to keep it. If not, it is remembered as if it had been evicted. An
    /// algorithm without a memory of evicted keys keeps all.
    fn would_keep(&mut self, key: Digest, size_bytes: u64) -> bool {
        let _ = (key, size_bytes);
        true
    }

    /// The largest response under `key` that a cache of `capacity_bytes` takes in. That is all of
    /// it, unless newcomers enter a part of the room first.
    fn newcomer_max_bytes(&self, key: Digest, capacity_bytes: u64) -> u64 {
        let _ = key;
        capacity_bytes
    }

    /// Whether the resident in `slot` was requested since it was taken in, or shortly before. An
    /// algorithm without a memory of evicted keys says that of all.
    fn was_requested_again(&self, slot: Slot) -> bool {
        let _ = slot;
        true
    }

    /// The resident in `slot` was requested. Allocates nothing.
    fn touch(&mut self, slot: Slot);

    /// The resident in `slot` has `size_bytes` from now on; it keeps its place.
    fn resize(&mut self, slot: Slot, size_bytes: u64);

    /// Forgets the resident in `slot` (invalidated, purged, replaced): not an eviction, so nothing
    /// is learnt from it.
    fn remove(&mut self, slot: Slot);

    /// Chooses a victim and forgets it; never `spared`. `None` if there is no other.
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
        }
        assert_eq!(EvictionKind::default(), EvictionKind::DEFAULT);
    }

    #[test]
    fn documents_name_every_algorithm() {
        let upper = EvictionKind::WORDS.join(", ").to_uppercase();
        let quoted = EvictionKind::ALL.map(|kind| format!("`{kind}`")).join(", ");
        let documents = [
            ("README.md", include_str!("../../../../README.md"), &upper),
            (
                "docs/sim.md",
                include_str!("../../../../docs/sim.md"),
                &quoted,
            ),
        ];
        for (name, text, expected) in documents {
            assert!(text.contains(expected), "{name} should have: {expected}");
        }
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
        assert_eq!(per_slot(EvictionKind::S3Fifo), 40);
        assert_eq!(per_slot(EvictionKind::Gds), 32);
    }
}
