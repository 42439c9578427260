//! A stored response: a header, the list of its extents, what the tier above keeps with it, and, if
//! it is small, the extents.

use super::reader::{Reader, SUM_BYTES};
use super::writer::Writer;
use super::{
    ALIGN_BYTES, BodyId, EXTENTS_MAX, FormatError, FormatErrorKind, Item, META_BYTES_MAX,
    SEGMENT_BYTES_MAX, Seal, aligned, encode_extent_header, extent_bytes, extent_header_bytes,
};
use weir_policy::Digest;

pub(super) const MAGIC: [u8; 8] = *b"WEIR-REC";

/// Header of a record: enough to step to the next item.
pub const RECORD_HEADER_BYTES: usize = 80;

/// One extent in the list.
pub const EXTENT_REF_BYTES: usize = 32;

/// Where the extents of a record lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In the record itself.
    Embedded,
    /// Elsewhere: in this segment or another one.
    Listed,
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Keyed digest of the cache key.
    pub key: Digest,
    /// Its place in the order in which responses were requested.
    pub generation: u64,
    /// Generation of the newest purge in the journal when it was written.
    pub purged: u64,
    /// Bytes of content of all its extents.
    pub content_bytes: u64,
    /// Bytes from its begin to where the next item may begin.
    pub bytes: u32,
    /// Bytes of meta.
    pub meta_bytes: u32,
    /// How many extents there are.
    pub extents: u32,
    /// Where they lie.
    pub kind: Kind,
    /// Checksum of list and meta.
    tail_sum: u64,
}

/// An extent as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentRef {
    /// Where in the body it begins.
    pub from: u64,
    /// Bytes of content.
    pub len: u32,
    /// Offset of its header in that segment.
    pub at: u32,
    /// Number of the segment it lies in.
    pub segment: u64,
    /// The body it is part of.
    pub body: BodyId,
}

/// The facts of a record to write.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Keyed digest of the cache key.
    pub key: Digest,
    /// Its place in the order in which responses were requested.
    pub generation: u64,
    /// Generation of the newest purge in the journal.
    pub purged: u64,
    /// What the tier above keeps with it.
    pub meta: &'a [u8],
}

/// An extent to be written inside a record.
#[derive(Clone, Copy, Debug)]
pub struct NewExtent<'a> {
    /// Where in the body it begins.
    pub from: u64,
    /// Content, in any number of blocks; not empty.
    pub content: &'a [&'a [u8]],
}

