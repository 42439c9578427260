//! Reads a message piece by piece, as it comes from a connection: what it has for the digest goes
//! where it stays, so that no message is in memory beside what it says.

use crate::Digest;
use crate::route::cache_digest::bloom::{BLOCK_BYTES, block};
use crate::route::cache_digest::message::{ADDITIONS, KEY_BYTES, MAGIC, VERSION, WHOLE};
use crate::route::cache_digest::{
    ADDITIONS_MAX, CacheDigest, DIGEST_BYTES_MAX, DigestError, DigestKeys, DigestVersion, SealedKey,
};
use alloc::vec::{IntoIter, Vec};

/// Bytes of a message up to the number of blocks or additions.
const FIXED_BYTES: usize = 30;

/// Bytes of a whole in front of its blocks.
const WHOLE_HEAD_BYTES: usize = FIXED_BYTES + 2 * KEY_BYTES;

/// What a message says, see [`DigestReader`](super::DigestReader).
#[derive(Debug)]
pub struct DigestUpdate(pub(super) Update);

#[derive(Debug)]
pub(super) enum Update {
    /// A digest that replaces any other.
    Whole {
        version: DigestVersion,
        keys: DigestKeys,
        digest: CacheDigest,
    },
    /// What was added since `from`.
    Additions {
        from: DigestVersion,
        keys: IntoIter<Digest>,
    },
}

/// A message of which not all has come.
#[derive(Debug)]
pub struct IncomingDigest {
    /// The most bytes of its blocks.
    blocks_bytes_max: usize,
    /// What precedes blocks or keys.
    head: Vec<u8>,
    /// Once all of that has come.
    body: Option<Body>,
    /// The begin of a block or a key.
    part: Vec<u8>,
    bytes: usize,
}

#[derive(Debug)]
struct Body {
    version: DigestVersion,
    count: usize,
    items: Items,
}

#[derive(Debug)]
enum Items {
    Blocks(SealedKey, Vec<[u64; BLOCK_BYTES / 8]>),
    Keys(Vec<Digest>),
}

impl IncomingDigest {
    /// Nothing has come yet of a message whose blocks may have so many bytes, and no more than
    /// [`DIGEST_BYTES_MAX`].
    #[must_use]
    pub fn new(blocks_bytes_max: usize) -> Self {
        Self {
            blocks_bytes_max: blocks_bytes_max.min(DIGEST_BYTES_MAX),
            head: Vec::new(),
            body: None,
            part: Vec::new(),
            bytes: 0,
        }
    }

    /// The most bytes that it takes of a message.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let additions = FIXED_BYTES + ADDITIONS_MAX * KEY_BYTES;
        additions.max(WHOLE_HEAD_BYTES + self.blocks_bytes_max)
    }

    /// The bytes of its blocks, as it says; `None` before that has come, and of additions.
    #[must_use]
    pub fn blocks_bytes(&self) -> Option<usize> {
        let body = self.body.as_ref()?;
        matches!(body.items, Items::Blocks(..)).then_some(body.count * BLOCK_BYTES)
    }

    /// The next bytes have come.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), DigestError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.body.is_none() {
            bytes = self.push_head(bytes)?;
        }
        match &mut self.body {
            Some(body) => body.push(&mut self.part, bytes, self.bytes),
            None => Ok(()),
        }
    }

    /// All has come. `open` opens the key of a whole digest of this epoch; `None` if it is sealed
    /// with another secret.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn finish(
        self,
        open: impl FnOnce(u64, &SealedKey) -> Option<DigestKeys>,
    ) -> Result<DigestUpdate, DigestError> {
        let Some(body) = self.body else {
            check_begin(&self.head)?;
            return Err(DigestError::Length(self.bytes));
        };
        let Body {
            version,
            count,
            items,
        } = body;
        let is_whole = |items: usize| items == count && self.part.is_empty();
        Ok(DigestUpdate(match items {
            Items::Blocks(key, blocks) if is_whole(blocks.len()) => Update::Whole {
                version,
                keys: open(version.epoch, &key).ok_or(DigestError::Key)?,
                digest: CacheDigest::of_blocks(blocks)?,
            },
            Items::Keys(keys) if is_whole(keys.len()) => Update::Additions {
                from: version,
                keys: keys.into_iter(),
            },
            Items::Blocks(..) | Items::Keys(_) => return Err(DigestError::Length(self.bytes)),
        }))
    }

    /// Takes what precedes blocks or keys from the front of `bytes`; what is behind it.
    fn push_head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], DigestError> {
        let mut rest = bytes;
        for end in [FIXED_BYTES, WHOLE_HEAD_BYTES] {
            let lacking = end.saturating_sub(self.head.len()).min(rest.len());
            let (taken, behind) = rest.split_at(lacking);
            self.head.extend_from_slice(taken);
            rest = behind;
            if self.head.len() < end {
                break;
            }
            check_begin(&self.head)?;
            self.body = self.begin_body()?;
            if self.body.is_some() {
                break;
            }
        }
        Ok(rest)
    }

    /// `None` if not all of the head is there.
    fn begin_body(&self) -> Result<Option<Body>, DigestError> {
        let short = DigestError::Length(self.bytes);
        let rest = &self.head[MAGIC.len()..];
        let (&[_, kind], rest) = rest.split_first_chunk().ok_or(short)?;
        let (epoch, rest) = rest.split_first_chunk().ok_or(short)?;
        let (additions, rest) = rest.split_first_chunk().ok_or(short)?;
        let (count, rest) = rest.split_first_chunk().ok_or(short)?;
        let version = DigestVersion {
            epoch: u64::from_le_bytes(*epoch),
            additions: u64::from_le_bytes(*additions),
        };
        let count = u32::from_le_bytes(*count) as usize;
        let items = if kind == WHOLE {
            let (masked, rest) = rest.split_at(rest.len().min(KEY_BYTES));
            let (Ok(&masked), Ok(&check)) = (masked.try_into(), rest.try_into()) else {
                return Ok(None);
            };
            let key = SealedKey { masked, check };
            check_bytes(count, BLOCK_BYTES, self.blocks_bytes_max)?;
            Items::Blocks(key, Vec::with_capacity(count))
        } else {
            check_bytes(count, KEY_BYTES, ADDITIONS_MAX * KEY_BYTES)?;
            Items::Keys(Vec::with_capacity(count))
        };
        Ok(Some(Body {
            version,
            count,
            items,
        }))
    }
}

