//! A stretch of a body: header, then content in one piece, so that it can be sent from the file.

use super::reader::{Reader, SUM_BYTES};
use super::writer::Writer;
use super::{
    CHUNK_BYTES, CHUNKS_MAX, EXTENT_BYTES_MAX, ExtentRef, FormatError, FormatErrorKind, Item, Seal,
    aligned, padded,
};
use weir_policy::Digest;

pub(super) const MAGIC: [u8; 8] = *b"WEIR-RUN";

/// Bytes of a header before its checksums of chunks.
const FIXED_BYTES: usize = 48;

/// What a header can take.
pub const EXTENT_HEADER_BYTES_MAX: usize = header_bytes(CHUNKS_MAX);

/// The body that an extent is part of: a number that no other body of the same key has. Extents of
/// two versions of a representation have the same key and different bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyId(pub u64);

/// What an extent says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentHeader {
    /// Key of the response it was stored for.
    pub key: Digest,
    /// The body it is part of.
    pub body: BodyId,
    /// Where in the body it begins.
    pub from: u64,
    /// Bytes of content; at least one.
    pub len: u32,
    /// Checksums of its chunks; those that there are stand first.
    sums: [u64; CHUNKS_MAX],
}

impl ExtentHeader {
    /// Reads the header that begins at `at` in the segment of `seal`. More than it needs may be
    /// given.
    ///
    /// # Errors
    ///
    /// [`FormatErrorKind::Cut`] says how many bytes are needed.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::ExtentHeader, at, bytes);
        reader.magic(MAGIC)?;
        let key = reader.digest()?;
        let body = BodyId(reader.u64()?);
        let from = reader.u64()?;
        let len = reader.u32()?;
        let _reserved = reader.u32()?;
        reader.limit("length", u64::from(len), u64::from(EXTENT_BYTES_MAX))?;
        let chunks = chunks_of(len);
        reader.check_sum(header_bytes(chunks), seal)?;
        reader.expect(len > 0, "length", 0)?;
        reader.expect(
            from.checked_add(u64::from(len)).is_some(),
            "offset in the body",
            from,
        )?;
        let mut sums = [0; CHUNKS_MAX];
        for sum in sums.iter_mut().take(chunks) {
            *sum = reader.u64()?;
        }
        Ok(Self {
            key,
            body,
            from,
            len,
            sums,
        })
    }

    /// Bytes of the header: content begins behind it.
    #[must_use]
    pub const fn header_bytes(&self) -> u64 {
        header_bytes(self.chunks()) as u64
    }

    /// Bytes from the header's begin to where the next item may begin.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        extent_bytes(self.len)
    }

    /// How many chunks there are.
    #[must_use]
    pub const fn chunks(&self) -> usize {
        chunks_of(self.len)
    }

    /// Where chunk `index` lies in the content, and how long it is; `None` past the last.
    #[must_use]
    pub fn chunk(&self, index: usize) -> Option<(u32, u32)> {
        let begin = u32::try_from(index.checked_mul(CHUNK_BYTES)?).ok()?;
        let rest = self.len.checked_sub(begin).filter(|rest| *rest > 0)?;
        Some((begin, rest.min(CHUNK_LEN_MAX)))
    }

    /// Checks chunk `index` of the extent whose header begins at `at`.
    ///
    /// # Errors
    ///
    /// It is not what was written.
    pub fn check_chunk(
        &self,
        seal: Seal,
        at: u64,
        index: usize,
        content: &[u8],
    ) -> Result<(), FormatError> {
        let begin = self.chunk(index).map_or(self.len, |(begin, _)| begin);
        let at = at + self.header_bytes() + u64::from(begin);
        let reader = Reader::new(Item::Chunk, at, content);
        let Some((_, len)) = self.chunk(index) else {
            return reader.expect(false, "chunk", index as u64);
        };
        let content = reader.whole(len as usize)?;
        if self.sums.get(index) == Some(&seal.sum(at, content)) {
            Ok(())
        } else {
            Err(reader.error(FormatErrorKind::Checksum))
        }
    }

    /// Whether this is the extent that a record of `key` means.
    ///
    /// # Errors
    ///
    /// The field in which they differ.
    pub fn check_reference(&self, key: Digest, meant: &ExtentRef) -> Result<(), FormatError> {
        let reader = Reader::new(Item::ExtentHeader, u64::from(meant.at), &[]);
        reader.expect(self.key == key, "key", self.key.0)?;
        reader.expect(self.body == meant.body, "body", self.body.0)?;
        reader.expect(self.from == meant.from, "offset in the body", self.from)?;
        reader.expect(self.len == meant.len, "length", u64::from(self.len))
    }
}

