//! A part of the content on disk, and how it is read and sent.

use crate::directory::Directory;
use crate::directory::reads::buffer::Buffer;
use crate::directory::reads::reader::{ReadFault, ReadMode, read};
use crate::directory::segment::Segment;
use crate::format::{CHUNK_BYTES, EXTENT_HEADER_BYTES_MAX, ExtentHeader, ExtentRef, PAGE_BYTES};
use crate::{ReadError, RecordId, Verify};
use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use weir_policy::Digest;
use weir_policy::page_cache::ReadPath;

/// A stretch of a stored content. Cloning is cheap; it keeps its segment readable, also when that
/// was evicted.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Offset of its first byte in the content.
    pub from: u64,
    /// Bytes.
    pub len: u32,
    pub(crate) source: Arc<ExtentSource>,
}

/// Where an extent lies, and what is known about it.
#[derive(Debug)]
pub(crate) struct ExtentSource {
    pub(crate) directory: Arc<Directory>,
    pub(crate) segment: Arc<Segment>,
    pub(crate) key: Digest,
    pub(crate) reference: ExtentRef,
    /// The record it was found by; `None` if it was written by this process and belongs to none
    /// yet.
    pub(crate) record: Option<RecordId>,
    /// Checksums of its chunks, once they were read.
    pub(crate) header: OnceLock<ExtentHeader>,
}

impl Extent {
    pub(crate) fn new(source: ExtentSource) -> Self {
        Self {
            from: source.reference.from,
            len: source.reference.len,
            source: Arc::new(source),
        }
    }

    /// Offset in the content behind its last byte.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.from + u64::from(self.len)
    }

    /// Its segment was evicted: it stays readable through this handle, and no lookup finds it. Can
    /// change at any time.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.source.segment.is_retired()
    }

    /// From offset `at` of the content to the end of the verified chunk that holds it (at most 64
    /// KiB): ready at once if the page cache is looked into and has it, else when it was read. How
    /// long to wait is the caller's decision: dropping the future is fine.
    ///
    /// # Errors
    /// Why it could not be read; [`ReadError::Damaged`] has been counted and the record's entry
    /// forgotten.
    pub fn read(
        &self,
        at: u64,
    ) -> impl Future<Output = Result<Arc<[u8]>, ReadError>> + Send + use<> {
        let source = Arc::clone(&self.source);
        let ExtentSource {
            directory, segment, ..
        } = &*self.source;
        directory.read(segment, move |mode| {
            Buffer::with(|buffer| source.chunk(at, mode, buffer))
        })
    }

    /// Whether the chunk that holds offset `at` of the content counts as verified in the page
    /// cache.
    #[cfg(test)]
    pub(crate) fn is_verified_at(&self, at: u64) -> bool {
        let source = &self.source;
        let chunk = source
            .header
            .get()
            .and_then(|it| source.chunk_at(it, at))
            .unwrap();
        source
            .segment
            .is_verified(u32::try_from(chunk.offset).unwrap())
    }

    /// What `sendfile` may send from offset `at` on, at most `max` bytes: it is in the page cache
    /// and was verified since it came there. `None`: read it.
    ///
    /// Pages are dropped and read again without notice, so a chunk counts as verified only until a
    /// look finds one of its pages missing. Nothing reads ahead in a segment, and what is read is
    /// verified; one risk remains: the page at the border of two chunks, if it alone is dropped and
    /// read again damaged.
    #[must_use]
    pub fn sendable(&self, at: u64, max: u64) -> Option<SendPiece> {
        self.source.sendable(at, max)
    }
}

/// A chunk of an extent.
struct Chunk {
    index: usize,
    /// Offset of its first byte in the extent.
    begin: u32,
    len: u32,
    /// Offset in the file.
    offset: u64,
}

impl ExtentSource {
    fn at(&self) -> u64 {
        u64::from(self.reference.at)
    }

    /// The chunk that holds offset `at` of the content.
    fn chunk_at(&self, header: &ExtentHeader, at: u64) -> Option<Chunk> {
        let inside = at.checked_sub(self.reference.from)?;
        let index = usize::try_from(inside).ok()? / CHUNK_BYTES;
        let (begin, len) = header.chunk(index)?;
        if inside >= u64::from(begin) + u64::from(len) {
            return None;
        }
        Some(Chunk {
            index,
            begin,
            len,
            offset: self.at() + header.header_bytes() + u64::from(begin),
        })
    }

    fn damaged(&self, offset: u64) -> ReadError {
        self.directory
            .read_damage(&self.segment, offset, self.key, self.record)
    }

