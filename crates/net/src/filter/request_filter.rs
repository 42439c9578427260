//! The content of a request that is changed as it is received.

use super::content_filter::{ContentFilter, Filtering};
use crate::http::{ContentError, ReceivedContent};
use std::task::{Context, Poll, ready};

/// A filter, and the content received that it did not take yet: no more is received meanwhile.
pub(crate) struct RequestFilter {
    filtering: Filtering,
    received: Vec<u8>,
    used: usize,
    /// All content was received.
    is_last: bool,
}

/// What a call of [`RequestFilter::poll_put`] came to.
pub(crate) struct Put {
    /// Bytes of the received content that are used now.
    pub(crate) used: usize,
    /// Whether content was put out, or has ended; `None` if content must be received first.
    pub(crate) received: Option<ReceivedContent>,
}

impl RequestFilter {
    /// The filter for content of which `received` was received, and all of it if it `is_last`.
    pub(crate) fn new(filter: Box<dyn ContentFilter>, received: Vec<u8>, is_last: bool) -> Self {
        Self {
            filtering: Filtering::new(filter),
            received,
            used: 0,
            is_last,
        }
    }

    /// Where content is received into, while [`Self::poll_put`] needs some.
    pub(crate) fn received(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    /// Content was received.
    pub(crate) fn note(&mut self, received: ReceivedContent) {
        self.is_last |= received == ReceivedContent::Whole;
    }

    /// Appends changed content to `into`: at most what the filter puts out at once.
    pub(crate) fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<Put, ContentError>> {
        let before = self.received.len() - self.used;
        let input = match &self.received[self.used..] {
            [] if self.is_last => None,
            rest => Some(rest),
        };
        let filled = ready!(self.filtering.poll_fill(cx, input));
        self.used += filled.map_err(|_| ContentError::Filter)?;
        // what comes behind its end is dropped, and still received: the request is as whole as it
        // is
        if self.used == self.received.len() || self.filtering.is_whole() {
            self.received.clear();
            self.used = 0;
        }
        let used = before - (self.received.len() - self.used);
        let rest = self.filtering.rest();
        let count = rest.len();
        into.extend_from_slice(rest);
        self.filtering.advance(count);
        let received = if self.is_last && self.filtering.is_whole() {
            Some(ReceivedContent::Whole)
        } else if count > 0 || used > 0 || self.is_last {
            Some(ReceivedContent::More)
        } else {
            None
        };
        Poll::Ready(Ok(Put { used, received }))
    }
}
