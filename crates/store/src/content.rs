//! The content of a stored response: immutable pieces by offset, whole or with gaps.
//!
//! A piece is a block that readers share without a copy, or an extent that they read from disk.
//! Content that is whole and fits one block is that block and nothing else; only what has several
//! pieces has a list of them, searched by halves. Blocks of one size do not fragment the heap
//! however sizes mix. Whole content that is requested again moves to a file in memory, where it is
//! in one piece ([`MemoryFile`](file::MemoryFile)).

pub(crate) mod file;

use self::file::{FREE_RANGE_BYTES, FileRange};
use crate::charge::{COUNTS_BYTES, allocated_bytes, block_bytes};
use crate::piece_memory::{PIECE_MEMORY_BYTES, PieceMemory};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use weir_disk::Extent;
use weir_policy::catalog::UNPINNED_CONTENT_BYTES_MAX;
use weir_policy::fetch::{ByteSpan, ByteSpans};

/// Bytes of content that readers share.
pub type Block = Arc<[u8]>;

/// Bytes a block holds at most: with its reference counts it fills 64 KiB, and no size class above.
pub const BLOCK_BYTES: usize = 64 * 1024 - COUNTS_BYTES;

/// Where the bytes of a piece are.
#[derive(Clone, Debug)]
pub(crate) enum PieceBytes {
    Memory(Block),
    Disk(Arc<Extent>),
}

/// Bytes that follow each other, and the offset of the first.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    pub(crate) content: PieceBytes,
}

/// What there is at an offset of the content, to the end of its piece.
#[derive(Clone, Copy, Debug)]
pub enum PieceRef<'a> {
    /// These bytes.
    Memory(&'a [u8]),
    /// What the disk has there.
    Disk(&'a Arc<Extent>),
}

impl Piece {
    pub(crate) fn in_memory(from: u64, block: Block) -> Self {
        Self {
            from,
            content: PieceBytes::Memory(block),
        }
    }

    pub(crate) fn on_disk(extent: Extent) -> Self {
        Self {
            from: extent.from,
            content: PieceBytes::Disk(Arc::new(extent)),
        }
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> u64 {
        match &self.content {
            PieceBytes::Memory(block) => block.len() as u64,
            PieceBytes::Disk(extent) => u64::from(extent.len),
        }
    }

    /// One past its last byte.
    pub(crate) fn to(&self) -> u64 {
        self.from + self.len()
    }

    pub(crate) fn span(&self) -> ByteSpan {
        ByteSpan {
            from: self.from,
            to: self.to(),
        }
    }

    /// Its block, if it is in memory.
    pub(crate) fn block(&self) -> Option<&Block> {
        match &self.content {
            PieceBytes::Memory(block) => Some(block),
            PieceBytes::Disk(_) => None,
        }
    }

    /// Its extent, if it is on disk.
    pub(crate) fn extent(&self) -> Option<&Arc<Extent>> {
        match &self.content {
            PieceBytes::Memory(_) => None,
            PieceBytes::Disk(extent) => Some(extent),
        }
    }

    /// Bytes of memory it holds.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.content {
            PieceBytes::Memory(block) => block_bytes(block.len()),
            PieceBytes::Disk(_) => EXTENT_BYTES,
        }
    }

    /// Where in it `offset` is; `None` if it is elsewhere.
    pub(crate) fn place_of(&self, offset: u64) -> Option<usize> {
        let place = offset.checked_sub(self.from)?;
        (place < self.len()).then(|| usize::try_from(place).ok())?
    }
}

// a list of them is as long as one of blocks would be
const _: () = assert!(size_of::<Piece>() == 3 * size_of::<usize>());

/// Bytes of memory of the handle of an extent.
const EXTENT_BYTES: usize = allocated_bytes(COUNTS_BYTES + size_of::<Extent>());

/// Immutable content, all of it or parts; cloning shares it.
#[derive(Clone, Debug)]
pub struct StoredContent {
    pieces: Pieces,
    /// The complete length, or if that is unknown the end of the run from 0.
    len: u64,
    undelivered_bytes: u64,
    is_length_known: bool,
    is_whole: bool,
    is_in_memory: bool,
}

#[derive(Clone, Debug)]
enum Pieces {
    One(Piece),
    /// Also none at all, which is not on the heap.
    Many {
        list: Arc<[Piece]>,
        /// If much of it is in memory. Behind the list, so that it is dropped after it.
        memory: Option<Arc<PieceMemory>>,
    },
    /// All of it in a file in memory.
    File(FileContent),
}

