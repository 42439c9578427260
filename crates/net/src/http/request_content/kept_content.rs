//! Content of a request that is kept while it is sent, so that it can be sent again.

use crate::http::received_content::{ContentError, ReceivedContent};
use std::task::{Poll, ready};

/// Content of more bytes is not kept: forms and calls of an API mostly have less, and there may be
/// as many requests as memory is planned for.
const KEPT_BYTES_MAX: usize = 8 * 1024;

/// All of the content that was received so far.
#[derive(Debug, Default)]
pub(super) struct KeptContent {
    bytes: Vec<u8>,
    /// It is all that there is.
    is_whole: bool,
    /// How much of it was given since [`Self::rewind`].
    given: usize,
    /// How much of that its taker has used.
    used: usize,
    /// How much the client knows to be used.
    told: usize,
    /// There is more than is kept: it cannot be given again.
    is_too_much: bool,
}

impl KeptContent {
    /// Has all of it be given again from the beginning; `false` if it cannot be.
    pub(super) fn rewind(&mut self) -> bool {
        (self.given, self.used) = (0, 0);
        !self.is_too_much
    }

    /// Appends what is to be given next: what is kept, then what `receive` appends to `into`.
    pub(super) fn poll_give(
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
        self.is_too_much |= self.bytes.len() + (into.len() - before) > KEPT_BYTES_MAX;
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
        let new = self.used.saturating_sub(self.told);
        self.told += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given when `bytes` are received with that.
    fn give(kept: &mut KeptContent, bytes: &[u8], end: ReceivedContent) -> (Vec<u8>, bool) {
        let mut into = b"before ".to_vec();
        let given = kept.poll_give(&mut into, |into| {
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
        let mut kept = KeptContent::default();
        assert_eq!(give(&mut kept, b"abc", More), (b"abc".to_vec(), false));
        assert_eq!(kept.consumed(3), 3);
        assert_eq!(give(&mut kept, b"de", More), (b"de".to_vec(), false));
        // of which nothing was used
        assert!(kept.rewind());
        assert_eq!(give(&mut kept, b"no", More), (b"abcde".to_vec(), false));
        assert_eq!(kept.consumed(5), 2);
        assert_eq!(give(&mut kept, b"f", Whole), (b"f".to_vec(), true));
        assert_eq!(kept.consumed(1), 1);
        for _ in 0..2 {
            assert!(kept.rewind());
            assert_eq!(give(&mut kept, b"no", More), (b"abcdef".to_vec(), true));
            assert_eq!(kept.consumed(6), 0);
        }
    }

    #[test]
    fn content_without_a_byte_is_given_again_as_whole() {
        let mut kept = KeptContent::default();
        let whole = (Vec::new(), true);
        assert_eq!(give(&mut kept, b"", ReceivedContent::Whole), whole);
        assert!(kept.rewind());
        assert_eq!(give(&mut kept, b"no", ReceivedContent::More), whole);
    }

    #[test]
    fn content_that_is_too_much_is_given_once_and_not_kept() {
        let mut kept = KeptContent::default();
        let most = vec![b'a'; KEPT_BYTES_MAX];
        assert_eq!(give(&mut kept, &most, ReceivedContent::More).0, most);
        assert_eq!(give(&mut kept, b"b", ReceivedContent::More).0, b"b");
        assert_eq!(give(&mut kept, b"c", ReceivedContent::Whole).0, b"c");
        assert_eq!(kept.consumed(KEPT_BYTES_MAX + 2), KEPT_BYTES_MAX + 2);
        assert!(kept.bytes.is_empty() && !kept.rewind());
    }
}
