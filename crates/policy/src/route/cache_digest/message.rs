//! Writes messages of a [`DigestWriter`](super::DigestWriter); their layout is in the head of the
//! folder.

use crate::route::cache_digest::CacheDigest;
use crate::route::cache_digest::bloom::BLOCK_BYTES;
use crate::{Digest, Secret};
use alloc::vec::Vec;

pub(super) const MAGIC: &[u8; 8] = b"weirdgst";
pub(super) const VERSION: u8 = 1;
pub(super) const WHOLE: u8 = 0;
pub(super) const ADDITIONS: u8 = 1;
pub(super) const KEY_BYTES: usize = 16;

/// Which state of a node's digest a reader has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DigestVersion {
    /// The epoch: another one has another filter.
    pub epoch: u64,
    /// Keys that were added in it.
    pub additions: u64,
}

/// The keys of a node's digest, once its message was opened.
#[derive(Clone, Copy, Debug)]
pub struct DigestKeys {
    /// The secret under which the node's store hashes targets.
    pub store: Secret,
    /// The key of the tags: [`tag_key`](super::tag_key). It is made of the secret of the cluster
    /// that the node had when it began the digest.
    pub tags: Secret,
}

/// The key of a node's digest, as only those can read it that share the secret of the cluster: the
/// driver seals and opens it. It is the secret under which the node's store hashes targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SealedKey {
    /// The key, masked.
    pub masked: [u8; KEY_BYTES],
    /// What shows that it was opened with the right secret.
    pub check: [u8; KEY_BYTES],
}

pub(super) fn write_whole(
    version: DigestVersion,
    key: &SealedKey,
    digest: &CacheDigest,
) -> Vec<u8> {
    let blocks = digest.bytes() / BLOCK_BYTES;
    let mut out = begin(WHOLE, version, blocks);
    out.extend_from_slice(&key.masked);
    out.extend_from_slice(&key.check);
    digest.write(&mut out);
    out
}

pub(super) fn write_additions<'a>(
    from: DigestVersion,
    keys: impl ExactSizeIterator<Item = &'a Digest>,
) -> Vec<u8> {
    let mut out = begin(ADDITIONS, from, keys.len());
    out.reserve(keys.len() * KEY_BYTES);
    for Digest(block, bits) in keys {
        out.extend_from_slice(&block.to_le_bytes());
        out.extend_from_slice(&bits.to_le_bytes());
    }
    out
}

fn begin(kind: u8, version: DigestVersion, count: usize) -> Vec<u8> {
    let count = u32::try_from(count).expect("blocks and additions are bounded");
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&version.epoch.to_le_bytes());
    out.extend_from_slice(&version.additions.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out
}
