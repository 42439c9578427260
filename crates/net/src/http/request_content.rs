//! The content of a request, as it is received from the client.

mod replay_buffer;

use self::replay_buffer::ReplayBuffer;
#[cfg(feature = "multiplexed-double")]
use super::double::DoubleContent;
use super::http1::Http1Content;
use super::http2::Http2Content;
use super::received_content::{ContentError, ReceivedContent};
use crate::filter::{ContentFilter, RequestFilter};
use std::task::{Context, Poll, ready};
use weir_wire::{BodyError, BodyLength};

/// The content of a request.
pub struct RequestContent<'c> {
    pub(super) kind: Kind<'c>,
    stage: Option<Box<Stage>>,
}

/// What the content passes on its way to its reader.
enum Stage {
    /// A filter that may change it.
    Filter(RequestFilter),
    /// A copy is kept of it.
    Replay(ReplayBuffer),
}

pub(super) enum Kind<'c> {
    /// On an HTTP/1.1 connection.
    Http1(Http1Content<'c>),
    /// On a stream of HTTP/2.
    Http2(Http2Content),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleContent),
}

impl<'c> RequestContent<'c> {
    pub(super) const fn http1(content: Http1Content<'c>) -> Self {
        Self {
            kind: Kind::Http1(content),
            stage: None,
        }
    }

    pub(super) const fn http2(content: Http2Content) -> Self {
        Self {
            kind: Kind::Http2(content),
            stage: None,
        }
    }

    #[cfg(feature = "multiplexed-double")]
    pub(super) const fn double(content: DoubleContent) -> Self {
        Self {
            kind: Kind::Double(content),
            stage: None,
        }
    }

    /// Has the content pass `filter`, from the bytes `received` on, which were received and are not
    /// used; they are the last of it if it `is_last`. What is counted is what the client sends;
    /// there is no trailer section.
    pub fn set_filter(&mut self, filter: Box<dyn ContentFilter>, received: Vec<u8>, is_last: bool) {
        let filter = RequestFilter::new(filter, received, is_last);
        self.stage = Some(Box::new(Stage::Filter(filter)));
    }

    /// Keeps what is received from now on, as long as it is not too much, to be given again: not of
    /// content that passes a filter, or has begun to be received without being kept.
    pub fn keep_for_replay(&mut self) {
        if self.stage.is_none() && !self.is_begun() {
            self.stage = Some(Box::new(Stage::Replay(ReplayBuffer::default())));
        }
    }

    /// Has all of it be received again, from its beginning; `false` if it was not kept.
    pub fn rewind(&mut self) -> bool {
        match self.stage.as_deref_mut() {
            Some(Stage::Replay(buffer)) => buffer.rewind(),
            Some(Stage::Filter(_)) | None => false,
        }
    }

    /// How long it is as the client sends it, and how it is framed on HTTP/1.1.
    #[must_use]
    pub fn length(&self) -> BodyLength {
        of_client_kind!(&self.kind, content => content.length())
    }

    /// Checks the content received with the request head, and keeps it: so nothing of a request
    /// with invalid content is sent to a next hop.
    ///
    /// # Errors
    ///
    /// Its framing is not valid.
    pub fn check_received(&self) -> Result<(), BodyError> {
        of_client_kind!(&self.kind, content => content.check_received())
    }

    /// Drops unused content, so that the connection can carry another request: receives at most
    /// `left` bytes, and subtracts them from it. Ready with whether all of it was received. Where
    /// streams share a connection nothing has to be done.
    pub fn poll_settle(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        left: &mut usize,
    ) -> Poll<bool> {
        match &mut self.kind {
            Kind::Http1(content) => content.poll_settle(cx, scratch, left),
            Kind::Http2(_) => Poll::Ready(true),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => Poll::Ready(true),
        }
    }

    /// Receives content once and appends it to `into`; `scratch` is memory to read into. Through a
    /// filter that may be nothing, though some was received.
    ///
    /// # Errors
    ///
    /// There is no more of it, and it is not whole.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        into: &mut Vec<u8>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        let kind = &mut self.kind;
        match self.stage.as_deref_mut() {
            None => of_client_kind!(kind, content => content.poll_receive(cx, scratch, into)),
            Some(Stage::Filter(filter)) => kind.poll_filtered(filter, cx, scratch, into),
            Some(Stage::Replay(buffer)) => buffer.poll_receive(
                into,
                |into| of_client_kind!(kind, content => content.poll_receive(cx, scratch, into)),
            ),
        }
    }

    /// So many bytes of what was received are used: the client may send as many more. HTTP/1.1 has
    /// no such signal; there it is reading less that holds a client back. With a filter, what it
    /// takes is used.
    pub fn consumed(&mut self, bytes: usize) {
        let bytes = match self.stage.as_deref_mut() {
            None => bytes,
            Some(Stage::Filter(_)) => return,
            Some(Stage::Replay(buffer)) => buffer.consumed(bytes),
        };
        of_client_kind!(&mut self.kind, content => content.consumed(bytes));
    }

    /// The trailer section, as field lines with CRLF; empty before the end.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match self.stage.as_deref() {
            Some(Stage::Filter(_)) => &[],
            Some(Stage::Replay(_)) | None => {
                of_client_kind!(&self.kind, content => content.trailers())
            }
        }
    }

    /// Whether some of it was received.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        of_client_kind!(&self.kind, content => content.is_begun())
    }

    /// Whether all of it was received, or there is none.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        of_client_kind!(&self.kind, content => content.is_ended())
    }

    /// Bytes that were read from the connection for it.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        of_client_kind!(&self.kind, content => content.read_bytes())
    }

    /// Bytes of it that were received, with framing.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        of_client_kind!(&self.kind, content => content.received_bytes())
    }

    /// Bytes of it that were received, without framing.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        of_client_kind!(&self.kind, content => content.content_bytes())
    }
}

impl Kind<'_> {
    /// Has the filter put out what it can; receives once if it needs content.
    fn poll_filtered(
        &mut self,
        filter: &mut RequestFilter,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        into: &mut Vec<u8>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        let put = ready!(filter.poll_put(cx, into))?;
        of_client_kind!(&mut *self, content => content.consumed(put.used));
        if let Some(received) = put.received {
            return Poll::Ready(Ok(received));
        }
        let receiving = filter.received();
        let received =
            of_client_kind!(self, content => content.poll_receive(cx, scratch, receiving));
        filter.note(ready!(received)?);
        // the content that came is put out at the next call
        Poll::Ready(Ok(ReceivedContent::More))
    }
}