/// Content in a file in memory, whole.
#[derive(Clone, Debug)]
struct FileContent {
    range: Arc<FileRange>,
    /// Of little content, too: a socket has it when its response is over. Behind the range, so that
    /// it is dropped after it.
    memory: Arc<PieceMemory>,
}

/// Bytes of content in a file in memory, which `sendfile` can send: they do not change while the
/// content is held, nor for a socket that has them.
#[derive(Clone, Copy, Debug)]
pub struct FilePart<'a> {
    /// The file.
    pub fd: BorrowedFd<'a>,
    /// Where in the file they begin, bytes.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
}

/// Keeps content in memory, and in the account of the store, while a socket may have its pages.
#[derive(Debug)]
pub struct HeldContent(#[expect(dead_code, reason = "is dropped")] FileContent);

impl Default for StoredContent {
    /// Whole, and empty.
    fn default() -> Self {
        Self::new(Vec::new(), Some(0))
    }
}

impl From<&[u8]> for StoredContent {
    /// Whole content that is there at once.
    fn from(bytes: &[u8]) -> Self {
        let chunks = bytes.chunks(BLOCK_BYTES).zip((0..).step_by(BLOCK_BYTES));
        let pieces = chunks.map(|(chunk, from)| Piece::in_memory(from, chunk.into()));
        Self::new(pieces.collect(), Some(bytes.len() as u64))
    }
}

impl StoredContent {
    /// Whole content that is there at once, shared and not copied if one block can hold it.
    #[must_use]
    pub fn whole(bytes: &Block) -> Self {
        if bytes.is_empty() || bytes.len() > BLOCK_BYTES {
            return Self::from(&bytes[..]);
        }
        let piece = Piece::in_memory(0, Arc::clone(bytes));
        Self::new(vec![piece], Some(bytes.len() as u64))
    }

    /// Content of `pieces`, which are in order and do not overlap.
    pub(crate) fn new(mut pieces: Vec<Piece>, complete_length: Option<u64>) -> Self {
        let present: u64 = pieces.iter().map(Piece::len).sum();
        let is_in_memory = pieces.iter().all(|piece| piece.block().is_some());
        let mut run_end = 0;
        for piece in &pieces {
            if piece.from == run_end {
                run_end = piece.to();
            }
        }
        let pieces = match pieces.pop() {
            None => Pieces::Many {
                list: Arc::default(),
                memory: None,
            },
            Some(only) if pieces.is_empty() => Pieces::One(only),
            Some(last) => {
                pieces.push(last);
                let is_counted = has_piece_memory(&pieces);
                let memory = is_counted.then(|| Arc::new(PieceMemory::new(bytes_of(&pieces))));
                Pieces::Many {
                    list: pieces.into(),
                    memory,
                }
            }
        };
        Self {
            pieces,
            len: complete_length.unwrap_or(run_end),
            undelivered_bytes: 0,
            is_length_known: complete_length.is_some(),
            is_whole: complete_length == Some(present),
            is_in_memory,
        }
    }

    /// The same content, which is whole, in a file in memory that has its bytes in `range`.
    pub(crate) fn in_file(&self, range: FileRange) -> Self {
        let bytes = range_bytes(range.charged_bytes());
        let memory = Arc::new(PieceMemory::new(bytes));
        let range = Arc::new(range);
        Self {
            pieces: Pieces::File(FileContent { range, memory }),
            ..*self
        }
    }

    /// The same content in blocks, if it is in a file in memory: it is copied.
    pub(crate) fn in_blocks(&self) -> Self {
        match &self.pieces {
            Pieces::One(_) | Pieces::Many { .. } => self.clone(),
            Pieces::File(content) => {
                Self::from(content.range.bytes()).with_undelivered(self.undelivered_bytes)
            }
        }
    }

    /// Whether it is in a file in memory.
    #[must_use]
    pub fn is_in_file(&self) -> bool {
        matches!(self.pieces, Pieces::File(_))
    }

    /// What there is from `offset` on, to its end, in a file in memory.
    #[must_use]
    pub fn file_part_at(&self, offset: u64) -> Option<FilePart<'_>> {
        let Pieces::File(FileContent { range, .. }) = &self.pieces else {
            return None;
        };
        let len = self.len.checked_sub(offset).filter(|left| *left > 0)?;
        Some(FilePart {
            fd: range.fd(),
            offset: range.offset() + offset,
            len,
        })
    }

    /// Keeps what it has in a file in memory, if there is such: to be dropped when no socket has it
    /// any more.
    #[must_use]
    pub fn hold(&self) -> Option<HeldContent> {
        match &self.pieces {
            Pieces::One(_) | Pieces::Many { .. } => None,
            Pieces::File(content) => Some(HeldContent(content.clone())),
        }
    }

    /// Content on disk; `None` if `extents` are not in order, overlap, or go beyond the complete
    /// length: then they are not what they seem.
    #[must_use]
    pub fn on_disk(extents: Vec<Extent>, complete_length: Option<u64>) -> Option<Self> {
        let mut end = 0;
        for extent in &extents {
            if extent.len == 0 || extent.from < end {
                return None;
            }
            end = extent.from.checked_add(u64::from(extent.len))?;
        }
        if complete_length.is_some_and(|length| end > length) {
            return None;
        }
        let pieces = extents.into_iter().map(Piece::on_disk).collect();
        Some(Self::new(pieces, complete_length))
    }

    /// The same, with a note of how many of its bytes no client has received so far.
    #[must_use]
    pub fn with_undelivered(self, undelivered_bytes: u64) -> Self {
        Self {
            undelivered_bytes,
            ..self
        }
    }

    /// Its complete length in bytes, those that are missing included; if that is unknown, of what
    /// is present from the first byte on.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether [`Self::len`] is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The complete length in bytes, if it is known.
    #[must_use]
    pub fn complete_length(&self) -> Option<u64> {
        self.is_length_known.then_some(self.len)
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether all that is present is in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Whether its first bytes are on disk, and not in the page cache: a device has to be read. Can
    /// change at any time.
    #[must_use]
    pub fn needs_read(&self) -> bool {
        match self.piece_ref_at(0) {
            Some(PieceRef::Disk(extent)) => !extent.begins_in_page_cache(),
            Some(PieceRef::Memory(_)) | None => false,
        }
    }

    /// Whether some of it is not on disk any more: new requests must not rely on it.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        !self.is_in_memory && self.extents().any(|extent| extent.is_retired())
    }

    /// What of it is on disk, in order.
    pub fn extents(&self) -> impl Iterator<Item = &Arc<Extent>> {
        self.pieces().iter().filter_map(Piece::extent)
    }

    /// What of it is in memory, in order, in blocks, each with its offset. What is in a file is
    /// copied.
    #[must_use]
    pub fn to_blocks(&self) -> Vec<(u64, Block)> {
        let in_blocks = self.in_blocks();
        let pieces = in_blocks.pieces().iter();
        let blocks = pieces.filter_map(|piece| Some((piece.from, Arc::clone(piece.block()?))));
        blocks.collect()
    }

    /// How many of its bytes are in memory.
    #[must_use]
    pub fn bytes_in_memory(&self) -> u64 {
        if self.is_in_memory {
            return self.present_bytes();
        }
        let in_memory = self.pieces().iter().filter(|piece| piece.block().is_some());
        in_memory.map(Piece::len).sum()
    }

    /// The bytes from `offset` to the end of the piece that holds it; empty where nothing is in
    /// memory, and at the end.
    #[must_use]
    pub fn at(&self, offset: u64) -> &[u8] {
        match self.piece_ref_at(offset) {
            Some(PieceRef::Memory(bytes)) => bytes,
            Some(PieceRef::Disk(_)) | None => &[],
        }
    }

    /// What there is from `offset` to the end of the piece that holds it.
    #[must_use]
    pub fn piece_ref_at(&self, offset: u64) -> Option<PieceRef<'_>> {
        if let Pieces::File(content) = &self.pieces {
            let rest = content.range.bytes().get(usize::try_from(offset).ok()?..);
            return rest.filter(|it| !it.is_empty()).map(PieceRef::Memory);
        }
        let (piece, place) = self.piece_at(offset)?;
        Some(match &piece.content {
            PieceBytes::Memory(block) => PieceRef::Memory(&block[place..]),
            PieceBytes::Disk(extent) => PieceRef::Disk(extent),
        })
    }

    /// The piece that holds `offset`, and where in it; content in a file has none.
    pub(crate) fn piece_at(&self, offset: u64) -> Option<(&Piece, usize)> {
        let piece = match &self.pieces {
            Pieces::One(piece) => piece,
            Pieces::Many { list: pieces, .. } => {
                let after = pieces.partition_point(|piece| piece.from <= offset);
                pieces.get(after.checked_sub(1)?)?
            }
            Pieces::File(_) => return None,
        };
        Some((piece, piece.place_of(offset)?))
    }

    /// Its pieces, in order; content in a file has none.
    pub(crate) fn pieces(&self) -> &[Piece] {
        match &self.pieces {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many { list, .. } => list,
            Pieces::File(_) => &[],
        }
    }

    /// What is present.
    #[must_use]
    pub fn present(&self) -> ByteSpans {
        let mut present = ByteSpans::new();
        if self.is_in_file() {
            present.insert(ByteSpan {
                from: 0,
                to: self.len,
            });
        }
        for piece in self.pieces() {
            present.insert(piece.span());
        }
        present
    }

    /// How many bytes are present.
    #[must_use]
    pub fn present_bytes(&self) -> u64 {
        if self.is_whole {
            return self.len;
        }
        self.pieces().iter().map(Piece::len).sum()
    }

    /// Whether all bytes of `span` are present.
    #[must_use]
    pub fn holds(&self, span: ByteSpan) -> bool {
        if self.is_whole {
            return span.to <= self.len;
        }
        let mut at = span.from;
        while at < span.to {
            match self.piece_at(at) {
                Some((piece, _)) => at = piece.to(),
                None => return false,
            }
        }
        true
    }

    /// How many of the present bytes no client had received when this was stored.
    #[must_use]
    pub fn undelivered_bytes(&self) -> u64 {
        self.undelivered_bytes
    }

    /// Bytes of memory this content holds.
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        match &self.pieces {
            Pieces::One(piece) => piece.held_bytes(),
            Pieces::Many {
                memory: Some(memory),
                ..
            } => memory.bytes,
            Pieces::Many { list, memory: None } => {
                let pieces = list.iter().map(Piece::held_bytes);
                pieces.sum::<usize>() + shared_list_bytes(list.len())
            }
            Pieces::File(FileContent { memory, .. }) => memory.bytes,
        }
    }

    /// Whether the account of the store has what it holds until its last reader has dropped it.
    #[must_use]
    pub fn counts_while_held(&self) -> bool {
        self.memory().is_some()
    }

    /// What its pieces hold in memory, if that is much.
    pub(crate) fn memory(&self) -> Option<&Arc<PieceMemory>> {
        match &self.pieces {
            Pieces::One(_) => None,
            Pieces::Many { memory, .. } => memory.as_ref(),
            Pieces::File(FileContent { memory, .. }) => Some(memory),
        }
    }

    /// The same content, which counts as all that `other` holds: its blocks are among the other's,
    /// and are given back with those.
    pub(crate) fn with_memory_of(mut self, other: &Self) -> Self {
        if let Pieces::Many { memory, .. } = &mut self.pieces {
            *memory = other.memory().cloned();
        }
        self
    }
}

