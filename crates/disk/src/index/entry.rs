//! Sixteen bytes: 64 bits of a key, and where its record lies.

use crate::format::ALIGN_BYTES;

/// Segments a directory can have at a time.
pub(crate) const SLOTS_MAX: usize = 1 << 16;

/// Bits of an offset in units of 16 bytes: segments of up to 1 GiB.
const UNIT_BITS: u32 = 26;
const SLOT_BITS: u32 = 16;
const CLASS_BITS: u32 = 8;

const SLOT_AT: u32 = UNIT_BITS;
const CLASS_AT: u32 = SLOT_AT + SLOT_BITS;
const ASKED: u64 = 1 << (CLASS_AT + CLASS_BITS);
/// Distinguishes an entry from an empty place.
const LIVE: u64 = ASKED << 1;

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The segment's slot.
    pub(crate) slot: u16,
    /// The offset in it, in units of 16 bytes.
    pub(crate) unit: u32,
    /// Its size, rounded up.
    pub(crate) class: SizeClass,
}

impl Place {
    pub(crate) fn new(slot: u16, offset: u32, bytes: u32) -> Self {
        Self {
            slot,
            unit: offset / UNIT_BYTES,
            class: SizeClass::of(bytes),
        }
    }

    /// In bytes from the begin of the segment.
    pub(crate) const fn offset(self) -> u32 {
        self.unit * UNIT_BYTES
    }

    /// Whether both are the same record.
    pub(crate) fn is_at(self, other: Self) -> bool {
        (self.slot, self.unit) == (other.slot, other.unit)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "16")]
const UNIT_BYTES: u32 = ALIGN_BYTES as u32;

/// A length rounded up by at most an eighth: an octave in eight steps, so that a record is read at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeClass(u8);

impl SizeClass {
    pub(crate) fn of(bytes: u32) -> Self {
        let units = u64::from(bytes.div_ceil(UNIT_BYTES).max(8));
        let octave = units.ilog2() - 3;
        let steps = units.div_ceil(1 << octave);
        // 16 steps of one octave are 8 of the next
        Self(u8::try_from(u64::from(octave) * 8 + (steps - 8)).unwrap_or(u8::MAX))
    }

    /// The longest length in this class, in bytes.
    pub(crate) fn bytes(self) -> u64 {
        let (octave, step) = (self.0 / 8, self.0 % 8);
        (u64::from(step + 8) << octave) * u64::from(UNIT_BYTES)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    tag: u64,
    packed: u64,
}

impl Entry {
    pub(super) const EMPTY: Self = Self { tag: 0, packed: 0 };

    pub(super) fn new(tag: u64, place: Place) -> Self {
        let packed = u64::from(place.unit) & ((1 << UNIT_BITS) - 1)
            | u64::from(place.slot) << SLOT_AT
            | u64::from(place.class.0) << CLASS_AT
            | LIVE;
        Self { tag, packed }
    }

    pub(super) const fn is_empty(self) -> bool {
        self.packed == 0
    }

    pub(super) const fn tag(self) -> u64 {
        self.tag
    }

    #[expect(clippy::cast_possible_truncation, reason = "fields of a packed number")]
    pub(super) const fn place(self) -> Place {
        Place {
            slot: (self.packed >> SLOT_AT) as u16,
            unit: (self.packed as u32) & ((1 << UNIT_BITS) - 1),
            class: SizeClass((self.packed >> CLASS_AT) as u8),
        }
    }

    pub(super) const fn was_asked_for(self) -> bool {
        self.packed & ASKED != 0
    }

    pub(super) const fn asked_for(self, asked: bool) -> Self {
        let rest = self.packed & !ASKED;
        let packed = if asked { rest | ASKED } else { rest };
        Self { packed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_entry_keeps_its_place_tag_and_requested_flag_in_16_bytes() {
        for (slot, offset, bytes) in [
            (0, 0, 0),
            (7, 4096, 81),
            (u16::MAX, (1 << 30) - 16, 1 << 30),
        ] {
            let place = Place::new(slot, offset, bytes);
            let entry = Entry::new(u64::MAX, place).asked_for(true);
            assert_eq!((entry.place(), entry.tag()), (place, u64::MAX));
            assert_eq!((place.offset(), place.slot), (offset, slot));
            assert!(entry.was_asked_for() && !entry.is_empty());
            assert!(!entry.asked_for(false).was_asked_for());
            assert_eq!(entry.asked_for(false).place(), place);
        }
        assert!(Entry::EMPTY.is_empty());
        assert_eq!(size_of::<Entry>(), 16);
    }

    #[test]
    fn size_class_holds_the_record_and_is_at_most_an_eighth_plus_padding_larger() {
        let lengths = (0..2_000_000).step_by(7).chain([1 << 30]);
        for bytes in lengths {
            let class = SizeClass::of(bytes).bytes();
            assert!(class >= u64::from(bytes), "{bytes} {class}");
            let most = (u64::from(bytes) * 9 / 8 + 16).max(128);
            assert!(class <= most, "{bytes} {class}");
        }
    }
}
