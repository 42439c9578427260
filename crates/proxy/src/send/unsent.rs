//! How much content is among the bytes a client has not taken: for the account of one that leaves.

use crate::send::framing::Framing;

/// What was framed for a client since it last had everything.
#[derive(Debug)]
pub(crate) struct Unsent {
    is_chunked: bool,
    /// Content of each piece; in chunks a chunk.
    pieces: Vec<usize>,
    /// What follows the last piece.
    end_bytes: usize,
}

impl Unsent {
    pub(crate) const fn new(framing: Framing) -> Self {
        Self {
            is_chunked: matches!(framing, Framing::Chunked),
            pieces: Vec::new(),
            end_bytes: 0,
        }
    }

    /// A piece with `content_bytes` was framed.
    pub(crate) fn push(&mut self, content_bytes: usize) {
        self.pieces.push(content_bytes);
    }

    /// So many bytes end the content.
    pub(crate) const fn end(&mut self, end_bytes: usize) {
        self.end_bytes = end_bytes;
    }

    /// The client has everything.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.end_bytes = 0;
    }

    /// How much content is among the last `unsent_bytes`: what was taken was taken from the front.
    pub(crate) fn content(&self, unsent_bytes: usize) -> u64 {
        let mut left = unsent_bytes.saturating_sub(self.end_bytes);
        let mut content = 0;
        for &piece in self.pieces.iter().rev() {
            let (header, tail) = if self.is_chunked {
                (header_bytes(piece), 2)
            } else {
                (0, 0)
            };
            left = left.saturating_sub(tail);
            content += left.min(piece) as u64;
            left = left.saturating_sub(piece + header);
        }
        content
    }
}

/// The size of a chunk in hexadecimal digits, and CRLF.
const fn header_bytes(content_bytes: usize) -> usize {
    let digits = match content_bytes.checked_ilog2() {
        Some(log) => log / 4 + 1,
        None => 1,
    };
    digits as usize + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::write;

    /// Frames `pieces` of letters behind a head, and counts the letters in every rest of it.
    fn check(framing: Framing, pieces: &[usize], end: &[u8]) {
        let mut unsent = Unsent::new(framing);
        let mut out = b"\r\n0123456789\r\n".to_vec();
        for &piece in pieces {
            if framing == Framing::Chunked {
                let mut header = Vec::new();
                write::chunk_header(&mut header, piece);
                out.extend(header.iter().map(|_| b'\r'));
            }
            out.resize(out.len() + piece, b'x');
            if framing == Framing::Chunked {
                write::chunk_end(&mut out);
            }
            unsent.push(piece);
        }
        out.extend_from_slice(end);
        unsent.end(end.len());
        for sent in 0..=out.len() {
            let rest = &out[sent..];
            let expected = rest.iter().filter(|byte| **byte == b'x').count();
            assert_eq!(unsent.content(rest.len()), expected as u64, "{sent}");
        }
        unsent.clear();
        assert_eq!(unsent.content(0), 0);
    }

    #[test]
    fn unsent_content_excludes_framing_bytes() {
        let pieces = [1, 9, 15, 16, 17, 255, 256, 257, 4095, 4096];
        check(Framing::Length, &pieces, b"");
        check(Framing::Close, &pieces, b"");
        check(Framing::Chunked, &pieces, b"");
        check(Framing::Chunked, &pieces, b"0\r\nA: b\r\n\r\n");
        check(Framing::Chunked, &[], b"0\r\n\r\n");
    }
}
