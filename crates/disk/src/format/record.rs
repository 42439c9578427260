//! A stored response: a header, the list of its runs, what the tier above keeps with it, and, if it
//! is small, the runs.

use super::reader::{Reader, SUM_BYTES};
use super::writer::Writer;
use super::{
    ALIGN_BYTES, BodyId, FormatError, FormatErrorKind, Item, META_BYTES_MAX, RUNS_MAX,
    SEGMENT_BYTES_MAX, Seal, aligned, encode_run_header, run_bytes,
};
use weir_policy::Digest;

pub(super) const MAGIC: [u8; 8] = *b"WEIR-REC";

/// Header of a record: enough to step to the next item.
pub const RECORD_HEADER_BYTES: usize = 80;

/// One run in the list.
pub const RUN_REF_BYTES: usize = 32;

/// Where the runs of a record lie.
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
    /// Its place in the order in which responses were asked for.
    pub generation: u64,
    /// Generation of the newest purge in the journal when it was written.
    pub purged: u64,
    /// Bytes of content of all its runs.
    pub content_bytes: u64,
    /// Bytes from its begin to where the next item may begin.
    pub bytes: u32,
    /// Bytes of meta.
    pub meta_bytes: u32,
    /// How many runs there are.
    pub runs: u32,
    /// Where they lie.
    pub kind: Kind,
    /// Checksum of list and meta.
    tail_sum: u64,
}

/// A run as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRef {
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

/// What a record to be written is told about.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Keyed digest of the cache key.
    pub key: Digest,
    /// Its place in the order in which responses were asked for.
    pub generation: u64,
    /// Generation of the newest purge in the journal.
    pub purged: u64,
    /// What the tier above keeps with it.
    pub meta: &'a [u8],
}

/// A run to be written inside a record.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
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
        let (bytes, meta_bytes, runs) = (reader.u32()?, reader.u32()?, reader.u32()?);
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
            runs,
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
        reader.limit("runs", u64::from(self.runs), u64::from(RUNS_MAX))?;
        let fits = bytes >= self.head_bytes() && bytes.is_multiple_of(ALIGN_BYTES as u64);
        reader.expect(fits, "length", bytes)
    }

    /// Bytes of header, list and meta: embedded runs begin behind them.
    #[must_use]
    pub const fn head_bytes(&self) -> u64 {
        head_bytes(self.runs, self.meta_bytes)
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
    ) -> Result<(Vec<RunRef>, &'a [u8]), FormatError> {
        let reader = Reader::new(Item::Meta, at, bytes);
        let head_bytes = usize::try_from(self.head_bytes()).unwrap_or(usize::MAX);
        let tail = &reader.whole(head_bytes)?[RECORD_HEADER_BYTES..];
        if seal.sum(at + RECORD_HEADER_BYTES as u64, tail) != self.tail_sum {
            return Err(reader.error(FormatErrorKind::Checksum));
        }
        let (list, meta) = tail.split_at(self.runs as usize * RUN_REF_BYTES);
        let runs = decode_list(list, at + RECORD_HEADER_BYTES as u64)?;
        self.check_runs(&runs, seal, at)?;
        Ok((runs, &meta[..self.meta_bytes as usize]))
    }

    /// Runs follow each other in the body without overlap; embedded ones lie one behind the other
    /// in the record.
    fn check_runs(&self, runs: &[RunRef], seal: Seal, at: u64) -> Result<(), FormatError> {
        let list_at = at + RECORD_HEADER_BYTES as u64;
        let (mut body_at, mut content, mut next) = (0, 0, at + self.head_bytes());
        for (index, run) in (0_u64..).zip(runs) {
            let run_at = list_at + index * RUN_REF_BYTES as u64;
            let reader = Reader::new(Item::RunList, run_at, &[]);
            reader.expect(run.from >= body_at, "offset in the body", run.from)?;
            let end = run.from.checked_add(u64::from(run.len));
            reader.expect(end.is_some(), "offset in the body", run.from)?;
            body_at = end.unwrap_or(u64::MAX);
            content += u64::from(run.len);
            if self.kind == Kind::Embedded {
                let segment = run.segment;
                reader.expect(segment == seal.number(), "segment number", segment)?;
                let place = u64::from(run.at);
                reader.expect(place == next, "offset in the segment", place)?;
                next += run_bytes(run.len);
            }
        }
        let reader = Reader::new(Item::RecordHeader, at, &[]);
        let claimed = self.content_bytes;
        reader.expect(claimed == content, "content length", claimed)?;
        let bytes = u64::from(self.bytes);
        reader.expect(bytes == next - at, "length", bytes)
    }
}

