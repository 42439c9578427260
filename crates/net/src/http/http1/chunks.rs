//! How content is framed on an HTTP/1.1 connection, and the chunk that is open (RFC 9112 §7.1).

use std::borrow::Cow;
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
    pub(super) fn tail(self, content: usize, end: Option<&[u8]>) -> Cow<'static, [u8]> {
        let Self::Chunked(left) = self else {
            return Cow::Borrowed(b"");
        };
        if content < left {
            return Cow::Borrowed(b"");
        }
        let chunk_end: &[u8] = if left > 0 { b"\r\n" } else { b"" };
        let Some(trailers) = end else {
            return Cow::Borrowed(chunk_end);
        };
        let mut tail = chunk_end.to_vec();
        write::last_chunk(&mut tail, trailers);
        Cow::Owned(tail)
    }

    /// Whether the end of the content takes bytes of its own.
    pub(super) fn has_end(self) -> bool {
        matches!(self, Self::Chunked(_))
    }

    /// The kernel has accepted so many bytes of content.
    pub(super) fn sent(&mut self, content: usize) {
        if let Self::Chunked(left) = self {
            *left -= content;
        }
    }
}
