//! A part of the content on disk, and how it is read and sent.

use crate::directory::Directory;
use crate::directory::reads::buffer::Buffer;
use crate::directory::reads::reader::{ReadFault, ReadMode, read};
use crate::directory::segment::Segment;
use crate::format::{
    CHUNK_BYTES, CHUNKS_MAX, EXTENT_HEADER_BYTES_MAX, ExtentHeader, ExtentRef, extent_header_bytes,
};
use crate::{ReadError, RecordId, Verify};
use std::future::Future;
use std::num::NonZeroUsize;
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

/// Chunks that one read of a device brings at most for a client: 192 KiB, which with its record is
/// within the memory of a connection. A device that is busy, or that has to seek, takes as long for
/// them as for one.
const READ_CHUNKS_MAX: usize = 3;

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
        self.read_up_to(at, at)
    }

    /// The same, to the end of the chunk before `to`, where a device has to be read: at most 192
    /// KiB by one read. Fewer chunks, and at least one, if a later one is damaged.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn read_up_to(
        &self,
        at: u64,
        to: u64,
    ) -> impl Future<Output = Result<Arc<[u8]>, ReadError>> + Send + use<> {
        let wanted = self.source.chunks_between(at, to).min(READ_CHUNKS_MAX);
        self.read_with(move |source, mode, buffer| {
            let chunks = match mode {
                ReadMode::PageCache => 1,
                ReadMode::Buffered(_) | ReadMode::Blocking => wanted,
            };
            Ok(source.verified(at, chunks, mode, buffer)?.into())
        })
    }

    /// All of it by one read, in blocks of `block_bytes`; verified as by [`Self::read`].
    ///
    /// # Errors
    /// As for [`Self::read`], of whichever chunk.
    pub fn read_whole(
        &self,
        block_bytes: NonZeroUsize,
    ) -> impl Future<Output = Result<Vec<Arc<[u8]>>, ReadError>> + Send + use<> {
        self.read_with(move |source, mode, buffer| {
            let reference = &source.reference;
            let content = source.verified(reference.from, CHUNKS_MAX, mode, buffer)?;
            if content.len() < reference.len as usize {
                let begin = source.at() + extent_header_bytes(reference.len);
                return Err(source.damaged(begin + content.len() as u64).into());
            }
            let blocks = content.chunks(block_bytes.get());
            Ok(blocks.map(Arc::from).collect())
        })
    }

    fn read_with<T, F>(
        &self,
        read: F,
    ) -> impl Future<Output = Result<T, ReadError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&ExtentSource, ReadMode, &mut Buffer) -> Result<T, ReadFault> + Send + 'static,
    {
        let source = Arc::clone(&self.source);
        let ExtentSource {
            directory, segment, ..
        } = &*self.source;
        directory.read(segment, move |mode| {
            Buffer::with(|buffer| read(&source, mode, buffer))
        })
    }

    /// Whether its first chunk is in the page cache and was verified there. Can change at any time.
    #[must_use]
    pub fn begins_in_page_cache(&self) -> bool {
        self.sendable(self.from, 1).is_some()
    }

    /// Whether the chunk that holds offset `at` of the content counts as verified in the page
    /// cache.
    #[cfg(test)]
    pub(crate) fn is_verified_at(&self, at: u64) -> bool {
        let source = &self.source;
        let header = source.header.get();
        let chunk = header.and_then(|it| source.chunk_at(it, at)).unwrap();
        source.segment.is_verified(chunk.place())
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
    /// Offset of its first byte in the extent.
    begin: u32,
    len: u32,
    /// Offset in the file.
    offset: u64,
}

impl Chunk {
    /// Offset in the file behind its last byte.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// As the segment knows it.
    fn place(&self) -> u32 {
        u32::try_from(self.offset).unwrap_or(u32::MAX)
    }
}

impl ExtentSource {
    fn at(&self) -> u64 {
        u64::from(self.reference.at)
    }

    /// The chunk that holds offset `at` of the content.
    #[cfg(test)]
    fn chunk_at(&self, header: &ExtentHeader, at: u64) -> Option<Chunk> {
        let inside = at.checked_sub(self.reference.from)?;
        self.chunk(header, usize::try_from(inside).ok()? / CHUNK_BYTES)
    }

