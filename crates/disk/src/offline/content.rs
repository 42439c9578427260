//! One record, and the bytes of its body.

use super::directory::Directory;
use super::error::OfflineError;
use super::segment::{Segment, StoredItem, key_text};
use crate::format::{
    EXTENT_HEADER_BYTES_MAX, ExtentHeader, ExtentRef, RECORD_HEADER_BYTES, RecordHeader,
};
use std::io::{self, Write};

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
}

impl Directory {
    /// Reads a record that was found; its content is not looked at.
    ///
    /// # Errors
    ///
    /// Something of it is damaged, or it is not what its table says.
    pub fn read(&self, found: &StoredItem) -> Result<IntactRecord, OfflineError> {
        let segment = Segment::open(self, found.segment)?;
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
                _ => Segment::open(self, extent.segment)?,
            };
            each_chunk(&segment, stored, extent, &mut |chunk| {
                written += chunk.len() as u64;
                output.write_all(chunk)
            })?;
            open = Some(segment);
        }
        Ok(written)
    }
}

pub(super) fn read_record(
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

/// Hands out the chunks of an extent, verified.
fn each_chunk(
    segment: &Segment,
    stored: &IntactRecord,
    extent: &ExtentRef,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
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
        let begin = at + header.header_bytes() + u64::from(begin);
        let chunk = segment.read(begin, len as usize)?;
        header
            .check_chunk(segment.seal, at, index, &chunk)
            .map_err(wrong)?;
        take(&chunk).map_err(OfflineError::Output)?;
    }
    Ok(())
}
