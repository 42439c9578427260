//! One place at which arriving content is filled, and what it does with the next bytes.

use crate::body::{BLOCK_BYTES, Block, Piece};
use crate::in_flight::growing::Place;
use std::sync::Arc;
use weir_policy::fetch::ByteSpan;

/// The first block of a length nobody knows begins with so many bytes: most such responses are
/// small.
const FIRST_BLOCK_BYTES_MIN: usize = 1024;

/// A place that is being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) place: Place,
    /// Offset of the next byte.
    pub(crate) at: u64,
    /// Where it is expected to end.
    pub(crate) to: u64,
    /// Whether a block has ended: the next of unknown length is set aside whole.
    pub(crate) is_long: bool,
    pub(crate) under: Option<Under>,
}

/// The block under way: set aside, filled in part, shared with nobody.
#[derive(Debug)]
pub(crate) struct Under {
    pub(crate) from: u64,
    pub(crate) block: Block,
    pub(crate) filled: usize,
}

/// A place without its bytes: enough to decide, and to foresee what will be decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) at: u64,
    pub(crate) to: u64,
    pub(crate) is_long: bool,
    /// Capacity of the block under way, and how much of it is filled.
    pub(crate) under: Option<(usize, usize)>,
}

/// What to do next with bytes that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is left.
    Done,
    /// So many are not wanted.
    Skip(usize),
    /// Set aside a block of so many bytes.
    Open(usize),
    /// The block under way becomes one of so many bytes.
    Grow(usize),
    /// So many go into the block under way.
    Fill(usize),
    /// The block under way is at its end.
    Seal,
}

impl Cursor {
    /// Whether nothing can be added to the block under way, with `gap` bytes missing from here on.
    pub(crate) fn is_full(&self, gap: u64) -> bool {
        self.under.is_some_and(|(capacity, filled)| {
            gap == 0 || filled == BLOCK_BYTES || (filled == capacity && self.at == self.to)
        })
    }

    /// The next step where `gap` bytes are missing, not none, and `left` have come, not none.
    pub(crate) fn next_in_gap(&self, gap: u64, left: usize) -> Step {
        let expected = self.expected(gap);
        match self.under {
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

impl Filling {
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor {
            at: self.at,
            to: self.to,
            is_long: self.is_long,
            under: self
                .under
                .as_ref()
                .map(|under| (under.block.len(), under.filled)),
        }
    }

    /// A block that is full at once.
    pub(crate) fn put_full(&mut self, block: Block) {
        let filled = block.len();
        self.under = Some(Under {
            from: self.at,
            block,
            filled,
        });
        self.at += filled as u64;
    }

    pub(crate) fn open_block(&mut self, block: Block) {
        self.under = Some(Under {
            from: self.at,
            block,
            filled: 0,
        });
    }

    /// Copies the block under way into a larger one.
    pub(crate) fn grow(&mut self, capacity: usize) {
        if let Some(under) = &mut self.under {
            let former = std::mem::replace(&mut under.block, zeroed(capacity));
            let filled = std::mem::take(&mut under.filled);
            under.fill(&former[..filled]);
        }
    }

    /// Takes bytes that fit the block under way.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        if let Some(under) = &mut self.under {
            under.fill(bytes);
            self.at += bytes.len() as u64;
        }
    }

    /// The block under way, cut to what it has; `None` if there is none or it has nothing.
    pub(crate) fn take_piece(&mut self) -> Option<Piece> {
        let under = self.under.take()?;
        if under.filled == 0 {
            return None;
        }
        self.is_long = true;
        let block = if under.filled == under.block.len() {
            under.block
        } else {
            Arc::from(&under.block[..under.filled])
        };
        Some(Piece::in_memory(under.from, block))
    }
}

impl Under {
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