fn decode_list(list: &[u8], at: u64) -> Result<Vec<RunRef>, FormatError> {
    let entries = (at..).step_by(RUN_REF_BYTES);
    let entries = entries.zip(list.chunks_exact(RUN_REF_BYTES));
    entries
        .map(|(at, bytes)| {
            let mut reader = Reader::new(Item::RunList, at, bytes);
            let run = RunRef {
                from: reader.u64()?,
                len: reader.u32()?,
                at: reader.u32()?,
                segment: reader.u64()?,
                body: BodyId(reader.u64()?),
            };
            reader.expect(run.len > 0, "length", 0)?;
            let len = u64::from(run.len);
            reader.limit("length", len, u64::from(super::RUN_BYTES_MAX))?;
            let aligned = run.at.is_multiple_of(16);
            reader.expect(aligned, "offset in the segment", u64::from(run.at))?;
            Ok(run)
        })
        .collect()
}

/// A whole record with its runs inside, to be written at `at` in the segment of `seal`: what small
/// responses become.
///
/// # Errors
///
/// Something is beyond its limit, or runs overlap.
pub fn encode_embedded(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    body: BodyId,
    runs: &[NewRun<'_>],
) -> Result<Vec<u8>, FormatError> {
    let mut run_at = at + head_bytes(count(runs.len()), count(new.meta.len()));
    let mut list = Vec::with_capacity(runs.len());
    for run in runs {
        let len: usize = run.content.iter().map(|block| block.len()).sum();
        let len = count(len);
        list.push(RunRef {
            from: run.from,
            len,
            at: count(usize::try_from(run_at).unwrap_or(usize::MAX)),
            segment: seal.number(),
            body,
        });
        run_at += run_bytes(len);
    }
    let mut whole = encode_head(seal, at, new, Kind::Embedded, &list, run_at - at)?;
    for (run, place) in runs.iter().zip(&list) {
        let place = u64::from(place.at);
        whole.extend(encode_run_header(
            seal,
            place,
            (new.key, body),
            run.from,
            run.content,
        )?);
        for block in run.content {
            whole.extend_from_slice(block);
        }
        whole.resize(super::padded(whole.len()), 0);
    }
    Ok(whole)
}

/// A record whose runs lie elsewhere.
///
/// # Errors
///
/// Something is beyond its limit, or runs overlap.
pub fn encode_listed(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    runs: &[RunRef],
) -> Result<Vec<u8>, FormatError> {
    let bytes = head_bytes(count(runs.len()), count(new.meta.len()));
    encode_head(seal, at, new, Kind::Listed, runs, bytes)
}

/// Bytes of a record with runs of these lengths inside.
#[must_use]
pub fn embedded_bytes(meta_bytes: u32, runs: &[u32]) -> u64 {
    let runs_bytes: u64 = runs.iter().map(|len| run_bytes(*len)).sum();
    head_bytes(count(runs.len()), meta_bytes) + runs_bytes
}

/// Bytes of a record whose runs lie elsewhere.
#[must_use]
pub const fn listed_bytes(meta_bytes: u32, runs: u32) -> u64 {
    head_bytes(runs, meta_bytes)
}

/// Header, list and meta.
fn encode_head(
    seal: Seal,
    at: u64,
    new: &NewRecord<'_>,
    kind: Kind,
    runs: &[RunRef],
    bytes: u64,
) -> Result<Vec<u8>, FormatError> {
    let header = RecordHeader {
        key: new.key,
        generation: new.generation,
        purged: new.purged,
        content_bytes: runs.iter().map(|run| u64::from(run.len)).sum(),
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        meta_bytes: count(new.meta.len()),
        runs: count(runs.len()),
        kind,
        tail_sum: 0,
    };
    header.check_limits(&Reader::new(Item::RecordHeader, at, &[]))?;
    header.check_runs(runs, seal, at)?;
    let tail = encode_tail(at + RECORD_HEADER_BYTES as u64, new.meta, runs);
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
        writer.u32(self.runs);
        writer.u32(match self.kind {
            Kind::Embedded => 1,
            Kind::Listed => 2,
        });
        writer.u64(self.tail_sum);
        writer.seal(RECORD_HEADER_BYTES, seal)
    }
}

fn encode_tail(at: u64, meta: &[u8], runs: &[RunRef]) -> Vec<u8> {
    let bytes = runs.len() * RUN_REF_BYTES + meta.len();
    let mut writer = Writer::new(at, super::padded(bytes));
    for run in runs {
        writer.u64(run.from);
        writer.u32(run.len);
        writer.u32(run.at);
        writer.u64(run.segment);
        writer.u64(run.body.0);
    }
    writer.put(meta);
    writer.padded(super::padded(bytes))
}

const fn head_bytes(runs: u32, meta_bytes: u32) -> u64 {
    let list = runs as u64 * RUN_REF_BYTES as u64;
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
