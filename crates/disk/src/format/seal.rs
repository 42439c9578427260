//! Checksums that know where they belong.
//!
//! XXH3-64: a few bytes a cycle, and no two places share a seed. It finds damage, not forgery: a
//! process that can write to the store's files can also compute it. But content is not trusted, and
//! a scan for the next intact header runs through content: because of the store id, which is
//! secret, a header forged by an origin fails there.

use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// Sixteen random bytes drawn when a store is made; the same in all its directories. Not for
/// strangers' eyes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(pub [u8; 16]);

impl std::fmt::Debug for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreId(..)")
    }
}

/// One directory of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The store it belongs to.
    pub store: StoreId,
    /// Its number in that store.
    pub directory: u32,
}

impl Volume {
    /// Makes and checks the checksums of a segment.
    #[must_use]
    pub fn segment(&self, number: u64) -> Seal {
        let mut place = [0; 28];
        place[..16].copy_from_slice(&self.store.0);
        place[16..20].copy_from_slice(&self.directory.to_le_bytes());
        place[20..].copy_from_slice(&number.to_le_bytes());
        Seal {
            number,
            seed: XxHash3_64::oneshot(&place),
        }
    }

    /// Those of the purge journal: as if it were the segment of the highest number, which is never
    /// written.
    #[must_use]
    pub fn journal(&self) -> Seal {
        self.segment(u64::MAX)
    }
}

/// Makes and checks the checksums of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    number: u64,
    seed: u64,
}

impl Seal {
    /// That of a superblock, which has the input of all others.
    pub const UNKEYED: Self = Self { number: 0, seed: 0 };

    /// The segment's number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Checksum of `bytes` that begin at `at` in the file.
    #[must_use]
    pub fn sum(&self, at: u64, bytes: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.seed.wrapping_add(at), bytes)
    }

    /// The same of bytes that lie in several blocks.
    #[must_use]
    pub fn sum_of_blocks<'a>(&self, at: u64, blocks: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let mut hasher = XxHash3_64::with_seed(self.seed.wrapping_add(at));
        for block in blocks {
            hasher.write(block);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: Volume = Volume {
        store: StoreId([7; 16]),
        directory: 1,
    };

    #[test]
    fn checksum_depends_on_store_directory_segment_and_offset() {
        let sum = |volume: Volume, segment, at| volume.segment(segment).sum(at, b"content");
        let here = sum(VOLUME, 5, 4096);
        let store = StoreId([8; 16]);
        assert_ne!(here, sum(Volume { store, ..VOLUME }, 5, 4096));
        let directory = 2;
        assert_ne!(
            here,
            sum(
                Volume {
                    directory,
                    ..VOLUME
                },
                5,
                4096
            )
        );
        assert_ne!(here, sum(VOLUME, 6, 4096));
        assert_ne!(here, sum(VOLUME, 5, 4112));
        assert_ne!(here, VOLUME.journal().sum(4096, b"content"));
    }

    #[test]
    fn checksum_of_blocks_equals_that_of_the_whole() {
        let seal = VOLUME.segment(5);
        let bytes: Vec<u8> = (0..1000_u32).map(|n| n.to_le_bytes()[0]).collect();
        for at in [0, 1, 16, 240, 241, 512, 999, 1000] {
            let (a, b) = bytes.split_at(at);
            assert_eq!(seal.sum(64, &bytes), seal.sum_of_blocks(64, [a, b]), "{at}");
        }
    }

    #[test]
    fn debug_output_omits_the_store_id() {
        assert!(!format!("{VOLUME:?}").contains('7'));
    }
}
