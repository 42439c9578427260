//! What a reader of an in-flight response still has to write: head or framing, then
//! content, then the end of a chunk.
//!
//! Whole blocks are shared with the store and with other readers; only a block under way is copied.

use std::io::IoSlice;
use weir_store::Block;

/// Bytes on their way to one client.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Head or framing, then content that was copied.
    bytes: Vec<u8>,
    written: usize,
    /// Bytes at the front of `bytes` that are not content.
    frame: usize,
    /// Content behind `bytes`: a block, and what of it is to be written.
    shared: Option<(Block, usize, usize)>,
    /// What ends the chunk.
    tail: &'static [u8],
}

impl Outbox {
    /// One that begins with `head`.
    pub(crate) fn new(head: Vec<u8>) -> Self {
        Self {
            frame: head.len(),
            bytes: head,
            ..Self::default()
        }
    }

    /// Puts framing in: the outbox is empty, and content may follow.
    pub(crate) fn put_frame(&mut self, write: impl FnOnce(&mut Vec<u8>), tail: &'static [u8]) {
        debug_assert!(self.is_empty());
        write(&mut self.bytes);
        self.frame = self.bytes.len();
        self.tail = tail;
    }

    /// Puts content in, which is copied.
    pub(crate) fn put_copied(&mut self, content: Vec<u8>) {
        if self.bytes.is_empty() {
            self.bytes = content;
        } else {
            self.bytes.extend_from_slice(&content);
        }
    }

    /// Puts content in, which is shared.
    pub(crate) fn put_shared(&mut self, block: Block, from: usize, to: usize) {
        self.shared = Some((block, from, to));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.written == self.bytes.len() && self.shared.is_none() && self.tail.is_empty()
    }

    /// What is to be written next: framing, content of at most `limit` bytes, and the chunk's end
    /// if all of it is among them.
    pub(crate) fn pieces(&self, limit: usize) -> [IoSlice<'_>; 3] {
        let frame = self.frame.saturating_sub(self.written);
        let end = self
            .bytes
            .len()
            .min(self.written.saturating_add(frame).saturating_add(limit));
        let front = &self.bytes[self.written..end];
        let room = limit.saturating_sub(front.len() - frame);
        let (block, all): (&[u8], bool) = match &self.shared {
            Some((block, from, to)) => {
                let taken = (to - from).min(room);
                (&block[*from..from + taken], from + taken == *to)
            }
            None => (&[], end == self.bytes.len()),
        };
        let tail: &[u8] = if all { self.tail } else { b"" };
        [IoSlice::new(front), IoSlice::new(block), IoSlice::new(tail)]
    }

    /// The kernel took `count` bytes; how many of them were content.
    pub(crate) fn advance(&mut self, count: usize) -> usize {
        let front = count.min(self.bytes.len() - self.written);
        let before = self.written.max(self.frame);
        self.written += front;
        let mut left = count - front;
        let mut content = self.written.max(self.frame) - before;
        if let Some((_, from, to)) = &mut self.shared {
            let taken = left.min(*to - *from);
            *from += taken;
            left -= taken;
            content += taken;
            if from == to {
                self.shared = None;
            }
        }
        self.tail = self.tail.get(left..).unwrap_or_default();
        if self.is_empty() {
            self.bytes.clear();
            self.written = 0;
            self.frame = 0;
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes everything, `step` bytes at a time and `limit` content bytes a call; yields the bytes
    /// and the content.
    fn drain(outbox: &mut Outbox, step: usize, limit: usize) -> (Vec<u8>, usize) {
        let (mut written, mut content) = (Vec::new(), 0);
        while !outbox.is_empty() {
            let pieces = outbox.pieces(limit);
            let offered: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            let count = offered.len().min(step);
            assert!(count > 0, "nothing is offered");
            written.extend_from_slice(&offered[..count]);
            content += outbox.advance(count);
        }
        (written, content)
    }

    fn check(fill: impl Fn(&mut Outbox), expected: &str, expected_content: usize) {
        for step in 1..12 {
            for limit in [1, 2, 3, 7, 100] {
                let mut outbox = Outbox::new(b"HEAD".to_vec());
                let (head, content) = drain(&mut outbox, step, limit);
                assert_eq!((head.as_slice(), content), (&b"HEAD"[..], 0));
                fill(&mut outbox);
                let (written, content) = drain(&mut outbox, step, limit);
                let written = String::from_utf8(written).unwrap();
                assert_eq!(written, expected, "{step} {limit}");
                assert_eq!(content, expected_content, "{step} {limit}");
            }
        }
    }

    #[test]
    fn outbox_writes_each_byte_once_and_counts_only_content() {
        let block: Block = b"0123456789".as_slice().into();
        check(|outbox| outbox.put_copied(b"abc".to_vec()), "abc", 3);
        check(
            |outbox| outbox.put_shared(block.clone(), 2, 9),
            "2345678",
            7,
        );
        check(
            |outbox| {
                outbox.put_frame(|out| out.extend_from_slice(b"3\r\n"), b"\r\n");
                outbox.put_copied(b"abc".to_vec());
            },
            "3\r\nabc\r\n",
            3,
        );
        check(
            |outbox| {
                outbox.put_frame(|out| out.extend_from_slice(b"a\r\n"), b"\r\n");
                outbox.put_shared(block.clone(), 0, 10);
            },
            "a\r\n0123456789\r\n",
            10,
        );
        check(
            |outbox| outbox.put_frame(|out| out.extend_from_slice(b"0\r\n\r\n"), b""),
            "0\r\n\r\n",
            0,
        );
    }

    #[test]
    fn write_offers_at_most_the_allowed_content() {
        let block: Block = b"0123456789".as_slice().into();
        let mut outbox = Outbox::new(b"HEAD".to_vec());
        outbox.put_shared(block, 0, 10);
        let offered =
            |outbox: &Outbox| -> usize { outbox.pieces(4).iter().map(|piece| piece.len()).sum() };
        assert_eq!(offered(&outbox), 4 + 4);
        outbox.advance(6);
        assert_eq!(offered(&outbox), 4);
    }
}
