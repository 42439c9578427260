//! Reads a record, and decides whether it is the requested one.

use crate::ReadError;
use crate::directory::Directory;
use crate::directory::reads::buffer::{Buffer, BufferState, Span};
use crate::directory::segment::Segment;
use crate::extent::{Extent, ExtentSource};
use crate::files::{DIRECT_BYTES, File, read_full};
use crate::format::{
    CHUNK_BYTES, EXTENT_REF_BYTES, ExtentHeader, ExtentRef, FormatError, FormatErrorKind, Kind,
    RECORD_HEADER_BYTES, RecordHeader, SEGMENT_BYTES_MAX,
};
use crate::record::{Candidate, LoadedRecord, RecordId, Ticket};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use weir_policy::page_cache::ReadPath;

/// What a look at a record in the page cache takes at most before it is known how many bytes the
/// record has: head and content of most responses.
const LOOK_BYTES_MAX: u64 = 80 * 1024;

/// The longest content that a look takes with its record, in bytes. What is longer is sent from the
/// page cache, without a copy.
const LOOKED_CONTENT_BYTES_MAX: u64 = 64 * 1024;

/// The same where a device has to be read, which takes longer than the bytes: 192 KiB with their
/// record are within the memory of the connection that waits for them.
const READ_CONTENT_BYTES_MAX: u64 = 192 * 1024;

/// The longest record that is read at once, as the index has its length: an eighth too much at
/// most.
const FIRST_READ_BYTES_MAX: u64 = (READ_CONTENT_BYTES_MAX + 8 * 1024) * 9 / 8;

/// What is read of a longer one: its head.
const HEAD_READ_BYTES: u64 = 16 * 1024;

/// Whether a read may wait for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Only what the page cache has.
    PageCache,
    /// Only bytes in the buffer; missing ones are requested.
    Buffered(ReadPath),
    /// It is done by a thread that has nothing else to do, through the page cache.
    Blocking,
}

/// Why a read has no result.
#[derive(Debug)]
pub(crate) enum ReadFault {
    /// The device must read first.
    WouldWait,
    /// It failed.
    Failed(ReadError),
}

impl From<ReadError> for ReadFault {
    fn from(error: ReadError) -> Self {
        Self::Failed(error)
    }
}

impl ReadFault {
    /// The result of a read; `None` if it would have to wait.
    pub(crate) fn finished<T>(read: Result<T, Self>) -> Option<Result<T, ReadError>> {
        match read {
            Ok(value) => Some(Ok(value)),
            Err(Self::Failed(error)) => Some(Err(error)),
            Err(Self::WouldWait) => None,
        }
    }
}

/// Reads `len` bytes of `segment` at `offset`, fewer if it ends before; where in `buffer` they are.
pub(crate) fn read(
    directory: &Directory,
    segment: &Segment,
    buffer: &mut Buffer,
    offset: u64,
    len: u64,
    mode: ReadMode,
) -> Result<Range<usize>, ReadFault> {
    // a guess may reach beyond the end of the file: a read of the page cache must not take that for
    // a cold cache
    let end = segment.end().max(offset);
    let len = usize::try_from(len.min(end - offset)).unwrap_or(usize::MAX);
    let file = &*segment.file;
    let done = match mode {
        ReadMode::PageCache => now(file, buffer.room(len), offset).ok_or(ReadFault::WouldWait)?,
        ReadMode::Buffered(read_path) => {
            return brought(directory, segment, buffer, offset, len, read_path);
        }
        ReadMode::Blocking => {
            directory.counters.waited_reads.add(1);
            let read = read_full(file, buffer.room(len), offset);
            let brought = read.as_ref().copied().unwrap_or_default();
            directory.counters.brought_bytes.add(brought as u64);
            read
        }
    };
    judged(directory, done).map(|count| 0..count)
}

