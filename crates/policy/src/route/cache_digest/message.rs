//! Messages between [`DigestWriter`](super::DigestWriter) and
//! [`DigestReader`](super::DigestReader); their layout is in the head of the folder.

use crate::Digest;
use crate::route::cache_digest::bloom::BLOCK_BYTES;
use crate::route::cache_digest::{CacheDigest, DigestError};
use alloc::vec::Vec;

const MAGIC: &[u8; 8] = b"weirdgst";
const VERSION: u8 = 1;
const WHOLE: u8 = 0;
const ADDITIONS: u8 = 1;
const KEY_BYTES: usize = 16;

/// Which state of a node's digest a reader has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DigestVersion {
    /// The epoch: another one has another filter.
    pub epoch: u64,
    /// Keys that were added in it.
    pub additions: u64,
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

/// A message as it was read.
#[derive(Debug)]
pub(super) enum Message {
    /// A digest that replaces any other.
    Whole {
        version: DigestVersion,
        key: SealedKey,
        digest: CacheDigest,
    },
    /// What was added since `from`.
    Additions {
        from: DigestVersion,
        keys: Vec<Digest>,
    },
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

/// Reads a message.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(message: &[u8]) -> Result<Message, DigestError> {
    let short = DigestError::Length(message.len());
    let rest = message.strip_prefix(MAGIC).ok_or(DigestError::Magic)?;
    let (&[version, kind], rest) = rest.split_first_chunk().ok_or(short)?;
    if version != VERSION {
        return Err(DigestError::Version(version));
    }
    let (epoch, rest) = rest.split_first_chunk().ok_or(short)?;
    let (additions, rest) = rest.split_first_chunk().ok_or(short)?;
    let (count, rest) = rest.split_first_chunk().ok_or(short)?;
    let count = u32::from_le_bytes(*count) as usize;
    let version = DigestVersion {
        epoch: u64::from_le_bytes(*epoch),
        additions: u64::from_le_bytes(*additions),
    };
    match kind {
        WHOLE => {
            let (masked, rest) = rest.split_first_chunk().ok_or(short)?;
            let (check, rest) = rest.split_first_chunk().ok_or(short)?;
            if Some(rest.len()) != count.checked_mul(BLOCK_BYTES) {
                return Err(short);
            }
            let key = SealedKey {
                masked: *masked,
                check: *check,
            };
            Ok(Message::Whole {
                version,
                key,
                digest: CacheDigest::from_bytes(rest)?,
            })
        }
        ADDITIONS if Some(rest.len()) == count.checked_mul(KEY_BYTES) => Ok(Message::Additions {
            from: version,
            keys: rest.as_chunks::<KEY_BYTES>().0.iter().map(key).collect(),
        }),
        ADDITIONS => Err(short),
        other => Err(DigestError::Kind(other)),
    }
}

fn key(bytes: &[u8; KEY_BYTES]) -> Digest {
    let (numbers, _) = bytes.as_chunks::<8>();
    Digest(
        u64::from_le_bytes(numbers[0]),
        u64::from_le_bytes(numbers[1]),
    )
}
