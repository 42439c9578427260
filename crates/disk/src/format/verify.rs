//! Reads a segment item by item: what recovery and the offline reader have in common.

use super::{
    CHUNK_BYTES, ExtentHeader, ExtentRef, FormatError, FormatErrorKind, Item, Kind, RecordHeader,
    Seal, TableEntry, extent, reader, record,
};

/// What begins at a place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record.
    Record(RecordHeader),
    /// An extent outside of a record.
    Extent(ExtentHeader),
}

impl Step {
    /// Bytes to where the next item may begin.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Record(record) => record.bytes as u64,
            Self::Extent(extent) => extent.bytes(),
        }
    }

    /// The entry in the table of its segment, where it begins at `at`.
    #[must_use]
    pub fn entry(&self, at: u64) -> TableEntry {
        let (key, generation, content_bytes, kind) = match self {
            Self::Extent(extent) => (extent.key, extent.body.0, u64::from(extent.len), None),
            Self::Record(record) => {
                let inside = match record.kind {
                    Kind::Embedded => record.content_bytes,
                    Kind::Listed => 0,
                };
                (record.key, record.generation, inside, Some(record.kind))
            }
        };
        TableEntry {
            key,
            generation,
            at: u32::try_from(at).unwrap_or(u32::MAX),
            bytes: u32::try_from(self.bytes()).unwrap_or(u32::MAX),
            content_bytes: u32::try_from(content_bytes).unwrap_or(u32::MAX),
            kind,
        }
    }
}

/// What begins with `bytes`, at `at` in the segment of `seal`. Only headers are looked at:
/// [`super::EXTENT_HEADER_BYTES_MAX`] bytes are enough. After an error the next place to look at is
/// 16 bytes further.
///
/// # Errors
///
/// [`FormatErrorKind::Absent`] where neither begins; anything else is a damaged header (or content
/// that looks like one).
pub fn step(bytes: &[u8], seal: Seal, at: u64) -> Result<Step, FormatError> {
    if bytes.starts_with(&extent::MAGIC) {
        return ExtentHeader::decode(bytes, seal, at).map(Step::Extent);
    }
    if bytes.starts_with(&record::MAGIC) {
        return RecordHeader::decode(bytes, seal, at).map(Step::Record);
    }
    Err(FormatError {
        item: Item::RecordHeader,
        at,
        kind: FormatErrorKind::Absent,
    })
}

/// Checks every byte of the record that begins with `bytes`, embedded extents included.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn verify_record(
    bytes: &[u8],
    seal: Seal,
    at: u64,
) -> Result<(RecordHeader, Vec<ExtentRef>), FormatError> {
    let header = RecordHeader::decode(bytes, seal, at)?;
    let (extents, _meta) = header.tail(bytes, seal, at)?;
    if header.kind == Kind::Embedded {
        for meant in &extents {
            let begin = u64::from(meant.at) - at;
            let begin = usize::try_from(begin).unwrap_or(usize::MAX);
            let extent = bytes.get(begin..).unwrap_or_default();
            let found = verify_extent(extent, seal, u64::from(meant.at))?;
            found.check_reference(header.key, meant)?;
        }
    }
    Ok((header, extents))
}

/// Checks every byte of the extent that begins with `bytes`.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn verify_extent(bytes: &[u8], seal: Seal, at: u64) -> Result<ExtentHeader, FormatError> {
    let header = ExtentHeader::decode(bytes, seal, at)?;
    let item = reader::Reader::new(Item::Chunk, at, bytes);
    let whole = item.whole(usize::try_from(header.bytes()).unwrap_or(usize::MAX))?;
    let begin = usize::try_from(header.header_bytes()).unwrap_or(usize::MAX);
    let (content, padding) = whole[begin..].split_at(header.len as usize);
    for (index, chunk) in content.chunks(CHUNK_BYTES).enumerate() {
        header.check_chunk(seal, at, index, chunk)?;
    }
    item.expect(padding.iter().all(|byte| *byte == 0), "padding", 1)?;
    Ok(header)
}
