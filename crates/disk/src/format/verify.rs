//! Reads a segment item by item: what recovery and the offline reader have in common.

use super::{
    CHUNK_BYTES, FormatError, FormatErrorKind, Item, Kind, RecordHeader, RunHeader, RunRef, Seal,
    reader, record, run,
};

/// What begins at a place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record.
    Record(RecordHeader),
    /// A run outside of a record.
    Run(RunHeader),
}

impl Step {
    /// Bytes to where the next item may begin.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Record(record) => record.bytes as u64,
            Self::Run(run) => run.bytes(),
        }
    }
}

/// What begins with `bytes`, at `at` in the segment of `seal`. Only headers are looked at:
/// [`super::RUN_HEADER_BYTES_MAX`] bytes are enough. After an error the next place to look at is 16
/// bytes further.
///
/// # Errors
///
/// [`FormatErrorKind::Absent`] where neither begins; anything else is a damaged header (or content that looks
/// like one).
pub fn step(bytes: &[u8], seal: Seal, at: u64) -> Result<Step, FormatError> {
    if bytes.starts_with(&run::MAGIC) {
        return RunHeader::decode(bytes, seal, at).map(Step::Run);
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

/// Checks every byte of the record that begins with `bytes`, embedded runs included.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn verify_record(
    bytes: &[u8],
    seal: Seal,
    at: u64,
) -> Result<(RecordHeader, Vec<RunRef>), FormatError> {
    let header = RecordHeader::decode(bytes, seal, at)?;
    let (runs, _meta) = header.tail(bytes, seal, at)?;
    if header.kind == Kind::Embedded {
        for meant in &runs {
            let begin = u64::from(meant.at) - at;
            let begin = usize::try_from(begin).unwrap_or(usize::MAX);
            let run = bytes.get(begin..).unwrap_or_default();
            let found = verify_run(run, seal, u64::from(meant.at))?;
            found.check_reference(header.key, meant)?;
        }
    }
    Ok((header, runs))
}

/// Checks every byte of the run that begins with `bytes`.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn verify_run(bytes: &[u8], seal: Seal, at: u64) -> Result<RunHeader, FormatError> {
    let header = RunHeader::decode(bytes, seal, at)?;
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
