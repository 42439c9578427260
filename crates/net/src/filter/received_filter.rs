//! The content of a response that is changed as it is received.

use super::content_filter::{ContentFilter, Filtering};
use crate::http::{ContentCut, ContentEnd, ContentRead};
use std::ops::ControlFlow;
use std::task::{Context, Poll};

/// A filter, and the content received that it did not take yet: no more is received meanwhile.
pub(crate) struct ReceivedFilter {
    filtering: Filtering,
    received: Vec<u8>,
    used: usize,
    /// All content was received.
    is_last: bool,
    /// It has said that it can do nothing with what it has. A filter that has taken all content may
    /// wait for something else, and must be polled for that.
    is_idle: bool,
}

impl ReceivedFilter {
    /// The filter for content of which `received` was received, and all of it if it `is_last`.
    pub(crate) fn new(filter: Box<dyn ContentFilter>, received: Vec<u8>, is_last: bool) -> Self {
        Self {
            filtering: Filtering::new(filter),
            received,
            used: 0,
            is_last,
            is_idle: false,
        }
    }

    /// Keeps content that was received.
    pub(crate) fn keep(&mut self, content: &[u8]) {
        if !self.filtering.is_whole() {
            self.received.extend_from_slice(content);
            self.is_idle &= content.is_empty();
        }
    }

    /// Content was received as `read` says; what is to be reported of it.
    pub(crate) fn note(&mut self, read: ContentRead) -> ContentRead {
        self.is_last |= read.end == ContentEnd::Whole;
        let end = match read.end {
            ContentEnd::Whole if !self.is_used_up() => ContentEnd::More,
            end => end,
        };
        ContentRead { end, ..read }
    }

    /// Whether content must be received before it can put out more.
    pub(crate) fn needs_content(&self) -> bool {
        let is_used = self.used == self.received.len() && self.filtering.rest().is_empty();
        is_used && self.is_idle && !self.is_last
    }

    /// Whether all of it was put out, and used.
    fn is_used_up(&self) -> bool {
        self.is_last && self.filtering.is_whole() && self.filtering.rest().is_empty()
    }

    /// Gives at most `most` bytes of changed content to `take`. The result counts no bytes as
    /// received.
    pub(crate) fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        mut take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        let input = match &self.received[self.used..] {
            [] if self.is_last => None,
            rest => Some(rest),
        };
        match self.filtering.poll_fill(cx, input) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(_)) => return Poll::Ready(Err(ContentCut::Filter)),
            Poll::Ready(Ok(taken)) => {
                self.used += taken;
                self.is_idle = taken == 0 && self.filtering.rest().is_empty();
            }
        }
        if self.used == self.received.len() || self.filtering.is_whole() {
            self.received.clear();
            self.used = 0;
        }
        let rest = self.filtering.rest();
        let count = rest.len().min(most);
        let flow = match count {
            0 => ControlFlow::Continue(()),
            count => take(cx, &rest[..count]),
        };
        self.filtering.advance(count);
        let end = match flow {
            ControlFlow::Break(()) => ContentEnd::Stopped,
            ControlFlow::Continue(()) if self.is_used_up() => ContentEnd::Whole,
            ControlFlow::Continue(()) => ContentEnd::More,
        };
        Poll::Ready(Ok(ContentRead {
            bytes: 0,
            content_bytes: 0,
            end,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::content_filter::{FilterFailed, Filtered};
    use super::*;
    use std::task::Waker;

    /// Takes all content, and puts it out at the second poll after that.
    #[derive(Default)]
    struct Late {
        taken: Vec<u8>,
        has_waited: bool,
    }

    impl ContentFilter for Late {
        fn poll_filter(
            &mut self,
            _: &mut Context<'_>,
            input: Option<&[u8]>,
            out: &mut Vec<u8>,
        ) -> Poll<Result<Filtered, FilterFailed>> {
            let input = input.unwrap_or_default();
            let filtered = Filtered {
                taken: input.len(),
                is_whole: false,
            };
            if input.is_empty() && !self.taken.is_empty() {
                if !self.has_waited {
                    self.has_waited = true;
                    return Poll::Pending;
                }
                out.append(&mut self.taken);
            }
            self.taken.extend_from_slice(input);
            Poll::Ready(Ok(filtered))
        }
    }

    #[test]
    fn filter_that_waits_is_polled_before_more_content_is_received() {
        let mut filter = ReceivedFilter::new(Box::<Late>::default(), Vec::new(), false);
        let mut cx = Context::from_waker(Waker::noop());
        let mut put = |filter: &mut ReceivedFilter| {
            let mut got = Vec::new();
            let polled = filter.poll_put(&mut cx, 100, |_, content| {
                got.extend_from_slice(content);
                ControlFlow::Continue(())
            });
            (polled.is_ready(), got)
        };
        assert_eq!(put(&mut filter), (true, Vec::new()));
        assert!(filter.needs_content());
        filter.keep(b"abc");
        assert_eq!(put(&mut filter), (true, Vec::new()));
        assert!(!filter.needs_content());
        assert_eq!(put(&mut filter), (false, Vec::new()));
        assert!(!filter.needs_content());
        assert_eq!(put(&mut filter), (true, b"abc".to_vec()));
        assert_eq!(put(&mut filter), (true, Vec::new()));
        assert!(filter.needs_content());
    }
}
