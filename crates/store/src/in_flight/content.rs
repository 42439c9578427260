//! In-flight content: written at several write positions at once, read while it is.
//!
//! A block is set aside once, at its final size where that is known, and filled in place; only when
//! nothing can be added to it is it *sealed*, which makes it shareable without a copy. Until then
//! it is lent to readers under the driver's lock. Bytes that are there already are not taken a
//! second time: the first to bring them wins.
//!
//! What is sealed may be written to disk behind ([`InFlightContent::start_write_behind`]): once a
//! block is there, its piece on disk replaces it, and its memory is given back.

use crate::charge::{allocated_bytes, block_bytes};
use crate::content::{BLOCK_BYTES, Block, Piece, PieceBytes, StoredContent, shared_list_bytes};
use crate::in_flight::write_position::{OpenBlock, PositionState, Step, WritePosition, zeroed};
use crate::join::{join, longest_spans};
use crate::piece_memory::PIECE_MEMORY_BYTES;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use weir_disk::Extent;
use weir_policy::fetch::{ByteSpan, ByteSpans};

/// Names a write position of an [`InFlightContent`]; never used again in the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WritePositionId(pub(crate) u32);

/// What can be read at an offset.
#[derive(Clone, Debug)]
pub enum InFlightPiece<'a> {
    /// Bytes that do not change any more: they can be kept while the lock is not.
    Sealed {
        /// The block they are in.
        block: Block,
        /// Where in the block they begin; they go to its end.
        from: usize,
    },
    /// An extent on disk that holds the offset.
    Disk {
        /// Where on disk.
        extent: &'a Arc<Extent>,
    },
    /// What has come so far of the open block.
    Open(&'a [u8]),
}

impl InFlightPiece<'_> {
    /// The bytes in memory: none of what is on disk, and never none else.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Sealed { block, from } => &block[*from..],
            Self::Disk { .. } => &[],
            Self::Open(bytes) => bytes,
        }
    }
}

/// Content that is not whole yet.
#[derive(Debug, Default)]
pub struct InFlightContent {
    /// What was inherited, or what there was when it was last finished.
    base: StoredContent,
    /// Bytes of memory `base` holds.
    base_bytes: usize,
    /// What was sealed since, by offset; apart from `base`.
    sealed: Vec<Piece>,
    /// Bytes of memory the blocks in `sealed` hold.
    sealed_bytes: usize,
    positions: Vec<WritePosition>,
    next_position: u32,
    present_bytes: u64,
    complete_length: Option<u64>,
    /// Sealed blocks that were not yet handed to the disk writer; `None` if there is none.
    unwritten: Option<VecDeque<(u64, Block)>>,
}

impl InFlightContent {
    /// Nothing yet of content of `complete_length` bytes, if that is known; or what is `inherited`,
    /// which is shared and not copied unless it is in a file. A body of another complete length, or
    /// with bytes beyond it, is not of the same representation, and not inherited.
    #[must_use]
    pub fn new(complete_length: Option<u64>, inherited: Option<&StoredContent>) -> Self {
        let fits = |body: &&StoredContent| match (complete_length, body.complete_length()) {
            (Some(length), Some(known)) => known == length,
            (Some(length), None) => body.pieces().last().is_none_or(|last| last.to() <= length),
            (None, _) => true,
        };
        let inherited = inherited.filter(fits).map(StoredContent::in_blocks);
        let Some(body) = inherited else {
            return Self {
                complete_length,
                ..Self::default()
            };
        };
        Self {
            base_bytes: body.charged_bytes(),
            present_bytes: body.present_bytes(),
            complete_length: complete_length.or(body.complete_length()),
            base: body,
            ..Self::default()
        }
    }

    /// The complete length in bytes, if it is known.
    #[must_use]
    pub fn complete_length(&self) -> Option<u64> {
        self.complete_length
    }

    /// The end has been found, or said by another response of the same representation: the complete
    /// length is `complete_length`. What is pushed beyond it is not kept. Without effect if a
    /// length is known already.
    pub fn set_complete_length(&mut self, complete_length: u64) {
        self.complete_length.get_or_insert(complete_length);
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.complete_length == Some(self.present_bytes)
    }

