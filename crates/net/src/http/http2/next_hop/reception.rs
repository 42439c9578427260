//! A response from a next hop on a stream of HTTP/2.

use super::head::{self, Answered};
use super::protocol_error::HopProtocolError;
use super::stream::{StreamPlace, StreamState};
use crate::http::http2::head::trailers;
use crate::http::received_content::{ContentCut, ContentEnd, ContentRead};
use crate::http::received_head::{AcceptedHead, ReceivedBytes};
use crate::next_hops::SpentLink;
use bytes::Bytes;
use h2::{Reason, RecvStream};
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use weir_policy::connections::StreamRules;
use weir_semantics::NamedFields;
use weir_wire::{Arrival, BodyLength, HeadLimits};

/// The state of a response that is being received.
#[derive(Default)]
pub(super) struct Reception {
    /// Heads that were received and are not used, as HTTP/1.1 has them.
    bytes: Vec<u8>,
    arrival: Arrival,
    limits: HeadLimits,
    named: NamedFields,
    /// The content, once there is a final head.
    content: Option<RecvStream>,
    /// Content that was received and is not taken.
    taken: Bytes,
    /// The next hop has answered with what is no head of a response.
    malformed: Option<HopProtocolError>,
    /// No content follows the head, whatever the stream does.
    has_no_content: bool,
    /// The final head was accepted.
    is_accepted: bool,
    is_whole: bool,
    trailers: Vec<u8>,
    /// The window that was asked for last, bytes.
    window_bytes: u32,
    /// The window that the next hop had of the stream when it was looked at last, bytes.
    granted_bytes: isize,
}

impl Reception {
    /// Whether all of the response was received.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Receives one response on a stream of HTTP/2.
pub(crate) struct Http2Reception<'a> {
    state: &'a mut Reception,
    stream: &'a StreamState,
    place: &'a StreamPlace,
}

impl<'a> Http2Reception<'a> {
    pub(super) fn new(
        state: &'a mut Reception,
        stream: &'a StreamState,
        place: &'a StreamPlace,
    ) -> Self {
        Self {
            state,
            stream,
            place,
        }
    }

