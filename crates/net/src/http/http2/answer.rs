//! A whole response whose head was made at once, as HTTP/1.1 has it.

use super::connection::Http2Stream;
use super::recent_responses;
use super::response::Http2Response;
use crate::workers::ResetBudget;
use bytes::Bytes;
use h2::RecvStream;
use std::io;
use std::task::{Context, Poll, ready};

/// Content that follows the text of an answer, and is held elsewhere.
pub trait FurtherContent {
    /// Its bytes from one on, up to where a piece of it ends; at the end of all there are none.
    fn bytes_at(&self, at: u64) -> &[u8];

    /// The first `length` bytes of those, which stay as they are.
    fn share(&self, at: u64, length: usize) -> Bytes;
}

/// A whole response on its way to the client. It is sent without a task of its own as long as the
/// windows and the queue have room, and nothing of it is copied.
pub struct Http2Answer {
    response: Http2Response,
    /// Content of the request, which is not read.
    _content: RecvStream,
    text: Bytes,
    /// How long the head is.
    head_bytes: usize,
    /// Content of the text that was not sent yet; `None`: nor was the head.
    unsent: Option<Bytes>,
    /// Bytes that were sent of further content.
    further_bytes: u64,
}

impl Http2Answer {
    /// `text` is a head of so many bytes, as HTTP/1.1 has it, and its content or the first part of
    /// that.
    #[must_use]
    pub fn new(stream: Http2Stream, text: Vec<u8>, head_bytes: usize) -> Self {
        let (content, response) = stream.into_parts();
        Self {
            response,
            _content: content,
            text: text.into(),
            head_bytes,
            unsent: None,
            further_bytes: 0,
        }
    }

    /// Sends what can be sent; ready when that is all. It may be polled by a task and later by
    /// another. Behind the text comes the `further` content, if there is some.
    ///
    /// # Errors
    ///
    /// The client has reset the stream, or left its window closed for too long, or the connection
    /// has ended.
    pub fn poll_sent(
        &mut self,
        cx: &mut Context<'_>,
        further: Option<&impl FurtherContent>,
    ) -> Poll<io::Result<()>> {
        let is_last = further.is_none_or(|further| further.bytes_at(self.further_bytes).is_empty());
        let mut unsent = match self.unsent.take() {
            Some(unsent) => unsent,
            None => self.send_head(is_last)?,
        };
        while !unsent.is_empty() {
            let room = match self.response.poll_room(cx, unsent.len()) {
                Poll::Ready(room) => room?,
                Poll::Pending => {
                    self.unsent = Some(unsent);
                    return Poll::Pending;
                }
            };
            let piece = unsent.split_to(room);
            let ends = unsent.is_empty() && is_last;
            self.response.send_piece(piece, ends)?;
        }
        self.unsent = Some(unsent);
        if let Some(further) = further {
            ready!(self.poll_further(cx, further))?;
        }
        self.response.complete();
        Poll::Ready(Ok(()))
    }

    fn poll_further(
        &mut self,
        cx: &mut Context<'_>,
        further: &impl FurtherContent,
    ) -> Poll<io::Result<()>> {
        let mut left = further.bytes_at(self.further_bytes).len();
        while left > 0 {
            let room = ready!(self.response.poll_room(cx, left))?;
            let piece = further.share(self.further_bytes, room);
            self.further_bytes += room as u64;
            left = further.bytes_at(self.further_bytes).len();
            self.response.send_piece(piece, left == 0)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the head; returns the content of the text, which is all if that `is_last`.
    fn send_head(&mut self, is_last: bool) -> io::Result<Bytes> {
        let text = &self.text;
        let read = recent_responses::response(text, self.head_bytes);
        let ends = |end| is_last && end == text.len();
        let end = self.response.send_final(read, ends)?;
        Ok(text.slice(end..))
    }

    /// The head and the content behind it, as HTTP/1.1 has them.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text is not read any more: once it was sent, it is not held until all is.
    pub fn forget_sent(&mut self) {
        if self.unsent.as_ref().is_some_and(Bytes::is_empty) {
            self.text = Bytes::new();
        }
    }

    /// A reset of the stream counts for `client`, too: its connection has requests of several.
    pub fn count_resets_for(&mut self, client: ResetBudget) {
        self.response.count_resets_for(client);
    }

    /// Whether its content waits for that of others, which are more urgent, or for the socket, and
    /// not for its window.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.response.is_held_back()
    }

    /// Bytes of the head and of content that were sent.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.response.sent_bytes()
    }
}