    /// How many bytes are present.
    #[must_use]
    pub fn present_bytes(&self) -> u64 {
        self.present_bytes
    }

    /// Opens a write position to fill `span`, from its first byte on; `span.to` only helps to set
    /// aside as much as will be used, `u64::MAX` if it is not known.
    pub fn open(&mut self, span: ByteSpan) -> WritePositionId {
        let id = WritePositionId(self.next_position);
        self.next_position += 1;
        self.positions.reserve_exact(1);
        self.positions.push(WritePosition {
            id,
            at: span.from,
            to: span.to,
            is_long: false,
            open_block: None,
        });
        id
    }

    /// Takes the next bytes at `position`; how many of them are new. Those that are present already
    /// are skipped, and so are those beyond the complete length. None are taken at a position that
    /// was closed.
    pub fn push(&mut self, position: WritePositionId, mut bytes: &[u8]) -> u64 {
        let Some(index) = self.index_of(position) else {
            return 0;
        };
        let before = self.present_bytes;
        loop {
            match self.next_step(&self.positions[index].state(), bytes.len()) {
                Step::Done => return self.present_bytes - before,
                Step::Skip(skipped) => {
                    bytes = &bytes[skipped..];
                    self.positions[index].at += skipped as u64;
                }
                Step::Open(capacity) if capacity <= bytes.len() => {
                    let block = Arc::from(&bytes[..capacity]);
                    bytes = &bytes[capacity..];
                    self.positions[index].put_full(block);
                    self.present_bytes += capacity as u64;
                }
                Step::Open(capacity) => self.positions[index].open_block(zeroed(capacity)),
                Step::Grow(capacity) => self.positions[index].grow(capacity),
                Step::Fill(filled) => {
                    self.positions[index].fill(&bytes[..filled]);
                    bytes = &bytes[filled..];
                    self.present_bytes += filled as u64;
                }
                Step::Seal => self.seal(index),
            }
        }
    }

    /// Closes a write position: what it brought stays.
    pub fn close(&mut self, position: WritePositionId) {
        if let Some(index) = self.index_of(position) {
            self.seal(index);
            self.positions.swap_remove(index);
            self.positions.shrink_to_fit();
        }
    }

