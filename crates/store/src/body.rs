//! The content of a stored response: blocks of one size, the last one cut to fit.
//!
//! Blocks of one size do not fragment the heap however sizes mix, and let a body grow without being copied.

use crate::charge::allocated_bytes;
use std::sync::Arc;

/// Bytes a block holds; also the unit in which the coming disk tier checks its bytes.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// Whole, immutable content; cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Body {
    blocks: Arc<[Box<[u8]>]>,
    len: u64,
}

impl Body {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes from `offset` to the end of the block that holds it; empty at the end.
    #[must_use]
    pub fn at(&self, offset: u64) -> &[u8] {
        if offset >= self.len {
            return &[];
        }
        let block = usize::try_from(offset / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
        let within = usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or(0);
        self.blocks.get(block).map_or(&[], |block| &block[within..])
    }

    /// Bytes of memory this content holds.
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        charged_for(self.len)
    }
}

/// Bytes of memory content of `len` bytes will hold.
pub(crate) fn charged_for(len: u64) -> usize {
    let len = usize::try_from(len).unwrap_or(usize::MAX / 2);
    let list = list_capacity(len.div_ceil(BLOCK_BYTES)) * size_of::<Box<[u8]>>();
    (len / BLOCK_BYTES) * BLOCK_BYTES
        + allocated_bytes(len % BLOCK_BYTES)
        + if len == 0 { 0 } else { allocated_bytes(list) }
}

/// Places the list of `blocks` blocks has at most: while it grows, and with the counts of the `Arc` at the end.
const fn list_capacity(blocks: usize) -> usize {
    blocks + blocks / 8 + 1
}

/// Content as it arrives. It never holds more than is charged for what was reserved: for content of a known length
/// that length, else whole blocks.
#[derive(Debug, Default)]
pub struct BodyBuilder {
    blocks: Vec<Box<[u8]>>,
    tail: Vec<u8>,
    len: u64,
    expected: Option<u64>,
}

impl BodyBuilder {
    /// A builder; of `expected` bytes, if the length is known, those of the first block are set aside.
    #[must_use]
    pub fn new(expected: Option<u64>) -> Self {
        let mut builder = Self {
            expected,
            ..Self::default()
        };
        builder.tail.reserve_exact(builder.expected_in_block());
        builder
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was taken yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.tail.len();
            let taken = room.min(bytes.len());
            self.grow_tail(taken);
            self.tail.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.tail.len() == BLOCK_BYTES {
                self.end_block();
            }
        }
    }

    /// Doubling would overshoot a block, or the end: the tail never holds more than one, nor more than is expected.
    fn grow_tail(&mut self, more: usize) {
        let wanted = self.tail.len() + more;
        if wanted > self.tail.capacity() {
            let expected = self.expected_in_block();
            let capacity = if wanted <= expected {
                expected
            } else {
                (wanted * 2).clamp(1024, BLOCK_BYTES)
            };
            self.tail.reserve_exact(capacity - self.tail.len());
        }
    }

    /// Bytes the block under way will have; 0 if that is not known.
    fn expected_in_block(&self) -> usize {
        let before = (self.blocks.len() * BLOCK_BYTES) as u64;
        let expected = self.expected.map_or(0, |len| len.saturating_sub(before));
        usize::try_from(expected).map_or(BLOCK_BYTES, |len| len.min(BLOCK_BYTES))
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.tail);
        if self.blocks.len() == self.blocks.capacity() {
            let more = list_capacity(self.blocks.len() + 1) - 1 - self.blocks.len();
            self.blocks.reserve_exact(more);
        }
        self.blocks.push(block.into_boxed_slice());
    }

    /// The finished content.
    #[must_use]
    pub fn finish(mut self) -> Body {
        if !self.tail.is_empty() {
            self.end_block();
        }
        if self.blocks.is_empty() {
            // shares one list, where an empty list of its own would be on the heap
            return Body::default();
        }
        Body {
            blocks: self.blocks.into(),
            len: self.len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heap behind a builder: capacity, not use.
    fn held(builder: &BodyBuilder) -> usize {
        let blocks: usize = builder.blocks.iter().map(|block| block.len()).sum();
        let list = allocated_bytes(builder.blocks.capacity() * size_of::<Box<[u8]>>());
        blocks + allocated_bytes(builder.tail.capacity()) + list
    }

    fn check(len: usize, step: usize, expected: Option<u64>) {
        let bytes: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut builder = BodyBuilder::new(expected);
        for part in bytes.chunks(step.max(1)) {
            builder.push(part);
            let blocks = builder.len().next_multiple_of(BLOCK_BYTES as u64);
            let known = expected.filter(|expected| builder.len() <= *expected);
            let charged = charged_for(known.unwrap_or(blocks));
            let held = held(&builder);
            assert!(held <= charged, "{held} held, {charged} charged of {len}");
        }
        let body = builder.finish();
        let mut read = Vec::new();
        while (read.len() as u64) < body.len() {
            read.extend_from_slice(body.at(read.len() as u64));
        }
        assert_eq!(read, bytes, "{len} bytes in steps of {step}");
        assert!(body.at(body.len()).is_empty());
    }

    #[test]
    fn content_comes_back_whole_whatever_the_steps() {
        for len in [
            0,
            1,
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            BLOCK_BYTES + 1,
            3 * BLOCK_BYTES + 17,
        ] {
            for step in [1 + len / 7, 1460, BLOCK_BYTES] {
                check(len, step, None);
                check(len, step, Some(len as u64));
                // a length that was wrong
                check(len, step, Some(len as u64 / 2));
                check(len, step, Some(len as u64 + 1));
            }
        }
    }
}