impl RecordHeader {
    /// Reads the header that begins at `at` in the segment of `seal`. More than it needs may be
    /// given.
    ///
    /// # Errors
    ///
    /// [`FormatErrorKind::Cut`] says how many bytes are needed.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<Self, FormatError> {
        let mut reader = Reader::new(Item::RecordHeader, at, bytes);
        reader.magic(MAGIC)?;
        reader.check_sum(RECORD_HEADER_BYTES, seal)?;
        let (key, generation, purged) = (reader.digest()?, reader.u64()?, reader.u64()?);
        let content_bytes = reader.u64()?;
        let (bytes, meta_bytes, extents) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let kind = match reader.u32()? {
            1 => Kind::Embedded,
            2 => Kind::Listed,
            value => {
                return Err(reader.error(FormatErrorKind::Contradicts {
                    field: "kind",
                    value: u64::from(value),
                }));
            }
        };
        let tail_sum = reader.u64()?;
        let found = Self {
            key,
            generation,
            purged,
            content_bytes,
            bytes,
            meta_bytes,
            extents,
            kind,
            tail_sum,
        };
        found.check_limits(&reader)?;
        Ok(found)
    }

    fn check_limits(&self, reader: &Reader<'_>) -> Result<(), FormatError> {
        let bytes = u64::from(self.bytes);
        reader.limit("length", bytes, u64::from(SEGMENT_BYTES_MAX))?;
        let meta_bytes = u64::from(self.meta_bytes);
        reader.limit("meta length", meta_bytes, u64::from(META_BYTES_MAX))?;
        reader.limit("extents", u64::from(self.extents), u64::from(EXTENTS_MAX))?;
        let fits = bytes >= self.head_bytes() && bytes.is_multiple_of(ALIGN_BYTES as u64);
        reader.expect(fits, "length", bytes)
    }

    /// Bytes of header, list and meta: embedded extents begin behind them.
    #[must_use]
    pub const fn head_bytes(&self) -> u64 {
        head_bytes(self.extents, self.meta_bytes)
    }

    /// List and meta of the record that begins at `at`; `bytes` begin with the record too and have
    /// at least [`Self::head_bytes`].
    ///
    /// # Errors
    ///
    /// They are not what was written, or the list is at odds with itself.
    pub fn tail<'a>(
        &self,
        bytes: &'a [u8],
        seal: Seal,
        at: u64,
    ) -> Result<(Vec<ExtentRef>, &'a [u8]), FormatError> {
        let reader = Reader::new(Item::Meta, at, bytes);
        let head_bytes = usize::try_from(self.head_bytes()).unwrap_or(usize::MAX);
        let tail = &reader.whole(head_bytes)?[RECORD_HEADER_BYTES..];
        if seal.sum(at + RECORD_HEADER_BYTES as u64, tail) != self.tail_sum {
            return Err(reader.error(FormatErrorKind::Checksum));
        }
        let (list, meta) = tail.split_at(self.extents as usize * EXTENT_REF_BYTES);
        let extents = decode_list(list, at + RECORD_HEADER_BYTES as u64)?;
        self.check_extents(&extents, seal, at)?;
        Ok((extents, &meta[..self.meta_bytes as usize]))
    }

    /// Extents follow each other in the body without overlap; embedded ones lie one behind the
    /// other in the record.
    fn check_extents(&self, extents: &[ExtentRef], seal: Seal, at: u64) -> Result<(), FormatError> {
        let list_at = at + RECORD_HEADER_BYTES as u64;
        let (mut body_at, mut content, mut next) = (0, 0, at + self.head_bytes());
        for (index, extent) in (0_u64..).zip(extents) {
            let extent_at = list_at + index * EXTENT_REF_BYTES as u64;
            let reader = Reader::new(Item::ExtentList, extent_at, &[]);
            reader.expect(extent.from >= body_at, "offset in the body", extent.from)?;
            let end = extent.from.checked_add(u64::from(extent.len));
            reader.expect(end.is_some(), "offset in the body", extent.from)?;
            body_at = end.unwrap_or(u64::MAX);
            content += u64::from(extent.len);
            if self.kind == Kind::Embedded {
                let segment = extent.segment;
                reader.expect(segment == seal.number(), "segment number", segment)?;
                let place = u64::from(extent.at);
                reader.expect(place == next, "offset in the segment", place)?;
                next += extent_bytes(extent.len);
            }
        }
        let reader = Reader::new(Item::RecordHeader, at, &[]);
        let claimed = self.content_bytes;
        reader.expect(claimed == content, "content length", claimed)?;
        let bytes = u64::from(self.bytes);
        reader.expect(bytes == next - at, "length", bytes)
    }
}

fn decode_list(list: &[u8], at: u64) -> Result<Vec<ExtentRef>, FormatError> {
    let entries = (at..).step_by(EXTENT_REF_BYTES);
    let entries = entries.zip(list.chunks_exact(EXTENT_REF_BYTES));
    entries
        .map(|(at, bytes)| {
            let mut reader = Reader::new(Item::ExtentList, at, bytes);
            let extent = ExtentRef {
                from: reader.u64()?,
                len: reader.u32()?,
                at: reader.u32()?,
                segment: reader.u64()?,
                body: BodyId(reader.u64()?),
            };
            reader.expect(extent.len > 0, "length", 0)?;
            let len = u64::from(extent.len);
            reader.limit("length", len, u64::from(super::EXTENT_BYTES_MAX))?;
            let aligned = extent.at.is_multiple_of(16);
            reader.expect(aligned, "offset in the segment", u64::from(extent.at))?;
            Ok(extent)
        })
        .collect()
}

