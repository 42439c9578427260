//! A whole response that was made at once, as HTTP/1.1 has it.

use super::connection::Http2Stream;
use super::recent_responses;
use super::response::Http2Response;
use crate::workers::ResetBudget;
use bytes::Bytes;
use h2::RecvStream;
use std::io;
use std::task::{Context, Poll};

/// A whole response on its way to the client. It is sent without a task of its own as long as the
/// windows and the queue have room; its head and content are not copied.
pub struct Http2Answer {
    response: Http2Response,
    /// Content of the request, which is not read.
    _content: RecvStream,
    text: Bytes,
    /// How long the head is.
    head_bytes: usize,
    /// Content that was not sent yet; `None`: nor was the head.
    unsent: Option<Bytes>,
}

impl Http2Answer {
    /// `text` is a head of so many bytes and its content, as HTTP/1.1 has them.
    #[must_use]
    pub fn new(stream: Http2Stream, text: Vec<u8>, head_bytes: usize) -> Self {
        let (content, response) = stream.into_parts();
        Self {
            response,
            _content: content,
            text: text.into(),
            head_bytes,
            unsent: None,
        }
    }

    /// Sends what can be sent; ready when that is all. It may be polled by a task and later by
    /// another.
    ///
    /// # Errors
    ///
    /// The client has reset the stream, or left its window closed for too long, or the connection
    /// has ended.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut unsent = match self.unsent.take() {
            Some(unsent) => unsent,
            None => self.send_head()?,
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
            self.response.send_piece(piece, unsent.is_empty())?;
        }
        self.unsent = Some(unsent);
        self.response.complete();
        Poll::Ready(Ok(()))
    }

    /// Sends the head; returns the content.
    fn send_head(&mut self) -> io::Result<Bytes> {
        let text = &self.text;
        let read = recent_responses::response(text, self.head_bytes);
        let end = self.response.send_final(read, |end| end == text.len())?;
        Ok(text.slice(end..))
    }

    /// The head and the content, as HTTP/1.1 has them.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// A reset of the stream counts for `client`, too: its connection has requests of several.
    pub fn count_resets_for(&mut self, client: ResetBudget) {
        self.response.count_resets_for(client);
    }

    /// Whether its content waits for that of others, which are more urgent.
    #[must_use]
    pub fn is_behind_others(&self) -> bool {
        self.response.is_behind_others()
    }

    /// Bytes of the head and of content that were sent.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.response.sent_bytes()
    }
}