/// Whether a reader of `pieces` holds more memory than its connection is charged for.
fn has_piece_memory(pieces: &[Piece]) -> bool {
    let in_memory = pieces.iter().filter(|piece| piece.block().is_some());
    in_memory.map(Piece::len).sum::<u64>() > UNPINNED_CONTENT_BYTES_MAX
}

/// Bytes of memory that several pieces hold with their list.
fn bytes_of(pieces: &[Piece]) -> usize {
    let held: usize = pieces.iter().map(Piece::held_bytes).sum();
    held + shared_list_bytes(pieces.len()) + PIECE_MEMORY_BYTES
}

/// Bytes of memory of a range of a file in memory that takes `file_bytes` of it.
pub(crate) fn range_bytes(file_bytes: u64) -> usize {
    let in_file = usize::try_from(file_bytes).unwrap_or(usize::MAX);
    let handle = allocated_bytes(COUNTS_BYTES + size_of::<FileRange>());
    in_file.saturating_add(handle + FREE_RANGE_BYTES + PIECE_MEMORY_BYTES)
}

/// Bytes of memory a shared list of `pieces` pieces holds.
pub(crate) const fn shared_list_bytes(pieces: usize) -> usize {
    if pieces == 0 {
        return 0;
    }
    allocated_bytes(COUNTS_BYTES + pieces * size_of::<Piece>())
}
