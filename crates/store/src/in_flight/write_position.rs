//! A position at which in-flight content is written, and what it does with the next bytes.

use crate::content::{BLOCK_BYTES, Block, Piece};
use crate::in_flight::content::WritePositionId;
use std::sync::Arc;
use weir_policy::fetch::ByteSpan;

/// The first block of content of unknown length begins with so many bytes: most such responses are
/// small.
const FIRST_BLOCK_BYTES_MIN: usize = 1024;

/// A position at which content is written.
#[derive(Debug)]
pub(crate) struct WritePosition {
    pub(crate) id: WritePositionId,
    /// Offset of the next byte.
    pub(crate) at: u64,
    /// Where it is expected to end.
    pub(crate) to: u64,
    /// Whether a block has ended: the next of unknown length is set aside whole.
    pub(crate) is_long: bool,
    pub(crate) open_block: Option<OpenBlock>,
}

/// The open block: allocated, filled in part, not shared.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) from: u64,
    pub(crate) block: Block,
    pub(crate) filled: usize,
}

/// A write position without its bytes: enough to decide, and to forecast a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionState {
    pub(crate) at: u64,
    pub(crate) to: u64,
    pub(crate) is_long: bool,
    /// Capacity of the open block, and how much of it is filled.
    pub(crate) open_block: Option<(usize, usize)>,
}

/// What to do next with bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is left.
    Done,
    /// So many are never needed.
    Skip(usize),
    /// Set aside a block of so many bytes.
    Open(usize),
    /// The open block becomes one of so many bytes.
    Grow(usize),
    /// So many go into the open block.
    Fill(usize),
    /// The open block is at its end.
    Seal,
}

impl PositionState {
    /// Whether nothing can be added to the open block, with `gap` bytes missing from here on.
    pub(crate) fn is_full(&self, gap: u64) -> bool {
        self.open_block.is_some_and(|(capacity, filled)| {
            gap == 0 || filled == BLOCK_BYTES || (filled == capacity && self.at == self.to)
        })
    }

    /// The next step where `gap` bytes are missing, not none, and `left` have come, not none.
    pub(crate) fn next_in_gap(&self, gap: u64, left: usize) -> Step {
        let expected = self.expected(gap);
        match self.open_block {
            None => Step::Open(match expected {
                Some(expected) => expected,
                None if self.is_long => BLOCK_BYTES,
                None => (left.saturating_mul(2)).clamp(FIRST_BLOCK_BYTES_MIN, BLOCK_BYTES),
            }),
            Some((capacity, filled)) if filled == capacity => {
                let wanted = filled.saturating_add(expected.unwrap_or(left.max(filled)));
                Step::Grow(wanted.min(BLOCK_BYTES))
            }
            Some((capacity, filled)) => {
                let gap = usize::try_from(gap).unwrap_or(usize::MAX);
                Step::Fill(left.min(capacity - filled).min(gap))
            }
        }
    }

    /// Bytes to come in this gap, at most a block; `None` if that is not known.
    fn expected(&self, gap: u64) -> Option<usize> {
        let end = self.at + gap;
        let end = if self.to > self.at {
            end.min(self.to)
        } else {
            end
        };
        let expected = end - self.at;
        (end < u64::MAX)
            .then(|| usize::try_from(expected).map_or(BLOCK_BYTES, |bytes| bytes.min(BLOCK_BYTES)))
    }
}

impl WritePosition {
    pub(crate) fn state(&self) -> PositionState {
        PositionState {
            at: self.at,
            to: self.to,
            is_long: self.is_long,
            open_block: self
                .open_block
                .as_ref()
                .map(|open| (open.block.len(), open.filled)),
        }
    }

    /// A block that is full at once.
    pub(crate) fn put_full(&mut self, block: Block) {
        let filled = block.len();
        self.open_block = Some(OpenBlock {
            from: self.at,
            block,
            filled,
        });
        self.at += filled as u64;
    }

    pub(crate) fn open_block(&mut self, block: Block) {
        self.open_block = Some(OpenBlock {
            from: self.at,
            block,
            filled: 0,
        });
    }

    /// Copies the open block into a larger one.
    pub(crate) fn grow(&mut self, capacity: usize) {
        if let Some(open) = &mut self.open_block {
            let former = std::mem::replace(&mut open.block, zeroed(capacity));
            let filled = std::mem::take(&mut open.filled);
            open.fill(&former[..filled]);
        }
    }

    /// Takes bytes that fit the open block.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        if let Some(open) = &mut self.open_block {
            open.fill(bytes);
            self.at += bytes.len() as u64;
        }
    }

    /// The open block, cut to what it has; `None` if there is none or it has nothing.
    pub(crate) fn take_piece(&mut self) -> Option<Piece> {
        let open = self.open_block.take()?;
        if open.filled == 0 {
            return None;
        }
        self.is_long = true;
        let block = if open.filled == open.block.len() {
            open.block
        } else {
            Arc::from(&open.block[..open.filled])
        };
        Some(Piece::in_memory(open.from, block))
    }
}

impl OpenBlock {
    pub(crate) fn span(&self) -> ByteSpan {
        ByteSpan {
            from: self.from,
            to: self.from + self.filled as u64,
        }
    }

    /// What has come from `offset` on; `None` if that byte has not.
    pub(crate) fn tail_at(&self, offset: u64) -> Option<&[u8]> {
        let place = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        (place < self.filled).then(|| &self.block[place..self.filled])
    }

    fn fill(&mut self, bytes: &[u8]) {
        let to = self.filled + bytes.len();
        let block = Arc::get_mut(&mut self.block);
        debug_assert!(block.is_some(), "shared before it was sealed");
        if let Some(block) = block {
            block[self.filled..to].copy_from_slice(bytes);
            self.filled = to;
        }
    }
}

/// A block of zeros, set aside in one piece; copied from some, as a copy is quick in debug builds,
/// too.
pub(crate) fn zeroed(bytes: usize) -> Block {
    Arc::from(&ZEROS[..bytes])
}

static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
