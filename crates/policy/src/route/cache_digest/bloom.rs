//! The filter itself.

use crate::route::cache_digest::DigestError;
use crate::{Digest, KeyHasher, Secret};
use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a block: a line of the processor's cache.
pub(super) const BLOCK_BYTES: usize = 64;

/// The most bytes of a digest, 64 MiB: 53 million responses.
pub const DIGEST_BYTES_MAX: usize = 64 << 20;

/// The most responses that a digest has room for.
pub const RESPONSES_MAX: u64 = DIGEST_BYTES_MAX as u64 * 8 / BITS_PER_RESPONSE;

/// Bits of a filter for each response that it has room for.
const BITS_PER_RESPONSE: u64 = 10;

/// Bits that a key sets: six take 0.98 % of what is not held for held, where the filter is full.
/// Seven, best for a filter without blocks, gain nothing in the fuller blocks (0.97 %).
const PROBES: u32 = 6;

/// Bits of a number below the bits of a block.
const PROBE_BITS: u32 = 9;

/// A blocked Bloom filter over the keys of stored responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDigest {
    /// At least one. A block is words, not bytes, so that a lookup has no bounds to check.
    blocks: Vec<[u64; BLOCK_BYTES / 8]>,
}

impl CacheDigest {
    /// An empty digest with room for `responses`; for [`RESPONSES_MAX`] if that is less.
    #[must_use]
    pub fn with_capacity(responses: u64) -> Self {
        let bits = responses.clamp(1, RESPONSES_MAX) * BITS_PER_RESPONSE;
        let blocks = bits.div_ceil(BLOCK_BYTES as u64 * 8);
        let blocks = usize::try_from(blocks).unwrap_or(DIGEST_BYTES_MAX / BLOCK_BYTES);
        Self {
            blocks: vec![[0; BLOCK_BYTES / 8]; blocks],
        }
    }

    /// The digest with these blocks.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn of_blocks(blocks: Vec<[u64; BLOCK_BYTES / 8]>) -> Result<Self, DigestError> {
        if blocks.is_empty() {
            return Err(DigestError::Length(0));
        }
        Ok(Self { blocks })
    }

    /// Appends the blocks.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes());
        for word in self.blocks.iter().flatten() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Adds a response by its key.
    pub fn insert(&mut self, key: Digest) {
        let block = block_of(key, self.blocks.len());
        for bit in bits_of(key) {
            self.blocks[block][bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Whether the response of `key` may have been added; `false` is certain.
    #[must_use]
    pub fn may_hold(&self, key: Digest) -> bool {
        let block = &self.blocks[block_of(key, self.blocks.len())];
        bits_of(key).all(|bit| block[bit / 64] & (1 << (bit % 64)) != 0)
    }

    /// The responses that it has room for: with more, more than 1.5 % of the others are taken for
    /// held.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.bytes() as u64 * 8 / BITS_PER_RESPONSE
    }

    /// Bytes of its blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }
}

/// A block as it is in memory.
pub(super) fn block(bytes: &[u8; BLOCK_BYTES]) -> [u64; BLOCK_BYTES / 8] {
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|place| u64::from_le_bytes(words[place]))
}

/// The key of a response whose key in the store begins with `tag`, for nodes that share `secret`.
#[must_use]
pub fn tag_key(secret: &Secret, tag: u64) -> Digest {
    let mut hasher = KeyHasher::new(secret);
    hasher.number(tag);
    hasher.finish()
}

/// The place of the block of `key` among `blocks`.
fn block_of(key: Digest, blocks: usize) -> usize {
    let place = (u128::from(key.0) * blocks as u128) >> 64;
    usize::try_from(place).expect("below the number of blocks")
}

/// The bits of `key` in its block.
fn bits_of(key: Digest) -> impl Iterator<Item = usize> {
    let mask = (1 << PROBE_BITS) - 1;
    (0..PROBES).map(move |probe| {
        let bit = (key.1 >> (probe * PROBE_BITS)) & mask;
        usize::try_from(bit).expect("below the bits of a block")
    })
}
