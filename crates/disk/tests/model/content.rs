//! Content that tells where it belongs: each byte is a function of key, representation and offset.

use std::sync::Arc;
use weir_disk::BodyBlock;
use weir_policy::Digest;

/// What is stored with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) key: u64,
    /// The representation that its content belongs to.
    pub(super) representation: u64,
    pub(super) generation: u64,
}

impl Meta {
    pub(super) fn encode(self) -> Vec<u8> {
        let fields = [self.key, self.representation, self.generation];
        let mut bytes: Vec<u8> = fields.iter().flat_map(|it| it.to_le_bytes()).collect();
        // heads have different lengths
        bytes.resize(24 + usize::try_from(self.generation % 97).unwrap(), 7);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let field = |number: usize| {
            let bytes = bytes.get(number * 8..number * 8 + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let found = Self {
            key: field(0)?,
            representation: field(1)?,
            generation: field(2)?,
        };
        (found.encode() == bytes).then_some(found)
    }
}

/// Keys are spread like digests.
pub(super) fn digest(key: u64) -> Digest {
    let mut random = weir_disk::files::simulated::Random(key + 1);
    Digest(random.next(), random.next())
}

/// `len` bytes of a representation from `from` on.
pub(super) fn content(key: u64, representation: u64, from: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 16);
    let mut word = from / 8;
    while bytes.len() < len + 8 {
        let mixed = (word + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add((key << 32) ^ representation)
            .rotate_left(23)
            .wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&mixed.to_le_bytes());
        word += 1;
    }
    let skip = usize::try_from(from % 8).unwrap();
    bytes.drain(..skip);
    bytes.truncate(len);
    bytes
}

pub(super) fn block(key: u64, representation: u64, from: u64, len: usize) -> BodyBlock {
    let bytes: Arc<[u8]> = content(key, representation, from, len).into();
    BodyBlock { from, bytes }
}