    pub(crate) fn poll_receive_head(
        &mut self,
        cx: &mut Context<'_>,
        _scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let received = ready!(self.poll_head(cx));
        if received.is_err() {
            self.stream.halves.borrow_mut().response = None;
        }
        Poll::Ready(received)
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let halves = &mut *self.stream.halves.borrow_mut();
        let Some(response) = &mut halves.response else {
            if halves.request.is_none() {
                halves.waits = Some(cx.waker().clone());
                return Poll::Pending;
            }
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        let is_to_head = self.stream.is_head.get();
        let interim = response.poll_informational(cx);
        let (text, content) = match interim {
            Poll::Ready(Some(Ok(head))) => {
                let ends = false;
                (head::response(&head, Answered { is_to_head, ends }), None)
            }
            // what is wrong is reported with the final head
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => {
                match ready!(Pin::new(response).poll(cx)) {
                    Ok(whole) => {
                        let (parts, content) = whole.into_parts();
                        let ends = content.is_end_stream();
                        let head = http::Response::from_parts(parts, ());
                        let text = head::response(&head, Answered { is_to_head, ends });
                        (text, Some(content))
                    }
                    Err(error) => {
                        self.stream.note(&error, self.place);
                        self.state.malformed = HopProtocolError::of(&error);
                        return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                    }
                }
            }
        };
        let Ok(text) = text else {
            self.state.malformed = Some(HopProtocolError::Head);
            if let Some(request) = &mut halves.request {
                request.send_reset(Reason::PROTOCOL_ERROR);
            }
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        };
        if content.is_some() {
            halves.response = None;
            self.state.content = content;
        }
        self.state.bytes.extend_from_slice(&text);
        Poll::Ready(Ok(text.len()))
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(crate) const fn link_spent(&self) -> Option<SpentLink> {
        None
    }

    #[expect(clippy::unused_self, reason = "as a stream that has a link")]
    pub(crate) const fn is_held_back(&self) -> bool {
        false
    }

    /// An answer that is no response is one all the same.
    pub(crate) fn has_received(&self) -> bool {
        !self.state.bytes.is_empty() || self.state.malformed.is_some()
    }

    /// How the next hop has broken the protocol before there was a head, on this stream or on its
    /// connection.
    pub(crate) fn protocol_error(&self) -> Option<HopProtocolError> {
        let shared = &self.place.connection.shared;
        shared.protocol_error(self.state.malformed)
    }

    pub(crate) fn is_worth_reading(&mut self, limits: &HeadLimits) -> bool {
        self.state.limits = *limits;
        let Reception { bytes, arrival, .. } = self.state;
        !bytes.is_empty() && arrival.is_worth_reading(bytes, limits)
    }

    pub(crate) fn take_received(&mut self) -> ReceivedBytes {
        ReceivedBytes(std::mem::take(&mut self.state.bytes))
    }

    pub(crate) fn return_received(
        &mut self,
        received: ReceivedBytes,
        accepted: Option<AcceptedHead>,
    ) {
        let state = &mut *self.state;
        state.bytes = received.0;
        let Some(accepted) = accepted else { return };
        state.bytes.drain(..accepted.consumed);
        state.arrival = Arrival::new();
        if let Some(length) = accepted.length {
            // it is alive: to give up what follows says nothing of it
            self.place.answered();
            state.is_accepted = true;
            state.named = accepted.named;
            state.has_no_content = matches!(length, BodyLength::None | BodyLength::Exact(0));
        }
    }

    /// Content comes in frames of its own.
    #[expect(clippy::unused_self, reason = "as a stream that has some")]
    pub(crate) const fn buffered_bytes(&self) -> usize {
        0
    }

    pub(crate) fn take_buffered(
        &mut self,
        _take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ContentRead {
        let state = &mut *self.state;
        let has_ended = || {
            state
                .content
                .as_ref()
                .is_some_and(RecvStream::is_end_stream)
        };
        let is_whole = state.is_accepted && (state.has_no_content || has_ended());
        if is_whole {
            self.whole();
        }
        ContentRead {
            bytes: 0,
            content_bytes: 0,
            end: match is_whole {
                true => ContentEnd::Whole,
                false => ContentEnd::More,
            },
        }
    }

    fn whole(&mut self) {
        self.state.is_whole = true;
        self.place.answered();
    }

    pub(crate) fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        mut take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        let mut read = ContentRead {
            bytes: 0,
            content_bytes: 0,
            end: ContentEnd::Whole,
        };
        if self.state.is_whole {
            return Poll::Ready(Ok(read));
        }
        let Some(content) = &mut self.state.content else {
            return Poll::Ready(Err(ContentCut::Reset));
        };
        let flow = content.flow_control();
        let window = flow.available_capacity() + flow.used_capacity().cast_signed();
        if window != std::mem::replace(&mut self.state.granted_bytes, window) {
            // it may be smaller than it was, and an update be due (`Shared::settle_windows`)
            let _ = flow.release_capacity(0);
        }
        while self.state.taken.is_empty() {
            let data = content.poll_data(cx);
            if data.is_pending() {
                let shared = &self.place.connection.shared;
                shared.waits(self.place.window, cx.waker());
            }
            match ready!(data) {
                Some(Ok(data)) => self.state.taken = data,
                Some(Err(error)) => return Poll::Ready(Err(cut(&error))),
                None => return self.poll_trailers(cx),
            }
        }
        let count = self.state.taken.len().min(scratch.len());
        let data = self.state.taken.split_to(count);
        // fails if the stream has ended: then nothing is held back
        let _ = content.flow_control().release_capacity(count);
        let has_ended = self.state.taken.is_empty() && content.is_end_stream();
        (read.bytes, read.content_bytes) = (count as u64, count as u64);
        if take(cx, &data).is_break() {
            read.end = ContentEnd::Stopped;
        } else if has_ended {
            self.whole();
        } else {
            read.end = ContentEnd::More;
        }
        Poll::Ready(Ok(read))
    }

    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<ContentRead, ContentCut>> {
        let Some(content) = &mut self.state.content else {
            return Poll::Ready(Err(ContentCut::Reset));
        };
        let fields = match ready!(content.poll_trailers(cx)) {
            Ok(fields) => fields,
            Err(error) => return Poll::Ready(Err(cut(&error))),
        };
        if let Some(fields) = fields {
            let Some(lines) = trailers(&fields, self.state.limits, &self.state.named) else {
                // the content is not whole, as its end is malformed (RFC 9113 §8.1.1)
                self.stream.reset(Reason::PROTOCOL_ERROR);
                return Poll::Ready(Err(ContentCut::Reset));
            };
            self.state.trailers = lines;
        }
        self.whole();
        Poll::Ready(Ok(ContentRead {
            bytes: 0,
            content_bytes: 0,
            end: ContentEnd::Whole,
        }))
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        &self.state.trailers
    }

    pub(crate) fn begin_window(&mut self, base: u32) -> u32 {
        let window = Some(base).filter(|base| *base > 0);
        self.set_window(window, None);
        self.measure_round_trip().unwrap_or(0)
    }

    /// The window of a stream is that of its connection: as wide as the stream needs that needs
    /// most. A small change is none.
    pub(crate) fn set_window(&mut self, window: Option<u32>, _remaining: Option<u64>) {
        let wanted = window.unwrap_or_else(|| StreamRules::default().window_bytes_max);
        let known = self.state.window_bytes;
        if wanted > known.saturating_add(known / 4) || wanted < known - known / 4 {
            self.state.window_bytes = wanted;
            let shared = &self.place.connection.shared;
            shared.need_window(self.place.window, wanted);
        }
    }

    pub(crate) fn measure_round_trip(&mut self) -> Option<u32> {
        self.place.connection.shared.round_trip_us()
    }
}

/// Why no more content comes.
fn cut(error: &h2::Error) -> ContentCut {
    match error.is_io() {
        true => ContentCut::ClosedEarly,
        false => ContentCut::Reset,
    }
}
