//! Reads a record, and decides whether it is what was asked for.

use super::Directory;
use super::segment::Segment;
use crate::ReadError;
use crate::extent::{Extent, Run};
use crate::files::File;
use crate::format::{
    FormatError, Kind, RECORD_HEADER_BYTES, RecordHeader, RunHeader, RunRef, SEGMENT_BYTES_MAX,
    Wrong,
};
use crate::record::{Candidate, Loaded, RecordId, Ticket};
use std::io;
use std::sync::Arc;

/// Bytes that are read before it is known how many a record has: head and content of most responses.
const FIRST_READ_BYTES: u64 = 80 * 1024;

/// The longest content that comes with its record, in bytes.
const INLINE_BYTES_MAX: u64 = 64 * 1024;

/// Whether a read may wait for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Only what the page cache has.
    None,
    /// It is done by a thread that has nothing else to do.
    Waits,
}

/// Why there are no bytes.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The device would have to be asked.
    WouldWait,
    /// The device said no.
    Device,
}

/// Reads until `bytes` is full or the file ends; how many bytes there were.
pub(crate) fn read(
    directory: &Directory,
    file: &dyn File,
    bytes: &mut [u8],
    offset: u64,
    patience: Patience,
) -> Result<usize, Unread> {
    let done = match patience {
        Patience::None => match file.read_at_now(bytes, offset) {
            Ok(count) if count == bytes.len() => Ok(count),
            // less may be the end of the file, or of what is in memory: who may wait finds out
            Ok(_) => return Err(Unread::WouldWait),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Err(Unread::WouldWait);
            }
            Err(error) => Err(error),
        },
        Patience::Waits => {
            directory.counters.waited_reads.add(1);
            crate::files::read_full(file, bytes, offset)
        }
    };
    match done {
        Ok(count) => {
            directory.fence.succeeded(true);
            directory.counters.read_bytes.add(count as u64);
            Ok(count)
        }
        Err(error) => {
            directory.failed("read", &error, true);
            Err(Unread::Device)
        }
    }
}

/// A record in memory, its head verified.
pub(crate) struct Record {
    pub(crate) header: RecordHeader,
    pub(crate) runs: Vec<RunRef>,
    pub(crate) meta: Box<[u8]>,
    /// From the record's begin on, as much as was read.
    pub(crate) bytes: Vec<u8>,
}

/// Why there is no record.
#[derive(Debug)]
pub(crate) enum NoRecord {
    Unread(Unread),
    /// The bytes there are not a record that was written there.
    Damaged(FormatError),
}

impl From<Unread> for NoRecord {
    fn from(unread: Unread) -> Self {
        Self::Unread(unread)
    }
}

/// Reads header, list and meta of the record at `offset`, and what else comes with about `guess` bytes.
pub(crate) fn record(
    directory: &Directory,
    segment: &Segment,
    offset: u32,
    guess: u64,
    patience: Patience,
) -> Result<Record, NoRecord> {
    let at = u64::from(offset);
    let mut bytes = Vec::new();
    let mut wanted = guess.clamp(RECORD_HEADER_BYTES as u64, FIRST_READ_BYTES);
    // the second round knows the length; a third one could only be a header that changes while it is read
    for _ in 0..2 {
        fill(directory, segment, &mut bytes, at, wanted, patience)?;
        let header = RecordHeader::decode(&bytes, segment.seal, at).map_err(NoRecord::Damaged)?;
        match header.tail(&bytes, segment.seal, at) {
            Ok((runs, meta)) => {
                let meta = meta.into();
                return Ok(Record {
                    header,
                    runs,
                    meta,
                    bytes,
                });
            }
            Err(FormatError {
                wrong: Wrong::Cut { needed, .. },
                ..
            }) if needed > bytes.len() as u64 && needed <= u64::from(SEGMENT_BYTES_MAX) => {
                wanted = needed;
            }
            Err(error) => return Err(NoRecord::Damaged(error)),
        }
    }
    let wrong = Wrong::Cut {
        needed: wanted,
        there: bytes.len() as u64,
    };
    Err(NoRecord::Damaged(FormatError {
        item: crate::format::Item::Meta,
        at,
        wrong,
    }))
}