/// A whole record with its extents inside, to be written at `at` in the segment of `seal`: what
/// small responses become.
///
/// # Errors
///
/// Something is beyond its limit, or extents overlap.
pub fn encode_embedded(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    body: BodyId,
    extents: &[NewExtent<'_>],
) -> Result<Vec<u8>, FormatError> {
    let mut extent_at = at + head_bytes(count(extents.len()), count(new.meta.len()));
    let mut list = Vec::with_capacity(extents.len());
    for extent in extents {
        let len: usize = extent.content.iter().map(|block| block.len()).sum();
        let len = count(len);
        list.push(ExtentRef {
            from: extent.from,
            len,
            at: count(usize::try_from(extent_at).unwrap_or(usize::MAX)),
            segment: seal.number(),
            body,
        });
        extent_at += extent_bytes(len);
    }
    let mut whole = encode_head(seal, at, new, Kind::Embedded, &list, extent_at - at)?;
    for (extent, place) in extents.iter().zip(&list) {
        let place = u64::from(place.at);
        whole.extend(encode_extent_header(
            seal,
            place,
            (new.key, body),
            extent.from,
            extent.content,
        )?);
        for block in extent.content {
            whole.extend_from_slice(block);
        }
        whole.resize(super::padded(whole.len()), 0);
    }
    Ok(whole)
}

/// A record whose extents lie elsewhere.
///
/// # Errors
///
/// Something is beyond its limit, or extents overlap.
pub fn encode_listed(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    extents: &[ExtentRef],
) -> Result<Vec<u8>, FormatError> {
    let bytes = head_bytes(count(extents.len()), count(new.meta.len()));
    encode_head(seal, at, new, Kind::Listed, extents, bytes)
}

/// Bytes of a record with extents of these lengths inside.
#[must_use]
pub fn embedded_bytes(meta_bytes: u32, extents: &[u32]) -> u64 {
    let extents_bytes: u64 = extents.iter().map(|len| extent_bytes(*len)).sum();
    head_bytes(count(extents.len()), meta_bytes) + extents_bytes
}

/// Where the content of the first of these extents begins in a record that has them inside, and
/// its bytes.
#[must_use]
pub fn embedded_content(meta_bytes: u32, extents: &[u32]) -> (u64, u32) {
    let first = extents.first().copied().unwrap_or_default();
    let head_bytes = head_bytes(count(extents.len()), meta_bytes);
    (head_bytes + extent_header_bytes(first), first)
}

/// Bytes of a record whose extents lie elsewhere.
#[must_use]
pub const fn listed_bytes(meta_bytes: u32, extents: u32) -> u64 {
    head_bytes(extents, meta_bytes)
}

/// Header, list and meta.
fn encode_head(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    kind: Kind,
    extents: &[ExtentRef],
    bytes: u64,
) -> Result<Vec<u8>, FormatError> {
    let header = RecordHeader {
        key: new.key,
        generation: new.generation,
        purged: new.purged,
        content_bytes: extents.iter().map(|extent| u64::from(extent.len)).sum(),
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        meta_bytes: count(new.meta.len()),
        extents: count(extents.len()),
        kind,
        tail_sum: 0,
    };
    header.check_limits(&Reader::new(Item::RecordHeader, at, &[]))?;
    header.check_extents(extents, seal, at)?;
    let tail = encode_tail(at + RECORD_HEADER_BYTES as u64, new.meta, extents);
    let tail_sum = seal.sum(at + RECORD_HEADER_BYTES as u64, &tail);
    let mut whole = RecordHeader { tail_sum, ..header }.encode(seal, at);
    whole.reserve(usize::try_from(bytes).unwrap_or_default());
    whole.extend(tail);
    Ok(whole)
}

impl RecordHeader {
    fn encode(&self, seal: Seal, at: u64) -> Vec<u8> {
        let mut writer = Writer::new(at, RECORD_HEADER_BYTES);
        writer.put(&MAGIC);
        writer.digest(self.key);
        writer.u64(self.generation);
        writer.u64(self.purged);
        writer.u64(self.content_bytes);
        writer.u32(self.bytes);
        writer.u32(self.meta_bytes);
        writer.u32(self.extents);
        writer.u32(match self.kind {
            Kind::Embedded => 1,
            Kind::Listed => 2,
        });
        writer.u64(self.tail_sum);
        writer.seal(RECORD_HEADER_BYTES, seal)
    }
}

fn encode_tail(at: u64, meta: &[u8], extents: &[ExtentRef]) -> Vec<u8> {
    let bytes = extents.len() * EXTENT_REF_BYTES + meta.len();
    let mut writer = Writer::new(at, super::padded(bytes));
    for extent in extents {
        writer.u64(extent.from);
        writer.u32(extent.len);
        writer.u32(extent.at);
        writer.u64(extent.segment);
        writer.u64(extent.body.0);
    }
    writer.put(meta);
    writer.padded(super::padded(bytes))
}

const fn head_bytes(extents: u32, meta_bytes: u32) -> u64 {
    let list = extents as u64 * EXTENT_REF_BYTES as u64;
    aligned(RECORD_HEADER_BYTES as u64 + list + meta_bytes as u64)
}

/// A length as it is stored; what does not fit is beyond every limit, and refused as such.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The checksum is the header's last field.
const _: () = assert!(RECORD_HEADER_BYTES == 72 + SUM_BYTES);

#[cfg(test)]
mod tests;
