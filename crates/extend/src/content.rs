//! The content of a message, as a module changes it: in pieces, with a bound on what is held.

use crate::answer::LocalResponse;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::task::{Context, Poll};

/// Most bytes that one call of [`Transform::transform`] puts out.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A module's work on the content of one message. It is called with the content in order, and with
/// no more content than it and the proxy may hold (`module[].hold`): what it does not take of a
/// piece is kept by the proxy, and handed over again in front of what follows.
pub trait Transform {
    /// Takes content from `piece`, and puts content into it. It must not block. It is called again
    /// as long as it takes or puts something; after [`Piece::is_last`], until it is done.
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress;

    /// Ready when what it deferred for is there. Polled only after [`Progress::Defer`].
    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }

    /// Ready when it has something to put out although no more content has come: then it is called
    /// again. Polled after [`Progress::Continue`] with nothing taken or put, until content comes.
    /// For transforms whose work is done elsewhere: what comes may be an event, and the next one
    /// far off.
    fn poll_put(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Pending
    }
}

/// How far a transform has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It needs more content, or more room.
    Continue,
    /// It has put out all: what may still come is dropped.
    Done,
    /// The module cannot do its work on this content: the message is cut, so that its receiver
    /// sees that it is not whole.
    Fail,
    /// As [`Self::Fail`], because what the module works with is not there, or does not do as it
    /// should ([`Answer::Unavailable`](crate::Answer::Unavailable)).
    Unavailable,
    /// It waits until [`Transform::poll_deferred`] is ready; then it is called again.
    Defer,
    /// The module answers the request by itself: in the place of the response of the next hop, if
    /// it is about content of the request, and of this response otherwise. If some of a response
    /// was sent to the client already, that is cut.
    Respond(Box<LocalResponse>),
}

/// A piece of content, and the room for what is made of it.
#[derive(Debug)]
pub struct Piece<'p> {
    input: &'p [u8],
    is_last: bool,
    output: &'p mut Vec<u8>,
    room: usize,
    taken: usize,
}

impl<'p> Piece<'p> {
    /// The content `input`, which nothing follows if it `is_last`; of what is made of it `room`
    /// bytes are appended to `output`, and not more than [`PIECE_BYTES_MAX`].
    pub fn new(input: &'p [u8], is_last: bool, output: &'p mut Vec<u8>, room: usize) -> Self {
        Self {
            input,
            is_last,
            output,
            room: room.min(PIECE_BYTES_MAX),
            taken: 0,
        }
    }

    /// The content that was not taken yet.
    #[must_use]
    pub fn input(&self) -> &'p [u8] {
        &self.input[self.taken..]
    }

    /// Whether no content follows [`Self::input`].
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Takes the first `bytes` of the input, or all if it has fewer.
    pub fn take(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.input.len());
    }

    /// Bytes that can be put out at this call.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.room
    }

    /// Puts out content: as many of its first bytes as there is room for. How many.
    pub fn put(&mut self, content: &[u8]) -> usize {
        let count = content.len().min(self.room);
        self.output.extend_from_slice(&content[..count]);
        self.room -= count;
        count
    }

    /// Takes and puts out at most `bytes` of the input, as they are. How many.
    pub fn pass(&mut self, bytes: usize) -> usize {
        let input = self.input();
        let count = self.put(&input[..bytes.min(input.len())]);
        self.take(count);
        count
    }

    /// Bytes of the input that were taken.
    #[must_use]
    pub const fn taken(&self) -> usize {
        self.taken
    }
}

/// Why the content of a message is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformError {
    /// The request or the response has `no-transform` (RFC 9111 §5.2.1.6, §5.2.2.6).
    NoTransform,
    /// It is a part of a representation: status 206 (RFC 9110 §15.3.7).
    Part,
    /// It has a content coding that cannot be undone.
    Coding,
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTransform => "the message has the directive no-transform",
            Self::Part => "the content is a part of a representation",
            Self::Coding => "the content has a coding that is not known here",
        })
    }
}

impl core::error::Error for TransformError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piece_takes_no_more_than_its_input_and_puts_no_more_than_its_room() {
        let mut output = b"before".to_vec();
        let mut piece = Piece::new(b"content", false, &mut output, 4);
        assert_eq!((piece.room(), piece.is_last()), (4, false));
        assert_eq!(piece.pass(3), 3);
        assert_eq!(piece.input(), b"tent");
        assert_eq!(piece.put(b"xyz"), 1);
        assert_eq!(piece.put(b"yz"), 0);
        assert_eq!(piece.pass(1), 0);
        piece.take(9);
        assert_eq!((piece.input(), piece.taken()), (&b""[..], 7));
        assert_eq!(output, b"beforeconx");
    }

    #[test]
    fn piece_has_room_for_64_kib_at_most() {
        let mut output = Vec::new();
        let mut piece = Piece::new(b"", true, &mut output, usize::MAX);
        assert_eq!(piece.put(&[0; PIECE_BYTES_MAX + 1]), PIECE_BYTES_MAX);
    }
}