    fn chunk(&self, header: &ExtentHeader, index: usize) -> Option<Chunk> {
        let (begin, len) = header.chunk(index)?;
        Some(Chunk {
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
        self.decoded(bytes)
    }

    /// The header that begins with `bytes`, known from now on.
    fn decoded(&self, bytes: &[u8]) -> Result<&ExtentHeader, ReadFault> {
        let header = ExtentHeader::decode(bytes, self.segment.seal, self.at());
        match header {
            Ok(header) if header.check_reference(self.key, &self.reference).is_ok() => {
                Ok(self.header.get_or_init(|| header))
            }
            _ => Err(self.damaged(self.at()).into()),
        }
    }

    /// Chunks that hold the content from `at` up to `to`, at least one.
    fn chunks_between(&self, at: u64, to: u64) -> usize {
        let inside = |offset: u64| offset.saturating_sub(self.reference.from);
        let (first, end) = (inside(at) / CHUNK_BYTES as u64, inside(to));
        let chunks = end.div_ceil(CHUNK_BYTES as u64).saturating_sub(first);
        usize::try_from(chunks).unwrap_or(CHUNKS_MAX).max(1)
    }

    /// From `at` on to the end of its chunk, verified, and of those behind it: `chunks` in all, up
    /// to the end of the extent, and only as far as they are undamaged. The header comes with the
    /// first chunks, if it is not known.
    fn verified<'b>(
        &self,
        at: u64,
        chunks: usize,
        mode: ReadMode,
        buffer: &'b mut Buffer,
    ) -> Result<&'b [u8], ReadFault> {
        let len = self.reference.len as usize;
        let inside = at.checked_sub(self.reference.from);
        let inside = inside.and_then(|inside| usize::try_from(inside).ok());
        let inside = inside.filter(|it| *it < len).ok_or(ReadError::Gone)?;
        let first = inside / CHUNK_BYTES;
        let begin = first * CHUNK_BYTES;
        let end = len.min(begin + chunks * CHUNK_BYTES);
        let is_header_known = self.header.get().is_some();
        let lead = match (mode, first, is_header_known) {
            (ReadMode::Buffered(_), 0, false) => extent_header_bytes(self.reference.len),
            _ => {
                self.header(buffer, mode)?;
                0
            }
        };
        let offset = self.at() + extent_header_bytes(self.reference.len) + begin as u64;
        let place = |index: usize| {
            let before = index.saturating_sub(first) * CHUNK_BYTES;
            u32::try_from(offset + before as u64).unwrap_or(u32::MAX)
        };
        let lead_bytes = usize::try_from(lead).unwrap_or_default();
        let read = self.bytes_at(buffer, offset - lead, lead_bytes + end - begin, mode);
        if mode == ReadMode::PageCache && matches!(read, Err(ReadFault::WouldWait)) {
            self.segment.left_memory(place(first));
        }
        let (head, content) = read?.split_at(lead_bytes);
        let header = match self.header.get() {
            Some(header) => header,
            None => self.decoded(head)?,
        };
        let mut right = 0;
        for (index, chunk) in (first..).zip(content.chunks(CHUNK_BYTES)) {
            let checked = header.check_chunk(self.segment.seal, self.at(), index, chunk);
            if checked.is_err() && index == first {
                return Err(self.damaged(u64::from(place(index))).into());
            } else if checked.is_err() {
                break;
            }
            right += chunk.len();
            // what was read past the page cache says nothing of what is in it
            if mode != ReadMode::Buffered(ReadPath::Past) {
                let chunk_len = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
                self.segment.verified(place(index), chunk_len);
            }
        }
        Ok(&content[inside - begin..right])
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
        let begin = at.checked_sub(self.reference.from)?;
        let end = begin.saturating_add(max).min(u64::from(self.reference.len));
        let len = self.resident_from(header, begin, end);
        (len > 0).then(|| SendPiece {
            offset: self.at() + header.header_bytes() + begin,
            len: len.min(max),
            file: Arc::clone(file),
        })
    }

    /// How many bytes from `begin` on, offsets in the extent, are in chunks that were verified and
    /// of which the page cache has all pages; the chunk that holds `end` is the last one looked at.
    fn resident_from(&self, header: &ExtentHeader, begin: u64, end: u64) -> u64 {
        let chunks = || {
            let first = usize::try_from(begin).unwrap_or(usize::MAX) / CHUNK_BYTES;
            (first..)
                .map_while(|index| self.chunk(header, index))
                .take_while(|chunk| u64::from(chunk.begin) < end)
                .take_while(|chunk| self.segment.is_verified(chunk.place()))
        };
        let file = &self.segment.file;
        let mut verified = chunks();
        let Some(first) = verified.next() else {
            return 0;
        };
        let end = verified.last().map_or(first.end(), |last| last.end());
        // mostly all of them are there, and one call says so
        if file.is_resident(first.offset, end - first.offset) {
            return end - first.offset - (begin - u64::from(first.begin));
        }
        let mut there = first.offset;
        for chunk in chunks() {
            if !file.is_resident(chunk.offset, u64::from(chunk.len)) {
                self.segment.left_memory(chunk.place());
                break;
            }
            there = chunk.end();
        }
        (there - first.offset).saturating_sub(begin - u64::from(first.begin))
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
    /// Its first `count` bytes were sent: what is left of it, if anything is.
    #[must_use]
    pub fn after(self, count: u64) -> Option<Self> {
        let len = self.len.checked_sub(count).filter(|len| *len > 0)?;
        Some(Self {
            offset: self.offset + count,
            len,
            ..self
        })
    }

    /// The file; open as long as this piece lives.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
