//! What a read takes at a node's disk.

use super::micros::Micros;
use crate::world::Nanos;
use serde::Serialize;
use std::num::NonZero;

/// Time of a disk. There is no time for writes: content does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiskCosts {
    /// The first bytes: two seeks and a rotation.
    pub first_us: Micros,
    /// Each 4 KB begun.
    pub per_4k_us: Micros,
    /// Each 44 KB begun beyond the first: one more seek and rotation.
    pub further_44k_us: Micros,
    /// Disks of a node; a read waits for the one that is free first.
    pub disks: NonZero<u32>,
}

/// Bytes that a transfer is counted in.
const BLOCK_BYTES: u64 = 4096;
/// Bytes that are read without a seek.
const RUN_BYTES: u64 = 44 * 1024;

impl DiskCosts {
    /// ASPLOS'98 §3.1: 28 ms, 410 us for 4 KB, 14 ms for each 44 KB more; one disk.
    pub const ASPLOS_1998: Self = Self {
        first_us: Micros::whole(28_000),
        per_4k_us: Micros::whole(410),
        further_44k_us: Micros::whole(14_000),
        disks: NonZero::<u32>::MIN,
    };

    /// What reading a file of so many bytes takes.
    pub(super) const fn read(&self, bytes: u64) -> Nanos {
        let runs = bytes.div_ceil(RUN_BYTES).saturating_sub(1);
        self.first_us.nanos()
            + bytes.div_ceil(BLOCK_BYTES) * self.per_4k_us.nanos()
            + runs * self.further_44k_us.nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_of_44_kb_costs_no_further_seek_and_of_45_kb_one() {
        let read_us = |bytes| DiskCosts::ASPLOS_1998.read(bytes) / 1000;
        assert_eq!(read_us(1), 28_410);
        assert_eq!(read_us(4096), 28_410);
        assert_eq!(read_us(4097), 28_820);
        assert_eq!(read_us(44 * 1024), 28_000 + 11 * 410);
        assert_eq!(read_us(44 * 1024 + 1), 28_000 + 12 * 410 + 14_000);
        assert_eq!(read_us(45 * 1024), 28_000 + 12 * 410 + 14_000);
        assert_eq!(read_us(88 * 1024), 28_000 + 22 * 410 + 14_000);
        assert_eq!(read_us(88 * 1024 + 1), 28_000 + 23 * 410 + 28_000);
    }
}
