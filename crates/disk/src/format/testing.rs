//! What the tests of this folder have in common.

use super::{FormatError, PAGE_BYTES, Seal, StoreId, Volume};

pub(super) const VOLUME: Volume = Volume {
    store: StoreId(*b"sixteen bytes id"),
    directory: 2,
};

pub(super) const OTHER_STORE: Volume = Volume {
    store: StoreId(*b"another store id"),
    ..VOLUME
};

pub(super) const OTHER_DIRECTORY: Volume = Volume {
    directory: 3,
    ..VOLUME
};

pub(super) const SEGMENT: u64 = 0x1f;

pub(super) fn seal() -> Seal {
    VOLUME.segment(SEGMENT)
}

/// Every bit flipped, every length cut: none may be taken for good.
pub(super) fn any_damage_is_an_error(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<(), FormatError>,
) {
    decode(bytes).unwrap();
    let mut damaged = bytes.to_vec();
    for bit in 0..bytes.len() * 8 {
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&damaged).is_err(), "bit {bit} flipped");
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "cut to {length} bytes");
    }
}

/// A page that begins with magic bytes and a version, as `version` of the format would have written
/// it.
pub(crate) fn of_version(mut page: Vec<u8>, version: u32, seal: Seal) -> Vec<u8> {
    page[8..12].copy_from_slice(&version.to_le_bytes());
    let sum = seal.sum(0, &page[..PAGE_BYTES - 8]);
    page[PAGE_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    page
}