/// Makes `bytes` hold `wanted` bytes from `at` on, fewer if the file ends before.
fn fill(
    directory: &Directory,
    segment: &Segment,
    bytes: &mut Vec<u8>,
    at: u64,
    wanted: u64,
    patience: Patience,
) -> Result<(), NoRecord> {
    // the guess may reach beyond the end of the file: a read without patience must not take that for a cold cache
    let end = segment.end().max(at);
    let wanted = usize::try_from(wanted.min(end - at)).unwrap_or(usize::MAX);
    let have = bytes.len();
    if wanted > have {
        bytes.resize(wanted, 0);
        let rest = &mut bytes[have..];
        let count = read(directory, &*segment.file, rest, at + have as u64, patience)?;
        bytes.truncate(have + count);
    }
    Ok(())
}

/// Reads what the index pointed to.
pub(crate) fn load(
    directory: &Arc<Directory>,
    candidate: &Candidate,
    patience: Patience,
) -> Option<Result<Loaded, ReadError>> {
    if !directory.is_usable() {
        return Some(Err(ReadError::Fenced));
    }
    let Candidate {
        key,
        segment,
        place,
        ..
    } = candidate;
    let offset = place.offset();
    let found = record(directory, segment, offset, place.class.bytes(), patience);
    let id = candidate.record();
    let found = match found {
        Ok(found) => found,
        Err(NoRecord::Unread(Unread::WouldWait)) => return None,
        Err(NoRecord::Unread(Unread::Device)) => return Some(Err(ReadError::Device)),
        Err(NoRecord::Damaged(_)) if segment.is_retired() => return Some(Err(ReadError::Gone)),
        Err(NoRecord::Damaged(_)) => {
            directory.damaged(segment, u64::from(offset), *key, Some(id));
            return Some(Err(ReadError::Damaged));
        }
    };
    let generation = found.header.generation;
    if found.header.key != *key || directory.purges.cover(*key, generation) {
        return Some(Err(ReadError::Gone));
    }
    Some(assemble(directory, segment, id, found))
}

fn assemble(
    directory: &Arc<Directory>,
    segment: &Arc<Segment>,
    id: RecordId,
    found: Record,
) -> Result<Loaded, ReadError> {
    let mut runs = extents(directory, &found, Some(id));
    let inline = match (found.header.kind, &*runs) {
        (Kind::Embedded, [only])
            if only.from == 0
                && u64::from(only.len) <= INLINE_BYTES_MAX
                && found.bytes.len() as u64 >= u64::from(found.header.bytes) =>
        {
            let content = inline(segment, &found).map_err(|()| {
                directory.damaged(segment, u64::from(id.offset), found.header.key, Some(id));
                ReadError::Damaged
            })?;
            Some(content)
        }
        _ => None,
    };
    if found.header.kind == Kind::Listed && runs.is_empty() && !found.runs.is_empty() {
        directory.forget(found.header.key, id);
        return Err(ReadError::Gone);
    }
    runs.shrink_to_fit();
    Ok(Loaded {
        key: found.header.key,
        ticket: Ticket(found.header.generation),
        meta: found.meta,
        runs,
        inline,
        record: id,
    })
}

/// The runs of a record whose segments are still there.
pub(crate) fn extents(
    directory: &Arc<Directory>,
    found: &Record,
    record: Option<RecordId>,
) -> Vec<Extent> {
    let here = found.runs.iter().filter_map(|reference| {
        let segment = directory.segments.numbered(reference.segment)?;
        Some(Extent::new(Run {
            directory: Arc::clone(directory),
            segment,
            key: found.header.key,
            reference: *reference,
            record,
            header: std::sync::OnceLock::new(),
        }))
    });
    here.collect()
}

/// The content of a record that has one short embedded run.
fn inline(segment: &Segment, found: &Record) -> Result<Arc<[u8]>, ()> {
    let meant = found.runs.first().ok_or(())?;
    let begin = usize::try_from(found.header.head_bytes()).map_err(drop)?;
    let bytes = found.bytes.get(begin..).ok_or(())?;
    let at = u64::from(meant.at);
    let header = RunHeader::decode(bytes, segment.seal, at).map_err(drop)?;
    header
        .check_reference(found.header.key, meant)
        .map_err(drop)?;
    let skip = usize::try_from(header.header_bytes()).map_err(drop)?;
    let content = bytes.get(skip..skip + header.len as usize).ok_or(())?;
    header
        .check_chunk(segment.seal, at, 0, content)
        .map_err(drop)?;
    Ok(content.into())
}
