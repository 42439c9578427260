//! How content is framed on an HTTP/1.1 connection, and the chunk that is open (RFC 9112 §7.1).

use weir_wire::write;

/// How content is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// As many bytes as the head says, or none.
    Length,
    /// In chunks; so many bytes of content are still to come in the open one.
    Chunked(usize),
    /// Up to the end of the connection: for clients that know no chunks.
    Close,
}

impl Framing {
    /// Begins a chunk of `offered` bytes if none is open; how many bytes of content may follow
    /// `frame`.
    pub(super) fn open(&mut self, offered: usize, frame: &mut Vec<u8>) -> usize {
        match self {
            Self::Length | Self::Close => offered,
            Self::Chunked(left) => {
                if *left == 0 && offered > 0 {
                    write::chunk_header(frame, offered);
                    *left = offered;
                }
                offered.min(*left)
            }
        }
    }

    /// What follows `content` bytes of content: the end of the chunk if they complete it, and the
    /// end of all content with `end`, which has the trailer section.
    pub(super) fn tail(self, content: usize, end: Option<&[u8]>) -> Vec<u8> {
        let mut tail = Vec::new();
        if let Self::Chunked(left) = self {
            if left > 0 && content == left {
                write::chunk_end(&mut tail);
            }
            if content == left
                && let Some(trailers) = end
            {
                write::last_chunk(&mut tail, trailers);
            }
        }
        tail
    }

    /// So many bytes of content have left.
    pub(super) fn sent(&mut self, content: usize) {
        if let Self::Chunked(left) = self {
            *left -= content;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `content` with a kernel that takes `step` bytes a call, offering at most `offer` bytes
    /// of content each time.
    fn sent(framing: Framing, content: &[u8], step: usize, offer: usize) -> Vec<u8> {
        let (mut framing, mut frame, mut at, mut out) = (framing, Vec::new(), 0, Vec::new());
        let mut is_ended = false;
        while !is_ended || !frame.is_empty() {
            let offered = &content[at..content.len().min(at + offer)];
            let end =
                (at + offered.len() == content.len() && !is_ended).then_some(&b"A: b\r\n"[..]);
            let allowed = framing.open(offered.len(), &mut frame);
            let tail = framing.tail(allowed, end.filter(|_| allowed == offered.len()));
            let all = [&frame[..], &offered[..allowed], &tail].concat();
            let count = all.len().min(step);
            out.extend_from_slice(&all[..count]);
            let of_content = count.saturating_sub(frame.len()).min(allowed);
            framing.sent(of_content);
            at += of_content;
            let of_tail = count.saturating_sub(frame.len() + allowed);
            frame.drain(..count.min(frame.len()));
            if of_content == allowed {
                frame.extend_from_slice(&tail[of_tail..]);
                is_ended |= end.is_some();
            }
        }
        out
    }

    #[test]
    fn each_byte_of_content_and_framing_is_sent_once() {
        for step in 1..20 {
            assert_eq!(sent(Framing::Length, b"0123456789", step, 4), b"0123456789");
            assert_eq!(sent(Framing::Close, b"0123456789", step, 10), b"0123456789");
            let chunked = sent(Framing::Chunked(0), b"0123456789", step, 100);
            let expected = b"a\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
            assert_eq!(chunked, expected, "{step}");
            let empty = sent(Framing::Chunked(0), b"", step, 4);
            assert_eq!(empty, b"0\r\nA: b\r\n\r\n", "{step}");
            let twice = sent(Framing::Chunked(0), b"01234567", step, 4);
            let expected = b"4\r\n0123\r\n4\r\n4567\r\n0\r\nA: b\r\n\r\n";
            assert_eq!(twice, expected, "{step}");
        }
    }
}
