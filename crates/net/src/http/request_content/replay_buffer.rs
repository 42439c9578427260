//! Content of a request that is kept while it is sent, so that it can be sent again.

use crate::http::received_content::{ContentError, ReceivedContent};
use std::task::{Poll, ready};

/// Content of more bytes is not kept: forms and calls of an API mostly have less, and there may be
/// as many requests as memory is planned for.
const REPLAY_BYTES_MAX: usize = 8 * 1024;

/// All of the content that was received so far.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    bytes: Vec<u8>,
    /// It is all that there is.
    is_whole: bool,
    /// How much of it was given since [`Self::rewind`].
    given: usize,
    /// How much of that its taker has used.
    used: usize,
    /// How much the client knows to be used.
    released: usize,
    /// There is more than is kept: it cannot be given again.
    is_too_much: bool,
}

impl ReplayBuffer {
    /// Has all of it be given again from the beginning; `false` if it cannot be.
    pub(super) fn rewind(&mut self) -> bool {
        (self.given, self.used) = (0, 0);
        !self.is_too_much
    }

    /// Appends what is to be given next: what is kept, then what `receive` appends to `into`.
    pub(super) fn poll_receive(
        &mut self,
        into: &mut Vec<u8>,
        receive: impl FnOnce(&mut Vec<u8>) -> Poll<Result<ReceivedContent, ContentError>>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        if self.given < self.bytes.len() || self.is_whole {
            into.extend_from_slice(&self.bytes[self.given..]);
            self.given = self.bytes.len();
            return Poll::Ready(Ok(match self.is_whole {
                true => ReceivedContent::Whole,
                false => ReceivedContent::More,
            }));
        }
        let before = into.len();
        let received = ready!(receive(into))?;
        self.is_too_much |= self.bytes.len() + (into.len() - before) > REPLAY_BYTES_MAX;
        if self.is_too_much {
            self.bytes = Vec::new();
            self.given = 0;
        } else {
            self.bytes.extend_from_slice(&into[before..]);
            self.given = self.bytes.len();
            self.is_whole = received == ReceivedContent::Whole;
        }
        Poll::Ready(Ok(received))
    }

    /// So many more bytes that were given are used: how many of these the client does not know of.
    pub(super) fn consumed(&mut self, bytes: usize) -> usize {
        self.used += bytes;
        let new = self.used.saturating_sub(self.released);
        self.released += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given when `bytes` are received with that.
    fn give(buffer: &mut ReplayBuffer, bytes: &[u8], end: ReceivedContent) -> (Vec<u8>, bool) {
        let mut into = b"before ".to_vec();
        let given = buffer.poll_receive(&mut into, |into| {
            into.extend_from_slice(bytes);
            Poll::Ready(Ok(end))
        });
        let Poll::Ready(Ok(end)) = given else {
            panic!("{given:?}")
        };
        (into.split_off(7), end == ReceivedContent::Whole)
    }

    #[test]
    fn content_is_given_again_from_its_beginning_and_counted_as_used_once() {
        use ReceivedContent::{More, Whole};
        let mut buffer = ReplayBuffer::default();
        assert_eq!(give(&mut buffer, b"abc", More), (b"abc".to_vec(), false));
        assert_eq!(buffer.consumed(3), 3);
        assert_eq!(give(&mut buffer, b"de", More), (b"de".to_vec(), false));
        // of which nothing was used
        assert!(buffer.rewind());
        assert_eq!(give(&mut buffer, b"no", More), (b"abcde".to_vec(), false));
        assert_eq!(buffer.consumed(5), 2);
        assert_eq!(give(&mut buffer, b"f", Whole), (b"f".to_vec(), true));
        assert_eq!(buffer.consumed(1), 1);
        for _ in 0..2 {
            assert!(buffer.rewind());
            assert_eq!(give(&mut buffer, b"no", More), (b"abcdef".to_vec(), true));
            assert_eq!(buffer.consumed(6), 0);
        }
    }

    #[test]
    fn content_without_a_byte_is_given_again_as_whole() {
        let mut buffer = ReplayBuffer::default();
        let whole = (Vec::new(), true);
        assert_eq!(give(&mut buffer, b"", ReceivedContent::Whole), whole);
        assert!(buffer.rewind());
        assert_eq!(give(&mut buffer, b"no", ReceivedContent::More), whole);
    }

    #[test]
    fn content_that_is_too_much_is_given_once_and_not_kept() {
        let mut buffer = ReplayBuffer::default();
        let most = vec![b'a'; REPLAY_BYTES_MAX];
        assert_eq!(give(&mut buffer, &most, ReceivedContent::More).0, most);
        assert_eq!(give(&mut buffer, b"b", ReceivedContent::More).0, b"b");
        assert_eq!(give(&mut buffer, b"c", ReceivedContent::Whole).0, b"c");
        assert_eq!(buffer.consumed(REPLAY_BYTES_MAX + 2), REPLAY_BYTES_MAX + 2);
        assert!(buffer.bytes.is_empty() && !buffer.rewind());
    }
}
