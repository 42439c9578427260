//! Making room where some residents are in use: a reader holds the bytes of its entry, so an
//! eviction of that entry would not free them.

use super::{Catalog, NO_SLOT, Refusal, SLOTS_MAX, Slot};
use crate::digest::Digest;
use alloc::vec::Vec;

/// Entries in use that are passed over for one newcomer. Each is moved to the place of a new entry,
/// as if it had been requested again, so that the next search begins behind it.
pub const SKIPPED_MAX: usize = 64;

/// Content of at most so many bytes in memory is never in use: it is in the account of the
/// connection that reads it, which may hold 256 KiB.
pub const UNPINNED_CONTENT_BYTES_MAX: u64 = 200 * 1024;

/// The key of an entry that is in use; `None` if it is not.
pub type InUse<'a> = &'a dyn Fn(Slot) -> Option<Digest>;

impl Catalog {
    /// Evicts entries, which are appended to `victims`, until [`Self::hold`] of `size_bytes` evicts
    /// no further one. Entries in use stay.
    ///
    /// # Errors [`Refusal::AllInUse`]; some may have been evicted.
    pub fn make_room_to_hold(
        &mut self,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
        in_use: InUse<'_>,
    ) -> Result<(), Refusal> {
        let held_bytes = self.held_bytes.saturating_add(size_bytes);
        if held_bytes > self.budget_bytes {
            return Err(Refusal::AllInUse { size_bytes });
        }
        self.make_room(size_bytes, victims, in_use, Self::fits)
    }

    /// The same for [`Self::admit`] of a response of `size_bytes`.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`], and no entry was evicted then; [`Refusal::AllInUse`], as there.
    pub fn make_room_to_admit(
        &mut self,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
        in_use: InUse<'_>,
    ) -> Result<(), Refusal> {
        self.check_room_alone(size_bytes)?;
        self.make_room(size_bytes, victims, in_use, |catalog, size_bytes| {
            let fits = catalog.vacant != NO_SLOT && catalog.fits(size_bytes);
            fits || catalog.fits_grown(size_bytes) || catalog.cells.len() >= SLOTS_MAX
        })
    }

    fn make_room(
        &mut self,
        size_bytes: u64,
        victims: &mut Vec<Slot>,
        in_use: InUse<'_>,
        has_room: fn(&Self, u64) -> bool,
    ) -> Result<(), Refusal> {
        let (mut skipped, mut copies_skipped) = (0, 0);
        while !has_room(self, size_bytes) {
            // each copy once, and others are looked at, too
            let skips_copies = copies_skipped >= self.copies().min(SKIPPED_MAX / 2);
            let Some(slot) = self.choose_victim(None, skips_copies) else {
                // the empty arrays are in the way: they give way themselves
                return Ok(());
            };
            let Some(key) = in_use(slot) else {
                self.vacate(slot);
                victims.push(slot);
                continue;
            };
            copies_skipped += usize::from(self.is_copy(slot));
            self.put_back(slot, key);
            skipped += 1;
            if skipped >= SKIPPED_MAX {
                return Err(Refusal::AllInUse { size_bytes });
            }
        }
        Ok(())
    }

    /// One that has just left was in use: `bytes` of it count until [`Self::release`], as they did
    /// before.
    pub fn keep_held(&mut self, bytes: u64) {
        self.held_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::EvictionKind;

    const SIZE_BYTES: u64 = 1000;

    /// A catalog with ten entries and room for no more; the key of each is its slot's number.
    fn full(kind: EvictionKind) -> Catalog {
        let mut catalog = Catalog::content_only(10 * SIZE_BYTES, kind);
        let mut victims = Vec::new();
        for number in 0..10 {
            let admitted = catalog.admit(Digest(number, 0), SIZE_BYTES, &mut victims);
            assert_eq!(admitted.unwrap().0 as u64, number);
        }
        assert!(victims.is_empty());
        catalog
    }

    #[test]
    fn eviction_skips_entries_in_use() {
        for kind in EvictionKind::ALL {
            let mut catalog = full(kind);
            let mut victims = Vec::new();
            let in_use = |slot: Slot| (slot.0 != 7).then(|| Digest(u64::from(slot.0), 0));
            let room = catalog.make_room_to_admit(SIZE_BYTES, &mut victims, &in_use);
            assert_eq!((room, &victims[..]), (Ok(()), &[Slot(7)][..]), "{kind:?}");
            catalog.debug_check();
        }
    }

    #[test]
    fn too_large_newcomer_evicts_no_entry() {
        let mut catalog = full(EvictionKind::Lru);
        let mut victims = Vec::new();
        let room = catalog.make_room_to_admit(11 * SIZE_BYTES, &mut victims, &|_| None);
        assert_eq!(room.unwrap_err().as_str(), "too-large");
        assert_eq!((victims.len(), catalog.len()), (0, 10));
    }

    #[test]
    fn newcomer_is_refused_if_all_entries_are_in_use() {
        for kind in EvictionKind::ALL {
            let mut catalog = full(kind);
            let mut victims = Vec::new();
            let in_use = |slot: Slot| Some(Digest(u64::from(slot.0), 0));
            let refused = Err(Refusal::AllInUse {
                size_bytes: SIZE_BYTES,
            });
            let admits = catalog.make_room_to_admit(SIZE_BYTES, &mut victims, &in_use);
            assert_eq!(admits, refused, "{kind:?}");
            let holds = catalog.make_room_to_hold(SIZE_BYTES, &mut victims, &in_use);
            assert_eq!(holds, refused, "{kind:?}");
            assert_eq!((victims.len(), catalog.len()), (0, 10));
            catalog.debug_check();
        }
    }

    #[test]
    fn held_bytes_of_removed_entries_count_until_released() {
        let mut catalog = full(EvictionKind::S3Fifo);
        let mut victims = Vec::new();
        for slot in 0..10 {
            catalog.remove(Slot(slot));
            catalog.keep_held(SIZE_BYTES);
        }
        let refused = catalog.make_room_to_hold(1, &mut victims, &|_| None);
        assert_eq!(refused, Err(Refusal::AllInUse { size_bytes: 1 }));
        catalog.release(SIZE_BYTES);
        assert_eq!(
            catalog.make_room_to_hold(1, &mut victims, &|_| None),
            Ok(())
        );
        catalog.debug_check();
    }
}
