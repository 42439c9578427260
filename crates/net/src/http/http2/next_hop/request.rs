//! A request to a next hop on a stream of HTTP/2.

use super::head::{self, Place};
use super::protocol_error::HopProtocolError;
use super::stream::{Halves, StreamPlace, StreamState};
use crate::http::http2::piece::{Offer, Piece, STREAM_BYTES_MAX, SendQueue};
use crate::http::http2::stream_capacity::{copied, io_error, poll_queue_room, poll_window};
use crate::next_hops::SpentLink;
use bytes::Bytes;
use h2::SendStream;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_semantics::Urgency;
use weir_wire::BodyLength;

/// How far a request was sent.
#[derive(Default)]
pub(super) struct Sending {
    /// The head, until it is sent.
    head: Vec<u8>,
    /// Bytes of content that wait for the socket.
    queued: Rc<Cell<usize>>,
    is_ended: bool,
    sent_bytes: u64,
    /// Why no head can be sent, if the next hop has broken the protocol before.
    malformed: Option<HopProtocolError>,
}

impl Sending {
    /// No more is sent: it does not wait for room any more.
    pub(super) fn forget(&self, queue: &SendQueue) {
        queue.forget(&self.queued);
    }
}

/// Sends one request on a stream of HTTP/2.
pub struct Http2Request<'a> {
    state: &'a mut Sending,
    stream: &'a StreamState,
    place: &'a StreamPlace,
}

impl<'a> Http2Request<'a> {
    pub(super) fn new(
        state: &'a mut Sending,
        stream: &'a StreamState,
        place: &'a StreamPlace,
    ) -> Self {
        Self {
            state,
            stream,
            place,
        }
    }

    /// Content is framed by the stream. A switch of protocols is not requested on one.
    pub(crate) fn begin(&mut self, head: Vec<u8>, _content: BodyLength, _upgrade: bool) {
        self.stream.is_head.set(head.starts_with(b"HEAD "));
        self.state.head = head;
    }

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let offered: usize = content.iter().map(|piece| piece.len()).sum();
        if !self.state.head.is_empty() {
            let ends = offered == 0 && end.is_some();
            self.send_head(ends)?;
        }
        if self.state.is_ended {
            return Poll::Ready(Ok(offered));
        }
        let halves = &mut *self.stream.halves.borrow_mut();
        let Some(stream) = &mut halves.request else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        let count = match offered {
            0 => 0,
            offered => ready!(poll_room(self.state, self.place, stream, cx, offered))?,
        };
        // without the trailer section, as RFC 9110 §6.5.1 permits: nginx ends the connection for
        // one, and all other requests that it carries
        let ends = end.is_some() && count == offered;
        if count > 0 || ends {
            let queue = &self.place.connection.shared.queue;
            let piece = Piece::new(
                copied(content, count),
                queue,
                (Urgency::default(), &self.state.queued),
            );
            stream.send_data(piece, ends).map_err(io_error)?;
            self.state.sent_bytes += count as u64;
        }
        self.state.is_ended |= ends;
        Poll::Ready(Ok(count))
    }

    fn send_head(&mut self, ends: bool) -> io::Result<()> {
        let text = Bytes::from(std::mem::take(&mut self.state.head));
        let connection = &self.place.connection;
        // nothing was sent: it is safe to be sent again
        self.stream.is_unprocessed.set(true);
        let mut sender = connection.sender().ok_or(io::ErrorKind::NotConnected)?;
        let authority = connection.hop.to_string();
        let place = Place {
            is_tls: connection.hop.tls.is_some(),
            authority: &authority,
        };
        let Some(request) = head::request(&text, place) else {
            self.stream.is_unprocessed.set(false);
            return Err(io::Error::other("a head that HTTP/2 does not have"));
        };
        let (response, stream) = sender.send_request(request, ends).map_err(|error| {
            self.state.malformed = HopProtocolError::of(&error);
            io_error(error)
        })?;
        self.stream.is_unprocessed.set(false);
        self.state.is_ended = ends;
        self.state.sent_bytes += text.len() as u64;
        let Halves {
            request,
            response: answer,
            waits,
        } = &mut *self.stream.halves.borrow_mut();
        *request = Some(stream);
        *answer = Some(response);
        if let Some(waker) = waits.take() {
            waker.wake();
        }
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(crate) const fn link_spent(&self) -> Option<SpentLink> {
        None
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(crate) const fn is_held_back(&self) -> bool {
        false
    }

    pub(crate) fn protocol_error(&self) -> Option<HopProtocolError> {
        let shared = &self.place.connection.shared;
        shared.protocol_error(self.state.malformed)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.is_ended
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.state.sent_bytes
    }
}

/// How many of `offered` bytes can be sent.
fn poll_room(
    state: &Sending,
    place: &StreamPlace,
    stream: &mut SendStream<Piece>,
    cx: &mut Context<'_>,
    offered: usize,
) -> Poll<io::Result<usize>> {
    let queue = &place.connection.shared.queue;
    let offer = Offer::of_equals(&state.queued, STREAM_BYTES_MAX);
    let room = ready!(poll_queue_room(queue, cx, stream, offered, offer))?;
    poll_window(cx, stream, room)
}
