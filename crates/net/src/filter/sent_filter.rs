//! The content of a response that is changed as it is sent.

use super::content_filter::{ContentFilter, FilterFailed, Filtering};
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

/// Pieces that are put out before they are sent: together in one write, as each write wakes up the
/// client. A piece has at most 64 KiB: with what modules hold without a charge that makes the
/// 256 KiB which the content of a message takes at most.
pub(crate) const SENT_PIECES_MAX: usize = 3;

/// A filter, and what it has put out to be sent.
pub(crate) struct SentFilter {
    filtering: Filtering,
    /// At most [`SENT_PIECES_MAX`], and none of them empty.
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first one that were sent.
    used: usize,
    /// The memory of pieces that were sent.
    spare: Vec<Vec<u8>>,
}

impl SentFilter {
    pub(crate) fn new(filter: Box<dyn ContentFilter>) -> Self {
        Self {
            filtering: Filtering::new(filter),
            pieces: VecDeque::new(),
            used: 0,
            spare: Vec::new(),
        }
    }

    /// Whether nothing is to be sent now.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether nothing more will be put out.
    pub(crate) const fn is_whole(&self) -> bool {
        self.filtering.is_whole()
    }

    /// Has the filter work on `content`, and on its end if it is all there `is_last`, until it has
    /// put out as much as is sent at once. How many bytes it took.
    ///
    /// While something is still to be sent, only the end is handed over: how much is taken ahead of
    /// the client does not depend on how much is sent at once.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        is_last: bool,
    ) -> Poll<Result<usize, FilterFailed>> {
        let mut pieces = content.iter().filter(|piece| !piece.is_empty());
        let mut rest: &[u8] = pieces.next().copied().unwrap_or_default();
        let mut taken = 0;
        let only_ends = rest.is_empty() && is_last;
        if !self.is_empty() && !only_ends {
            return Poll::Ready(Ok(0));
        }
        while !self.is_whole() && self.pieces.len() < SENT_PIECES_MAX {
            if rest.is_empty() {
                rest = pieces.next().copied().unwrap_or_default();
            }
            let input = (!rest.is_empty() || !is_last).then_some(rest);
            let filled = match self.poll_piece(cx, input) {
                Poll::Pending if taken > 0 || !self.is_empty() => break,
                filled => ready!(filled)?,
            };
            taken += filled.taken;
            rest = &rest[filled.taken..];
            if filled.taken == 0 && !filled.has_put {
                break;
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        input: Option<&[u8]>,
    ) -> Poll<Result<FilledPiece, FilterFailed>> {
        let filled = ready!(self.filtering.poll_fill(cx, input));
        if filled.is_err() {
            self.pieces.clear();
            self.used = 0;
        }
        let taken = filled?;
        let has_put = !self.filtering.rest().is_empty();
        if has_put {
            let spare = self.spare.pop().unwrap_or_default();
            let piece = self.filtering.replace_out(spare);
            self.pieces.push_back(piece);
        }
        Poll::Ready(Ok(FilledPiece { taken, has_put }))
    }

    /// What is to be sent now; none of it is empty but those behind the last.
    pub(crate) fn pieces(&self) -> [&[u8]; SENT_PIECES_MAX] {
        let mut pieces = [&[][..]; SENT_PIECES_MAX];
        for (piece, put) in pieces.iter_mut().zip(&self.pieces) {
            *piece = put;
        }
        pieces[0] = &pieces[0][self.used..];
        pieces
    }

    /// So many bytes of it were sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.used += bytes;
        while let Some(first) = self.pieces.front()
            && self.used >= first.len()
        {
            self.used -= first.len();
            if let Some(mut sent) = self.pieces.pop_front() {
                sent.clear();
                self.spare.push(sent);
            }
        }
    }
}

/// What a filter did once.
struct FilledPiece {
    taken: usize,
    has_put: bool,
}

#[cfg(test)]
mod tests {
    use super::super::content_filter::Filtered;
    use super::*;
    use std::task::Waker;

    /// Passes at most so many bytes at each call, and fails at a byte of this value.
    struct Passing(usize, Option<u8>);

    impl ContentFilter for Passing {
        fn poll_filter(
            &mut self,
            _: &mut Context<'_>,
            input: Option<&[u8]>,
            out: &mut Vec<u8>,
        ) -> Poll<Result<Filtered, FilterFailed>> {
            assert!(out.is_empty());
            let content = input.unwrap_or_default();
            let content = &content[..content.len().min(self.0)];
            if self.1.is_some_and(|byte| content.contains(&byte)) {
                return Poll::Ready(Err(FilterFailed));
            }
            out.extend_from_slice(content);
            Poll::Ready(Ok(Filtered {
                taken: content.len(),
                is_whole: input.is_none(),
            }))
        }
    }

    fn fill(
        filter: &mut SentFilter,
        content: &[&[u8]],
        is_last: bool,
    ) -> Result<usize, FilterFailed> {
        let mut cx = Context::from_waker(Waker::noop());
        match filter.poll_fill(&mut cx, content, is_last) {
            Poll::Ready(filled) => filled,
            Poll::Pending => panic!("it is ready"),
        }
    }

    fn text(filter: &SentFilter) -> String {
        String::from_utf8(filter.pieces().concat()).expect("text")
    }

    #[test]
    fn pieces_are_put_out_together_up_to_their_number_and_sent_in_order() {
        let mut filter = SentFilter::new(Box::new(Passing(4, None)));
        let content = [&b"012345"[..], b"", b"67", b"89ab"];
        assert_eq!(fill(&mut filter, &content, true), Ok(8));
        assert_eq!(text(&filter), "01234567");
        // nothing more is taken before that is sent
        assert_eq!(fill(&mut filter, &[b"89ab"], true), Ok(0));
        filter.advance(5);
        assert_eq!(text(&filter), "567");
        assert_eq!(fill(&mut filter, &[b"89ab"], true), Ok(0));
        filter.advance(3);
        assert!(filter.is_empty() && !filter.is_whole());
        assert_eq!(fill(&mut filter, &[b"89ab"], true), Ok(4));
        assert!(filter.is_whole());
        assert_eq!(text(&filter), "89ab");
    }

    #[test]
    fn end_is_handed_over_while_content_is_still_to_be_sent() {
        let mut filter = SentFilter::new(Box::new(Passing(4, None)));
        assert_eq!(fill(&mut filter, &[b"0123"], false), Ok(4));
        assert_eq!(fill(&mut filter, &[], false), Ok(0));
        assert!(!filter.is_whole());
        assert_eq!(fill(&mut filter, &[], true), Ok(0));
        assert!(filter.is_whole());
        assert_eq!(text(&filter), "0123");
    }

    #[test]
    fn nothing_is_left_to_be_sent_once_the_filter_has_failed() {
        let mut filter = SentFilter::new(Box::new(Passing(4, Some(b'!'))));
        assert_eq!(fill(&mut filter, &[b"0123!"], false), Err(FilterFailed));
        assert!(filter.is_empty());
        assert_eq!(fill(&mut filter, &[b"4"], false), Err(FilterFailed));
    }
}