/// What was brought of `len` bytes at `offset`.
fn brought(
    directory: &Directory,
    segment: &Segment,
    buffer: &mut Buffer,
    offset: u64,
    len: usize,
    read_path: ReadPath,
) -> Result<Range<usize>, ReadFault> {
    let read_path = match directory.can_read_past() {
        true => read_path,
        false => ReadPath::Through,
    };
    let unit = match read_path {
        ReadPath::Through => 1,
        ReadPath::Past => DIRECT_BYTES,
    };
    let lead = usize::try_from(offset % unit as u64).unwrap_or(0);
    let span = Span {
        file: Arc::clone(&segment.file),
        offset: offset - lead as u64,
        len: (lead + len).next_multiple_of(unit),
        end: segment.end(),
        read_path,
    };
    let mut is_unsupported = false;
    let there = buffer.take(span, |read| {
        directory.counters.waited_reads.add(1);
        is_unsupported = read_path == ReadPath::Past
            && matches!(&read, Err(error) if error.kind() == io::ErrorKind::Unsupported);
        if is_unsupported {
            return None;
        }
        if read_path == ReadPath::Through {
            let brought = read.as_ref().copied().unwrap_or_default();
            directory.counters.brought_bytes.add(brought as u64);
        }
        judged(directory, read).ok()
    });
    match there {
        BufferState::Bytes(count) => Ok(lead..count.clamp(lead, lead + len)),
        BufferState::Failed if is_unsupported => {
            directory.cannot_read_past();
            brought(directory, segment, buffer, offset, len, ReadPath::Through)
        }
        BufferState::Failed => Err(ReadError::Device.into()),
        BufferState::Pending => Err(ReadFault::WouldWait),
    }
}

/// What the page cache has; `None` if that is not all of it.
fn now(file: &dyn File, bytes: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
    match file.read_at_now(bytes, offset) {
        Ok(count) if count == bytes.len() => Some(Ok(count)),
        // fewer bytes may be the end of the file, or of the cached pages: a blocking read decides
        Ok(_) => None,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            None
        }
        Err(error) => Some(Err(error)),
    }
}

/// Counts what came of a read.
fn judged(directory: &Directory, read: io::Result<usize>) -> Result<usize, ReadFault> {
    match read {
        Ok(count) => {
            directory.fence.succeeded(true);
            directory.counters.read_bytes.add(count as u64);
            Ok(count)
        }
        Err(error) => {
            directory.failed("read", &error, true);
            Err(ReadError::Device.into())
        }
    }
}

/// A record in memory, its head verified.
pub(crate) struct Record<'b> {
    pub(crate) header: RecordHeader,
    pub(crate) extents: Vec<ExtentRef>,
    pub(crate) meta: &'b [u8],
    /// From the record's begin on, as much as was read.
    pub(crate) bytes: &'b [u8],
}

/// Why there is no record.
#[derive(Debug)]
pub(crate) enum NoRecord {
    Fault(ReadFault),
    /// The bytes there are not a record that was written there.
    Damaged(FormatError),
}

impl From<ReadFault> for NoRecord {
    fn from(fault: ReadFault) -> Self {
        Self::Fault(fault)
    }
}

/// Reads header, list and meta of the record at `offset`, and what else comes with about `guess`
/// bytes.
pub(crate) fn record<'b>(
    directory: &Directory,
    segment: &Segment,
    offset: u32,
    guess: u64,
    mode: ReadMode,
    buffer: &'b mut Buffer,
) -> Result<Record<'b>, NoRecord> {
    let at = u64::from(offset);
    let mut wanted = first_read_bytes(guess, mode);
    let mut there = 0..0;
    // the second round knows the length; a third one could only be a header that changes while it
    // is read
    for _ in 0..2 {
        there = read(directory, segment, buffer, at, wanted, mode)?;
        let bytes = buffer.bytes(&there);
        let header = RecordHeader::decode(bytes, segment.seal, at).map_err(NoRecord::Damaged)?;
        match header.tail(bytes, segment.seal, at) {
            Ok((extents, _)) => {
                let bytes = buffer.bytes(&there);
                let meta = RECORD_HEADER_BYTES + extents.len() * EXTENT_REF_BYTES;
                return Ok(Record {
                    header,
                    extents,
                    meta: &bytes[meta..][..header.meta_bytes as usize],
                    bytes,
                });
            }
            Err(FormatError {
                kind: FormatErrorKind::Cut { needed, .. },
                ..
            }) if needed > bytes.len() as u64 && needed <= u64::from(SEGMENT_BYTES_MAX) => {
                wanted = needed;
            }
            Err(error) => return Err(NoRecord::Damaged(error)),
        }
    }
    let kind = FormatErrorKind::Cut {
        needed: wanted,
        there: there.len() as u64,
    };
    Err(NoRecord::Damaged(FormatError {
        item: crate::format::Item::Meta,
        at,
        kind,
    }))
}