    /// All of `len` bytes at `offset`.
    fn bytes_at<'b>(
        &self,
        buffer: &'b mut Buffer,
        offset: u64,
        len: usize,
        mode: ReadMode,
    ) -> Result<&'b [u8], ReadFault> {
        let (directory, segment) = (&self.directory, &self.segment);
        let there = read(directory, segment, buffer, offset, len as u64, mode)?;
        if there.len() != len {
            return Err(self.damaged(offset).into());
        }
        Ok(buffer.bytes(&there))
    }

    fn header(&self, buffer: &mut Buffer, mode: ReadMode) -> Result<&ExtentHeader, ReadFault> {
        if let Some(header) = self.header.get() {
            return Ok(header);
        }
        let room = self.segment.end().saturating_sub(self.at());
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let len = room.min(EXTENT_HEADER_BYTES_MAX);
        let bytes = self.bytes_at(buffer, self.at(), len, mode)?;
        let header = ExtentHeader::decode(bytes, self.segment.seal, self.at());
        match header {
            Ok(header) if header.check_reference(self.key, &self.reference).is_ok() => {
                Ok(self.header.get_or_init(|| header))
            }
            _ => Err(self.damaged(self.at()).into()),
        }
    }

    /// From `at` to the end of its chunk, verified.
    fn chunk(&self, at: u64, mode: ReadMode, buffer: &mut Buffer) -> Result<Arc<[u8]>, ReadFault> {
        let header = self.header(buffer, mode)?;
        let chunk = self.chunk_at(header, at).ok_or(ReadError::Gone)?;
        let place = u32::try_from(chunk.offset).unwrap_or(u32::MAX);
        let read = self.bytes_at(buffer, chunk.offset, chunk.len as usize, mode);
        if mode == ReadMode::PageCache && matches!(read, Err(ReadFault::WouldWait)) {
            self.segment.left_memory(place);
        }
        let bytes = read?;
        let checked = header.check_chunk(self.segment.seal, self.at(), chunk.index, bytes);
        checked.map_err(|_| self.damaged(chunk.offset))?;
        // what was read past the page cache says nothing of what is in it
        if mode != ReadMode::Buffered(ReadPath::Past) {
            self.segment.verified(place, chunk.len);
        }
        let skip = usize::try_from(at - self.reference.from - u64::from(chunk.begin));
        Ok(bytes[skip.unwrap_or(bytes.len())..].into())
    }

    /// Content sent by `sendfile` is not copied: the kernel holds pages of the page cache until the
    /// client has acknowledged them, and sends their bytes at that time. These are the verified
    /// ones, because nothing is written there any more: a place in a segment is written once, its
    /// table and trailer behind all content; an evicted segment is unlinked, not truncated or
    /// overwritten, and the page cache keeps the pages that the kernel holds; its number, and so
    /// its name, is not used again. Two risks remain: another program writes into our files, or a
    /// page is dropped and read again damaged between this look and the kernel's.
    /// [`Verify::Always`] copies and verifies everything instead.
    fn sendable(&self, at: u64, max: u64) -> Option<SendPiece> {
        if self.directory.limits.verify == Verify::Always {
            return None;
        }
        let file = self.segment.file.system()?;
        let header = self.header.get()?;
        let (mut next, mut len) = (at, 0);
        while len < max
            && let Some(chunk) = self.chunk_at(header, next)
            && self.is_resident(&chunk)
        {
            let skipped = next - self.reference.from - u64::from(chunk.begin);
            let rest = u64::from(chunk.len) - skipped;
            len += rest;
            next += rest;
        }
        let first = self.at() + header.header_bytes() + (at.checked_sub(self.reference.from)?);
        (len > 0).then(|| SendPiece {
            offset: first,
            len: len.min(max),
            file: Arc::clone(file),
        })
    }

    /// Whether all pages of a chunk are in the page cache and were verified there. A byte of each
    /// page is read without waiting: a quarter of the cost of copying them all.
    fn is_resident(&self, chunk: &Chunk) -> bool {
        let place = u32::try_from(chunk.offset).unwrap_or(u32::MAX);
        if !self.segment.is_verified(place) {
            return false;
        }
        let page = PAGE_BYTES as u64;
        let end = chunk.offset + u64::from(chunk.len);
        let mut at = chunk.offset;
        while at < end {
            let mut byte = [0];
            if !matches!(self.segment.file.read_at_now(&mut byte, at), Ok(1)) {
                self.segment.left_memory(place);
                return false;
            }
            at = (at / page + 1) * page;
        }
        true
    }
}

/// Bytes of a file that may be sent as they are.
#[derive(Clone, Debug)]
pub struct SendPiece {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, at least one.
    pub len: u64,
    file: Arc<std::fs::File>,
}

impl SendPiece {
    /// The file; open as long as this piece lives.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