    /// What can be read from `at` on, to the end of its block; `None` if that byte is not present.
    #[must_use]
    pub fn read(&self, at: u64) -> Option<InFlightPiece<'_>> {
        let in_base = self.base.piece_at(at);
        if let Some((piece, from)) = in_base.or_else(|| self.sealed_at(at)) {
            return Some(match &piece.content {
                PieceBytes::Memory(block) => InFlightPiece::Sealed {
                    block: Arc::clone(block),
                    from,
                },
                PieceBytes::Disk(extent) => InFlightPiece::Disk { extent },
            });
        }
        let mut open_blocks = self
            .positions
            .iter()
            .filter_map(|position| position.open_block.as_ref());
        open_blocks.find_map(|open| open.tail_at(at).map(InFlightPiece::Open))
    }

    /// What is present.
    #[must_use]
    pub fn present(&self) -> ByteSpans {
        let mut present = self.base.present();
        for piece in &self.sealed {
            present.insert(piece.span());
        }
        let open_blocks = self
            .positions
            .iter()
            .filter_map(|position| position.open_block.as_ref());
        for open in open_blocks.filter(|open| open.filled > 0) {
            present.insert(open.span());
        }
        present
    }

    /// Bytes of memory all this holds; what is inherited counts in full, as it would stay if its
    /// response left.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let open_blocks = self
            .positions
            .iter()
            .filter_map(|position| position.open_block.as_ref());
        let open_blocks: usize = open_blocks.map(|open| block_bytes(open.block.len())).sum();
        self.base_bytes
            + self.sealed_bytes
            + open_blocks
            + self.list_bytes(self.sealed.capacity())
            + allocated_bytes(self.positions.capacity() * size_of::<WritePosition>())
    }

    /// Bytes of memory it will hold when `bytes` more were pushed at `position`.
    #[must_use]
    pub fn held_after(&self, position: WritePositionId, bytes: usize) -> usize {
        let Some(index) = self.index_of(position) else {
            return self.held_bytes();
        };
        let mut forecast = Forecast {
            state: self.positions[index].state(),
            left: bytes,
            more_bytes: 0,
            less_bytes: 0,
            sealed: self.sealed.len(),
            capacity: self.sealed.capacity(),
        };
        loop {
            match self.next_step(&forecast.state, forecast.left) {
                Step::Done => break,
                step => forecast.take(step),
            }
        }
        self.held_bytes() + forecast.more_bytes - forecast.less_bytes
            + self.list_bytes(forecast.capacity)
            - self.list_bytes(self.sealed.capacity())
    }

    /// All that was brought so far, as stored content that shares the blocks; tiny neighbours are
    /// copied into one. Of more than [`STORED_SPANS_MAX`](crate::STORED_SPANS_MAX) spans the
    /// longest are in the stored content, and all stay here. Open positions continue, with a new
    /// block.
    pub fn finish(&mut self) -> StoredContent {
        self.seal_all();
        let sealed = std::mem::take(&mut self.sealed);
        self.sealed_bytes = 0;
        let mut pieces: Vec<Piece> = self.base.pieces().iter().cloned().chain(sealed).collect();
        pieces.sort_unstable_by_key(|piece| piece.from);
        let pieces = join(pieces);
        let kept = longest_spans(&pieces);
        self.base = StoredContent::new(pieces, self.complete_length);
        self.base_bytes = self.base.charged_bytes();
        match kept {
            None => self.base.clone(),
            Some(kept) => StoredContent::new(kept, self.complete_length).with_memory_of(&self.base),
        }
    }

    /// What was brought has become a record of these extents, which take its place, unless they do
    /// not have all of it.
    pub fn put_all_on_disk(&mut self, extents: Vec<Extent>) {
        let body = StoredContent::on_disk(extents, self.complete_length);
        let has_all = |body: &StoredContent| {
            self.sealed.is_empty() && body.present_bytes() == self.base.present_bytes()
        };
        if let Some(body) = body.filter(has_all) {
            self.base = body;
            self.base_bytes = self.base.charged_bytes();
        }
    }

    /// Ends the open blocks.
    pub(crate) fn seal_all(&mut self) {
        for index in 0..self.positions.len() {
            self.seal(index);
        }
    }

    /// Its extents on disk.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        let pieces = self.base.pieces().iter().chain(&self.sealed);
        let extents = pieces.filter_map(Piece::extent);
        let mut extents: Vec<Extent> = extents.map(|extent| Extent::clone(extent)).collect();
        extents.sort_unstable_by_key(|extent| extent.from);
        extents
    }

    /// Drops the blocks that end before `at`: no reader will read them, and the content will not be
    /// stored. They still count as present.
    pub fn release_before(&mut self, at: u64) {
        let before = self.sealed.len();
        self.sealed.retain(|piece| piece.to() > at);
        if self.sealed.len() < before {
            self.sealed_bytes = self.sealed.iter().map(Piece::held_bytes).sum();
            let capacity = list_capacity(self.sealed.len());
            self.sealed.shrink_to(capacity);
        }
        if self
            .base
            .pieces()
            .first()
            .is_some_and(|piece| piece.to() <= at)
        {
            let kept = self.base.pieces().iter().filter(|piece| piece.to() > at);
            self.base = StoredContent::new(kept.cloned().collect(), self.complete_length);
            self.base_bytes = self.base.charged_bytes();
        }
    }

    /// From now on what is in memory is written to disk, what is there already first. Returns how
    /// many blocks of the part that it began with come before all others.
    pub fn start_write_behind(&mut self) -> usize {
        if self.unwritten.is_some() {
            return 0;
        }
        let pieces = self.base.pieces().iter().chain(&self.sealed);
        let blocks = pieces.filter_map(|piece| Some((piece.from, Arc::clone(piece.block()?))));
        self.unwritten = Some(blocks.collect());
        let of_base = self.base.pieces().iter();
        of_base.filter(|piece| piece.block().is_some()).count()
    }

    /// The next block to be written, if there is one: until [`Self::pop_unwritten`] it is the next.
    #[must_use]
    pub fn next_unwritten(&self) -> Option<(u64, &Block)> {
        let (from, block) = self.unwritten.as_ref()?.front()?;
        Some((*from, block))
    }

    /// Bytes of memory of the blocks that are to be written.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        let blocks = self.unwritten.iter().flatten();
        blocks.map(|(_, block)| block_bytes(block.len())).sum()
    }

    /// The next block was handed to the disk writer.
    pub fn pop_unwritten(&mut self) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.pop_front();
        }
    }

    /// Nothing more is written to disk.
    pub fn stop_write_behind(&mut self) {
        self.unwritten = None;
    }

    /// `extent` has on disk what stands in memory in whole blocks: it replaces them. An extent that
    /// has other bytes is dropped. Returns the bytes of memory that the blocks held.
    pub fn put_on_disk(&mut self, extent: Extent) -> usize {
        let piece = Piece::on_disk(extent);
        let held = |pieces: &[Piece]| pieces.iter().map(Piece::held_bytes).sum::<usize>();
        if let Some(range) = tiles(&self.sealed, &piece) {
            let given_back = held(&self.sealed[range.clone()]);
            self.sealed_bytes = self.sealed_bytes - given_back + piece.held_bytes();
            self.sealed.splice(range, [piece]);
            return given_back;
        }
        let Some(range) = tiles(self.base.pieces(), &piece) else {
            return 0;
        };
        let mut pieces = self.base.pieces().to_vec();
        let given_back = held(&pieces[range.clone()]);
        pieces.splice(range, [piece]);
        self.base = StoredContent::new(pieces, self.complete_length);
        self.base_bytes = self.base.charged_bytes();
        given_back
    }

    fn index_of(&self, position: WritePositionId) -> Option<usize> {
        self.positions.iter().position(|known| known.id == position)
    }

    fn sealed_at(&self, at: u64) -> Option<(&Piece, usize)> {
        let after = self.sealed.partition_point(|piece| piece.from <= at);
        let piece = self.sealed.get(after.checked_sub(1)?)?;
        Some((piece, piece.place_of(at)?))
    }

    /// What to do next at a position where `left` bytes have come.
    fn next_step(&self, state: &PositionState, left: usize) -> Step {
        let gap = self.gap_at(state.at);
        if state.is_full(gap) {
            return Step::Seal;
        }
        if left == 0 {
            return Step::Done;
        }
        if gap == 0 {
            let present = self.present_at(state.at).unwrap_or(u64::MAX) - state.at;
            return Step::Skip(usize::try_from(present).map_or(left, |present| present.min(left)));
        }
        state.next_in_gap(gap, left)
    }

    /// How many bytes from `at` on are missing; `u64::MAX - at` if neither the next present byte
    /// nor the end is known.
    fn gap_at(&self, at: u64) -> u64 {
        if self.present_at(at).is_some() {
            return 0;
        }
        let next_in = |pieces: &[Piece]| {
            let after = pieces.partition_point(|piece| piece.from <= at);
            pieces.get(after).map(|piece| piece.from)
        };
        let open_blocks = self
            .positions
            .iter()
            .filter_map(|position| position.open_block.as_ref());
        let next = open_blocks
            .filter(|open| open.filled > 0)
            .map(|open| open.from);
        let next = next.filter(|from| *from > at);
        let next = next
            .chain(next_in(self.base.pieces()))
            .chain(next_in(&self.sealed))
            .chain(self.complete_length);
        next.min().unwrap_or(u64::MAX).saturating_sub(at)
    }

    /// The end of the piece that holds `at`, or of what has come of it.
    fn present_at(&self, at: u64) -> Option<u64> {
        let in_base = self.base.piece_at(at);
        if let Some((piece, _)) = in_base.or_else(|| self.sealed_at(at)) {
            return Some(piece.to());
        }
        let open_blocks = self
            .positions
            .iter()
            .filter_map(|position| position.open_block.as_ref());
        let mut spans = open_blocks.map(OpenBlock::span);
        spans.find_map(|span| (span.from <= at && at < span.to).then_some(span.to))
    }

    /// Ends the open block of a position; what it has beyond its bytes is given back.
    fn seal(&mut self, index: usize) {
        let Some(piece) = self.positions[index].take_piece() else {
            return;
        };
        let capacity = capacity_for(self.sealed.len() + 1, self.sealed.capacity());
        self.sealed.reserve_exact(capacity - self.sealed.len());
        self.sealed_bytes += piece.held_bytes();
        if let (Some(unwritten), Some(block)) = (&mut self.unwritten, piece.block()) {
            unwritten.push_back((piece.from, Arc::clone(block)));
        }
        let at = self.sealed.partition_point(|known| known.from < piece.from);
        self.sealed.insert(at, piece);
    }

    /// Bytes of memory the lists hold, or will, with `capacity` places for what is sealed.
    fn list_bytes(&self, capacity: usize) -> usize {
        let joined = if self.base_bytes == 0 || capacity == 0 {
            // the list here, or that of the base, covers the one that is made of it
            0
        } else {
            shared_list_bytes(self.base.pieces().len() + capacity)
        };
        let memory = if capacity == 0 { 0 } else { PIECE_MEMORY_BYTES };
        joined + allocated_bytes(capacity * size_of::<Piece>()) + memory
    }
}

