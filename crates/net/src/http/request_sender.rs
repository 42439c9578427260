//! The way of a request to the next hop.

#[cfg(feature = "multiplexed-double")]
use super::double::DoubleExchange;
use super::http1::Http1Request;
use super::http2::next_hop::{HopProtocolError, Http2Request};
use crate::next_hops::SpentLink;
use std::io;
use std::task::{Context, Poll};
use weir_wire::BodyLength;

/// Sends one request: its head, content, trailers.
pub enum RequestSender<'a> {
    /// On an HTTP/1.1 connection.
    Http1(Http1Request<'a>),
    /// On a stream of HTTP/2.
    Http2(Http2Request<'a>),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleExchange),
}

impl RequestSender<'_> {
    /// Queues the head: `head` is a request line and end-to-end fields, each with CRLF. With
    /// `upgrade` the head requests to switch protocols by its fields (RFC 9110 §7.8).
    pub fn begin(&mut self, head: Vec<u8>, content: BodyLength, upgrade: bool) {
        of_kind!(self, request => request.begin(head, content, upgrade));
    }

    /// Sends what is queued, then of `content` as much as the next hop has room for. The caller
    /// offers again what was not accepted. `end` has the trailer section (empty if there is none)
    /// once nothing follows `content`.
    ///
    /// Ready with how many bytes of `content` were accepted: at least one, if there is content.
    /// Ready with 0 when everything queued is sent.
    ///
    /// # Errors
    ///
    /// The next hop takes no more.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        of_kind!(self, request => request.poll_send(cx, content, end))
    }

    /// The link that its connection leads over, if that has spent its quota: an error was none of
    /// the next hop.
    #[must_use]
    pub fn link_spent(&self) -> Option<SpentLink> {
        of_kind!(self, request => request.link_spent())
    }

    /// Whether it waits for the link that its connection leads over, and not for the next hop.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        of_kind!(self, request => request.is_held_back())
    }

    /// How the next hop has broken HTTP/2 before the head was sent, if it has.
    #[must_use]
    pub fn protocol_error(&self) -> Option<HopProtocolError> {
        match self {
            Self::Http2(request) => request.protocol_error(),
            _ => None,
        }
    }

    /// Whether all of the request, its end included, is sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        of_kind!(self, request => request.is_complete())
    }

    /// Bytes sent, head and framing included.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        of_kind!(self, request => request.sent_bytes())
    }
}