impl Body {
    /// Takes `bytes` behind a `part` of a block or a key; `total` are those of the message so far.
    fn push(
        &mut self,
        part: &mut Vec<u8>,
        mut bytes: &[u8],
        total: usize,
    ) -> Result<(), DigestError> {
        let (item_bytes, items) = match &self.items {
            Items::Blocks(_, blocks) => (BLOCK_BYTES, blocks.len()),
            Items::Keys(keys) => (KEY_BYTES, keys.len()),
        };
        if (self.count - items) * item_bytes < part.len() + bytes.len() {
            return Err(DigestError::Length(total));
        }
        if !part.is_empty() {
            let lacking = (item_bytes - part.len()).min(bytes.len());
            let (taken, behind) = bytes.split_at(lacking);
            part.extend_from_slice(taken);
            bytes = behind;
            if part.len() == item_bytes {
                self.items.extend(part);
                part.clear();
            }
        }
        let whole = bytes.len() - bytes.len() % item_bytes;
        self.items.extend(&bytes[..whole]);
        part.extend_from_slice(&bytes[whole..]);
        Ok(())
    }
}

impl Items {
    /// Takes whole ones.
    fn extend(&mut self, bytes: &[u8]) {
        match self {
            Self::Blocks(_, blocks) => blocks.extend(bytes.as_chunks().0.iter().map(block)),
            Self::Keys(keys) => keys.extend(bytes.as_chunks().0.iter().map(key)),
        }
    }
}

/// What a message begins with, as far as it is there.
fn check_begin(head: &[u8]) -> Result<(), DigestError> {
    let rest = head.strip_prefix(MAGIC).ok_or(DigestError::Magic)?;
    match rest {
        [VERSION, WHOLE | ADDITIONS, ..] | [VERSION] | [] => Ok(()),
        [VERSION, kind, ..] => Err(DigestError::Kind(*kind)),
        [version, ..] => Err(DigestError::Version(*version)),
    }
}

/// Whether so many blocks or keys may come.
fn check_bytes(count: usize, item_bytes: usize, bytes_max: usize) -> Result<(), DigestError> {
    let bytes = count.saturating_mul(item_bytes);
    if bytes > bytes_max {
        return Err(DigestError::TooLarge(bytes));
    }
    Ok(())
}

fn key(bytes: &[u8; KEY_BYTES]) -> Digest {
    let (numbers, _) = bytes.as_chunks::<8>();
    Digest(
        u64::from_le_bytes(numbers[0]),
        u64::from_le_bytes(numbers[1]),
    )
}