/// The header of an extent that begins at `at` and holds `content`, from `from` on.
///
/// # Errors
///
/// More content than an extent may have, or none.
pub fn encode_extent_header(
    seal: Seal,
    at: u64,
    (key, body): (Digest, BodyId),
    from: u64,
    content: &[&[u8]],
) -> Result<Vec<u8>, FormatError> {
    let reader = Reader::new(Item::ExtentHeader, at, &[]);
    let bytes: usize = content.iter().map(|block| block.len()).sum();
    reader.limit("length", bytes as u64, u64::from(EXTENT_BYTES_MAX))?;
    reader.expect(bytes > 0, "length", 0)?;
    let len = u32::try_from(bytes).unwrap_or(EXTENT_BYTES_MAX);
    let size = header_bytes(chunks_of(len));
    let mut writer = Writer::new(at, size);
    writer.put(&MAGIC);
    writer.digest(key);
    writer.u64(body.0);
    writer.u64(from);
    writer.u32(len);
    writer.u32(0);
    let mut chunk_at = at + size as u64;
    let mut blocks = Blocks::new(content);
    for _ in 0..chunks_of(len) {
        let chunk = blocks.take(CHUNK_BYTES);
        let taken: usize = chunk.iter().map(|block| block.len()).sum();
        writer.u64(seal.sum_of_blocks(chunk_at, chunk));
        chunk_at += taken as u64;
    }
    Ok(writer.seal(size, seal))
}

/// Bytes of an extent of `len` bytes of content: header, content, padding.
#[must_use]
pub const fn extent_bytes(len: u32) -> u64 {
    header_bytes(chunks_of(len)) as u64 + aligned(len as u64)
}

/// Bytes of the header of an extent of `len` bytes of content.
#[must_use]
pub const fn extent_header_bytes(len: u32) -> u64 {
    header_bytes(chunks_of(len)) as u64
}

#[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
const CHUNK_LEN_MAX: u32 = CHUNK_BYTES as u32;

const fn chunks_of(len: u32) -> usize {
    (len as usize).div_ceil(CHUNK_BYTES)
}

const fn header_bytes(chunks: usize) -> usize {
    padded(FIXED_BYTES + chunks * 8 + SUM_BYTES)
}

/// Content in blocks of any size, taken in stretches of one.
struct Blocks<'a> {
    rest: &'a [&'a [u8]],
    /// Bytes of the first block that were taken.
    taken: usize,
}

impl<'a> Blocks<'a> {
    fn new(rest: &'a [&'a [u8]]) -> Self {
        Self { rest, taken: 0 }
    }

    /// The next `count` bytes, or what is left.
    fn take(&mut self, mut count: usize) -> Vec<&'a [u8]> {
        let mut taken = Vec::new();
        while let Some((first, behind)) = self.rest.split_first() {
            let first = &first[self.taken..];
            if first.len() > count {
                taken.push(&first[..count]);
                self.taken += count;
                break;
            }
            taken.push(first);
            count -= first.len();
            self.rest = behind;
            self.taken = 0;
        }
        taken
    }
}

#[cfg(test)]
mod tests;