/// Which of `pieces` are exactly what `stretch` has, and in memory; `None` if none are.
fn tiles(pieces: &[Piece], stretch: &Piece) -> Option<Range<usize>> {
    let first = pieces.partition_point(|piece| piece.from < stretch.from);
    let mut end = stretch.from;
    let is_part = |piece: &&Piece| {
        let is_next = piece.from == end && piece.to() <= stretch.to() && piece.block().is_some();
        end = if is_next { piece.to() } else { end };
        is_next
    };
    let count = pieces[first..].iter().take_while(is_part).count();
    (end == stretch.to()).then_some(first..first + count)
}

/// What comes of bytes that are not pushed yet.
struct Forecast {
    state: PositionState,
    left: usize,
    // apart, as their difference may be below zero
    more_bytes: usize,
    less_bytes: usize,
    sealed: usize,
    capacity: usize,
}

impl Forecast {
    fn take(&mut self, step: Step) {
        let (capacity, filled) = self.state.open_block.unwrap_or_default();
        match step {
            Step::Done => {}
            Step::Skip(skipped) => {
                self.state.at += skipped as u64;
                self.left -= skipped;
            }
            Step::Open(capacity) => {
                self.state.open_block = Some((capacity, 0));
                self.more_bytes += block_bytes(capacity);
            }
            Step::Grow(larger) => {
                self.state.open_block = Some((larger, filled));
                self.more_bytes += block_bytes(larger);
                self.less_bytes += block_bytes(capacity);
            }
            Step::Fill(more) => {
                self.state.open_block = Some((capacity, filled + more));
                self.state.at += more as u64;
                self.left -= more;
            }
            Step::Seal => {
                self.state.open_block = None;
                self.state.is_long = true;
                self.more_bytes += block_bytes(filled);
                self.less_bytes += block_bytes(capacity);
                self.sealed += 1;
                self.capacity = capacity_for(self.sealed, self.capacity);
            }
        }
    }
}

/// Places of a list of `pieces` pieces that has `capacity`: it grows by an eighth, as its slack is
/// paid for.
fn capacity_for(pieces: usize, capacity: usize) -> usize {
    if pieces <= capacity {
        return capacity;
    }
    list_capacity(pieces)
}

/// Places the list of `pieces` pieces has at most: while it grows, and with the counts of the `Arc`
/// at the end.
const fn list_capacity(pieces: usize) -> usize {
    pieces + pieces / 8 + 1
}

/// Bytes of memory contiguous content of `len` bytes will hold while and when it has arrived at one
/// write position.
pub(crate) fn charged_for(len: u64) -> usize {
    let len = usize::try_from(len).unwrap_or(usize::MAX / 4);
    if len == 0 {
        return 0;
    }
    let rest = match len % BLOCK_BYTES {
        0 => 0,
        rest => block_bytes(rest),
    };
    (len / BLOCK_BYTES) * block_bytes(BLOCK_BYTES)
        + rest
        + allocated_bytes(list_capacity(len.div_ceil(BLOCK_BYTES)) * size_of::<Piece>())
        + PIECE_MEMORY_BYTES
        + allocated_bytes(size_of::<WritePosition>())
}
