//! One record, and the bytes of its body.

use super::directory::Directory;
use super::error::OfflineError;
use super::segment::{Segment, SegmentSource, StoredItem, key_text};
use crate::format::{
    EXTENT_HEADER_BYTES_MAX, ExtentHeader, ExtentRef, RECORD_HEADER_BYTES, RecordHeader,
};
use std::io::{self, Write};
use std::ops::Range;

/// A record whose header, list and meta are intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntactRecord {
    /// What it says of itself.
    pub header: RecordHeader,
    /// What the tier above keeps with it.
    pub meta: Vec<u8>,
    /// Where its content lies.
    pub extents: Vec<ExtentRef>,
}

impl IntactRecord {
    /// Its key as people write it: 32 hexadecimal digits.
    #[must_use]
    pub fn key_text(&self) -> String {
        key_text(self.header.key)
    }

    /// Whether its content is there from its beginning on without a gap.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut at = 0;
        for extent in &self.extents {
            if extent.from != at {
                break;
            }
            at += u64::from(extent.len);
        }
        at == self.header.content_bytes
    }
}

impl Directory {
    /// Reads a record that was found; its content is not looked at.
    ///
    /// # Errors
    ///
    /// Something of it is damaged, or it is not what its table says.
    pub fn read(&self, found: &StoredItem) -> Result<IntactRecord, OfflineError> {
        let segment = Segment::open(self.segment_source(), found.segment)?;
        read_record(&segment, found)
    }

    /// Writes the body of a record to `output`, chunk by chunk, each verified before it is written.
    ///
    /// # Errors
    ///
    /// The first chunk that is damaged; what was written before it is good.
    /// [`OfflineError::Output`] if `output` takes no more.
    pub fn write_content(
        &self,
        stored: &IntactRecord,
        output: &mut dyn Write,
    ) -> Result<u64, OfflineError> {
        let mut written = 0;
        let mut open: Option<Segment> = None;
        for extent in &stored.extents {
            let segment = match open.take() {
                Some(segment) if segment.seal.number() == extent.segment => segment,
                _ => Segment::open(self.segment_source(), extent.segment)?,
            };
            let mut wanted = |_| Wanted::This;
            each_chunk(&segment, stored, extent, &mut wanted, &mut |_, chunk| {
                written += chunk.len() as u64;
                output.write_all(chunk)
            })?;
            open = Some(segment);
        }
        Ok(written)
    }
}

/// The content of a record from `from` on, verified: `bytes_max` bytes, fewer at its end.
///
/// # Errors
///
/// A chunk of it is damaged, or is not there any more.
pub(crate) fn content_piece(
    source: SegmentSource<'_>,
    stored: &IntactRecord,
    from: u64,
    bytes_max: usize,
) -> Result<Vec<u8>, OfflineError> {
    let end = from.saturating_add(bytes_max as u64);
    let mut piece = Vec::new();
    for extent in &stored.extents {
        if extent.from >= end || extent.from + u64::from(extent.len) <= from {
            continue;
        }
        let segment = Segment::open(source, extent.segment)?;
        let mut wanted = |chunk: Range<u64>| match (chunk.end <= from, chunk.start >= end) {
            (true, _) => Wanted::Later,
            (_, true) => Wanted::Nothing,
            _ => Wanted::This,
        };
        each_chunk(&segment, stored, extent, &mut wanted, &mut |at, chunk| {
            let skip = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
            let rest = chunk.get(skip..).unwrap_or_default();
            piece.extend_from_slice(&rest[..rest.len().min(bytes_max - piece.len())]);
            Ok(())
        })?;
    }
    Ok(piece)
}

/// Which chunk of an extent is read.
enum Wanted {
    /// This one.
    This,
    /// Not this one; perhaps one behind it.
    Later,
    /// Not this one, and none behind it.
    Nothing,
}

/// What lies at `at` in `segment`, if that is a record.
///
/// # Errors
///
/// It is none, or damaged, or cannot be read.
pub(crate) fn item_at(segment: &Segment, at: u32) -> Result<StoredItem, OfflineError> {
    let offset = u64::from(at);
    let head = segment.read(offset, RECORD_HEADER_BYTES)?;
    let header = RecordHeader::decode(&head, segment.seal, offset)
        .map_err(|error| OfflineError::format(&segment.path, error))?;
    Ok(StoredItem {
        key: header.key,
        generation: header.generation,
        segment: segment.seal.number(),
        at,
        bytes: header.bytes,
        kind: Some(header.kind),
    })
}

pub(crate) fn read_record(
    segment: &Segment,
    found: &StoredItem,
) -> Result<IntactRecord, OfflineError> {
    let at = u64::from(found.at);
    let wrong = |error| OfflineError::format(&segment.path, error);
    let head = segment.read(at, RECORD_HEADER_BYTES)?;
    let header = RecordHeader::decode(&head, segment.seal, at).map_err(wrong)?;
    let size = usize::try_from(header.head_bytes()).unwrap_or(usize::MAX);
    let bytes = segment.read(at, size)?;
    let (extents, meta) = header.tail(&bytes, segment.seal, at).map_err(wrong)?;
    Ok(IntactRecord {
        header,
        meta: meta.to_vec(),
        extents,
    })
}

/// Hands out the chunks of an extent that are wanted, verified, each with its place in the content.
fn each_chunk(
    segment: &Segment,
    stored: &IntactRecord,
    extent: &ExtentRef,
    wanted: &mut dyn FnMut(Range<u64>) -> Wanted,
    take: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
) -> Result<(), OfflineError> {
    let at = u64::from(extent.at);
    let wrong = |error| OfflineError::format(&segment.path, error);
    let head = segment.read(at, EXTENT_HEADER_BYTES_MAX)?;
    let header = ExtentHeader::decode(&head, segment.seal, at).map_err(wrong)?;
    header
        .check_reference(stored.header.key, extent)
        .map_err(wrong)?;
    for index in 0..header.chunks() {
        let Some((begin, len)) = header.chunk(index) else {
            break;
        };
        let from = extent.from + u64::from(begin);
        match wanted(from..from + u64::from(len)) {
            Wanted::This => {}
            Wanted::Later => continue,
            Wanted::Nothing => break,
        }
        let begin = at + header.header_bytes() + u64::from(begin);
        let chunk = segment.read(begin, len as usize)?;
        header
            .check_chunk(segment.seal, at, index, &chunk)
            .map_err(wrong)?;
        take(from, &chunk).map_err(OfflineError::Output)?;
    }
    Ok(())
}
