//! What the catalog keeps of a slot.

/// Eight bytes a slot: the size of a resident, or the next in the chain of vacant slots, told apart
/// by the top bit. The next bit tells copies of what another node keeps from other residents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell(u64);

impl Cell {
    const VACANT: u64 = 1 << 63;

    const COPY: u64 = 1 << 62;

    /// The two top bits say something else.
    pub(super) const SIZE_MAX_BYTES: u64 = Self::COPY - 1;

    pub(super) const fn resident(size_bytes: u64) -> Self {
        debug_assert!(size_bytes <= Self::SIZE_MAX_BYTES);
        Self(size_bytes)
    }

    pub(super) const fn copy(size_bytes: u64) -> Self {
        debug_assert!(size_bytes <= Self::SIZE_MAX_BYTES);
        Self(size_bytes | Self::COPY)
    }

    pub(super) const fn vacant(next: u32) -> Self {
        Self(Self::VACANT | next as u64)
    }

    pub(super) const fn size_bytes(self) -> Option<u64> {
        if self.0 & Self::VACANT == 0 {
            Some(self.0 & Self::SIZE_MAX_BYTES)
        } else {
            None
        }
    }

    pub(super) const fn is_copy(self) -> bool {
        self.0 & (Self::VACANT | Self::COPY) == Self::COPY
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half holds a slot")]
    pub(super) const fn next_vacant(self) -> Option<u32> {
        if self.0 & Self::VACANT == 0 {
            None
        } else {
            Some(self.0 as u32)
        }
    }
}