/// What is read of a record of about `guess` bytes before it is known how many it has.
fn first_read_bytes(guess: u64, mode: ReadMode) -> u64 {
    let guess = guess.max(RECORD_HEADER_BYTES as u64);
    match mode {
        ReadMode::Buffered(_) if guess <= FIRST_READ_BYTES_MAX => guess,
        ReadMode::Buffered(_) => HEAD_READ_BYTES,
        ReadMode::PageCache | ReadMode::Blocking => guess.min(LOOK_BYTES_MAX),
    }
}

/// Reads what the index pointed to.
pub(crate) fn load(
    directory: &Arc<Directory>,
    candidate: &Candidate,
    mode: ReadMode,
) -> Result<LoadedRecord, ReadFault> {
    if !directory.is_usable() {
        return Err(ReadError::Fenced.into());
    }
    Buffer::with(|buffer| load_into(directory, candidate, mode, buffer))
}

fn load_into(
    directory: &Arc<Directory>,
    candidate: &Candidate,
    mode: ReadMode,
    buffer: &mut Buffer,
) -> Result<LoadedRecord, ReadFault> {
    let Candidate {
        key,
        segment,
        place,
        ..
    } = candidate;
    let (offset, guess) = (place.offset(), place.class.bytes());
    let id = candidate.record();
    let found = match record(directory, segment, offset, guess, mode, buffer) {
        Ok(found) => found,
        Err(NoRecord::Fault(fault)) => return Err(fault),
        Err(NoRecord::Damaged(_)) => {
            let error = directory.read_damage(segment, u64::from(offset), *key, Some(id));
            return Err(error.into());
        }
    };
    let generation = found.header.generation;
    if found.header.key != *key || directory.purges.cover(*key, generation) {
        return Err(ReadError::Gone.into());
    }
    let content_max = match mode {
        ReadMode::Buffered(_) => READ_CONTENT_BYTES_MAX,
        ReadMode::PageCache | ReadMode::Blocking => LOOKED_CONTENT_BYTES_MAX,
    };
    Ok(assemble(directory, segment, id, (&found, content_max))?)
}

/// With its content, if that has at most `content_max` bytes.
fn assemble(
    directory: &Arc<Directory>,
    segment: &Arc<Segment>,
    id: RecordId,
    (found, content_max): (&Record<'_>, u64),
) -> Result<LoadedRecord, ReadError> {
    let mut extents = extents(directory, found, Some(id));
    let inline = match (found.header.kind, &*extents) {
        (Kind::Embedded, [only])
            if only.from == 0
                && u64::from(only.len) <= content_max
                && found.bytes.len() as u64 >= u64::from(found.header.bytes) =>
        {
            let content = inline(segment, found).map_err(|()| {
                directory.damaged(segment, u64::from(id.offset), found.header.key, Some(id));
                ReadError::Damaged
            })?;
            Some(content)
        }
        _ => None,
    };
    if found.header.kind == Kind::Listed && extents.is_empty() && !found.extents.is_empty() {
        directory.forget(found.header.key, id);
        return Err(ReadError::Gone);
    }
    extents.shrink_to_fit();
    Ok(LoadedRecord {
        key: found.header.key,
        ticket: Ticket(found.header.generation),
        meta: found.meta.into(),
        extents,
        inline,
        record: id,
    })
}

/// The extents of a record whose segments are still there.
pub(crate) fn extents(
    directory: &Arc<Directory>,
    found: &Record<'_>,
    record: Option<RecordId>,
) -> Vec<Extent> {
    let here = found.extents.iter().filter_map(|reference| {
        let segment = directory.segments.numbered(reference.segment)?;
        Some(Extent::new(ExtentSource {
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

/// The content of a record that has one short embedded extent.
fn inline(segment: &Segment, found: &Record<'_>) -> Result<Arc<[u8]>, ()> {
    let meant = found.extents.first().ok_or(())?;
    let begin = usize::try_from(found.header.head_bytes()).map_err(drop)?;
    let bytes = found.bytes.get(begin..).ok_or(())?;
    let at = u64::from(meant.at);
    let header = ExtentHeader::decode(bytes, segment.seal, at).map_err(drop)?;
    header
        .check_reference(found.header.key, meant)
        .map_err(drop)?;
    let skip = usize::try_from(header.header_bytes()).map_err(drop)?;
    let content = bytes.get(skip..skip + header.len as usize).ok_or(())?;
    for (index, chunk) in content.chunks(CHUNK_BYTES).enumerate() {
        let checked = header.check_chunk(segment.seal, at, index, chunk);
        checked.map_err(drop)?;
    }
    Ok(content.into())
}
