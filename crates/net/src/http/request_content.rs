//! The content of a request, as it is received from the client.

#[cfg(feature = "multiplexed-double")]
use super::double::DoubleContent;
use super::http1::Http1Content;
use super::received_content::{ContentError, ReceivedContent};
use std::task::{Context, Poll};
use weir_wire::{BodyError, BodyLength};

/// The content of a request.
pub enum RequestContent<'c> {
    /// On an HTTP/1.1 connection.
    Http1(Http1Content<'c>),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleContent),
}

impl RequestContent<'_> {
    /// How long it is, and how it is framed on HTTP/1.1.
    #[must_use]
    pub fn length(&self) -> BodyLength {
        of_kind!(self, content => content.length())
    }

    /// Checks the content received with the request head, and keeps it: so nothing of a request
    /// with invalid content is sent to a next hop.
    ///
    /// # Errors
    ///
    /// Its framing is not valid.
    pub fn check_received(&self) -> Result<(), BodyError> {
        of_kind!(self, content => content.check_received())
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
        match self {
            Self::Http1(content) => content.poll_settle(cx, scratch, left),
            #[cfg(feature = "multiplexed-double")]
            Self::Double(_) => Poll::Ready(true),
        }
    }

    /// Receives content once and appends it to `into`; `scratch` is memory to read into.
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
        of_kind!(self, content => content.poll_receive(cx, scratch, into))
    }

    /// So many bytes of what was received are used: the client may send as many more. HTTP/1.1 has
    /// no such signal; there it is reading less that holds a client back.
    pub fn consumed(&mut self, bytes: usize) {
        of_kind!(self, content => content.consumed(bytes));
    }

    /// The trailer section, as field lines with CRLF; empty before the end.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        of_kind!(self, content => content.trailers())
    }

    /// Whether some of it was received.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        of_kind!(self, content => content.is_begun())
    }

    /// Whether all of it was received, or there is none.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        of_kind!(self, content => content.is_ended())
    }

    /// Bytes that were read from the connection for it.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        of_kind!(self, content => content.read_bytes())
    }

    /// Bytes of it that were received, with framing.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        of_kind!(self, content => content.received_bytes())
    }

    /// Bytes of it that were received, without framing.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        of_kind!(self, content => content.content_bytes())
    }
}
