//! A response from a next hop on an HTTP/1.1 connection.

use crate::flow::{NextHopFlow, tcp_info};
use crate::http::received_content::{ContentCut, ContentEnd, ContentRead};
use crate::http::received_head::{AcceptedHead, ReceivedBytes};
use crate::next_hops::{LinkReads, ReadEnd, SpentLink};
use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use weir_wire::{Arrival, BodyEvent, BodyLength, BodyReader, HeadLimits};

/// Room for a usual head with the begin of its content, bytes.
const RECEIVED_BYTES: usize = 2048;

/// The state of a response that is being received.
pub(super) struct Reception {
    /// What was received and is not used.
    bytes: Vec<u8>,
    arrival: Arrival,
    /// A head was repaired, the final one or an interim one before it: the connection is not used
    /// again.
    is_repaired: bool,
    /// By the final head the connection can be used again.
    is_persistent: bool,
    limits: HeadLimits,
    /// Reads the content, once there is a final head.
    reader: Option<BodyReader>,
    /// The content was not read to its end, or the connection has ended.
    is_cut: bool,
    /// Why a read has failed. Linux reports a reset once, and the next read would see a clean end.
    failed: Option<io::ErrorKind>,
    flow: Option<NextHopFlow>,
}

impl Reception {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            arrival: Arrival::new(),
            is_repaired: false,
            is_persistent: false,
            limits: HeadLimits::default(),
            reader: None,
            is_cut: false,
            failed: None,
            flow: None,
        }
    }

    /// Whether the response is complete, nothing was received behind it, and the next hop keeps the
    /// connection open. After a repair its end may be another for the next hop.
    pub(super) fn is_clean(&self) -> bool {
        let is_read = |reader: &BodyReader| reader.is_ended() && !reader.is_repaired();
        self.is_persistent
            && !self.is_repaired
            && !self.is_cut
            && self.bytes.is_empty()
            && self.reader.as_ref().is_some_and(is_read)
    }

    /// Bytes that the next hop may send without a further request.
    pub(super) fn offered_bytes(self, socket: &TcpStream) -> u64 {
        self.flow
            .map_or(0, |mut flow| u64::from(flow.settle(socket)))
    }

    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Decodes `input`, gives the content to `take`, and keeps what follows the content.
    fn decode(
        &mut self,
        input: &[u8],
        mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ContentRead {
        let mut read = ContentRead {
            bytes: input.len() as u64,
            content_bytes: 0,
            end: ContentEnd::More,
        };
        let Some(reader) = &mut self.reader else {
            debug_assert!(false, "content before a final head");
            return read;
        };
        let mut rest = input;
        loop {
            let Ok(step) = reader.step(rest) else {
                read.end = ContentEnd::BrokenFraming;
                break;
            };
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => return read,
                BodyEvent::Data(data) => {
                    read.content_bytes += data.len() as u64;
                    if take(data).is_break() {
                        read.end = ContentEnd::Stopped;
                        break;
                    }
                }
                BodyEvent::End => {
                    read.end = ContentEnd::Whole;
                    // bytes behind the response belong to no request
                    self.bytes.extend_from_slice(rest);
                    return read;
                }
            }
        }
        self.is_cut = true;
        read
    }
}

/// Receives one response on an HTTP/1.1 connection.
///
/// Linux reports a reset once: after a failed write, a read sees a clean end. So once a write has
/// failed, the end of the connection does not complete content that is delimited by it.
pub(crate) struct Http1Reception<'a> {
    end: ReadEnd<'a>,
    state: &'a mut Reception,
    write_failed: &'a Cell<bool>,
    link: Option<LinkReads<'a>>,
}

impl<'a> Http1Reception<'a> {
    pub(super) fn new(
        end: ReadEnd<'a>,
        state: &'a mut Reception,
        write_failed: &'a Cell<bool>,
        link: Option<LinkReads<'a>>,
    ) -> Self {
        Self {
            end,
            state,
            write_failed,
            link,
        }
    }

    /// Reads once; how many bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Some(kind) = self.state.failed {
            return Poll::Ready(Err(kind.into()));
        }
        let read = match &mut self.link {
            Some(link) => link.poll_read(cx, &self.end, scratch),
            None => self.end.poll_read(cx, scratch),
        };
        if let Poll::Ready(Err(error)) = &read {
            self.state.failed = Some(error.kind());
        }
        read
    }

    pub(crate) fn link_spent(&self) -> Option<SpentLink> {
        self.link.as_ref()?.usage.spent()
    }

    pub(crate) fn is_held_back(&self) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| link.usage.is_held_back())
    }

    pub(crate) fn poll_receive_head(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.poll_read(cx, scratch))?;
        let received = &scratch[..count];
        if self.state.bytes.capacity() == 0 {
            self.state.bytes.reserve(RECEIVED_BYTES);
        }
        self.state.bytes.extend_from_slice(received);
        Poll::Ready(Ok(received.len()))
    }

    pub(crate) fn has_received(&self) -> bool {
        !self.state.bytes.is_empty()
    }

    pub(crate) fn is_worth_reading(&mut self, limits: &HeadLimits) -> bool {
        self.state.limits = *limits;
        let Reception { bytes, arrival, .. } = self.state;
        !bytes.is_empty() && arrival.is_worth_reading(bytes, limits)
    }

    pub(crate) fn take_received(&mut self) -> ReceivedBytes {
        ReceivedBytes(self.state.take_bytes())
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
        state.is_repaired |= accepted.is_repaired;
        state.is_persistent = accepted.is_persistent;
        state.reader = accepted.length.map(|length: BodyLength| {
            BodyReader::lenient(length, state.limits).without_trailers(accepted.named)
        });
    }

    pub(crate) fn buffered_bytes(&self) -> usize {
        self.state.bytes.len()
    }

    pub(crate) fn take_buffered(
        &mut self,
        take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ContentRead {
        let buffered = self.state.take_bytes();
        self.state.decode(&buffered, take)
    }

    pub(crate) fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        mut take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        let count = match ready!(self.poll_read(cx, scratch)) {
            Ok(count) => count,
            Err(error) => {
                self.state.is_cut = true;
                return Poll::Ready(Err(match error.kind() {
                    io::ErrorKind::QuotaExceeded => ContentCut::LinkSpent,
                    _ => ContentCut::Reset,
                }));
            }
        };
        let received = &scratch[..count];
        if !received.is_empty() {
            return Poll::Ready(Ok(self.state.decode(received, |data| take(cx, data))));
        }
        self.state.is_cut = true;
        if self.write_failed.get() {
            return Poll::Ready(Err(ContentCut::Reset));
        }
        // another than the next hop may have closed it (RFC 9112 §9.8)
        if !self.end.is_end_announced() {
            return Poll::Ready(Err(ContentCut::ClosedEarly));
        }
        let reader = self.state.reader.as_mut();
        if reader.is_none_or(|reader| reader.at_eof().is_err()) {
            return Poll::Ready(Err(ContentCut::ClosedEarly));
        }
        Poll::Ready(Ok(ContentRead {
            bytes: 0,
            content_bytes: 0,
            end: ContentEnd::Whole,
        }))
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        self.state.reader.as_ref().map_or(&[], BodyReader::trailers)
    }

    pub(crate) fn begin_window(&mut self, base: u32) -> u32 {
        let socket = self.end.tcp();
        let info = tcp_info(socket).unwrap_or_default();
        self.state.flow = Some(NextHopFlow::known(socket, base, &info));
        info.rtt_us
    }

    pub(crate) fn set_window(&mut self, window: Option<u32>, remaining: Option<u64>) {
        let window = match &mut self.link {
            Some(link) => link.offer(window),
            None => window,
        };
        if let Some(flow) = &mut self.state.flow {
            flow.set_window(self.end.tcp(), window, remaining);
        }
    }

    pub(crate) fn measure_round_trip(&mut self) -> Option<u32> {
        let socket = self.end.tcp();
        let round_trip_us = tcp_info(socket)?.rtt_us;
        if let Some(flow) = &mut self.state.flow {
            flow.look(socket, round_trip_us);
        }
        Some(round_trip_us)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Http1Request;
    use super::super::writer::MessageWriter;
    use super::*;
    use crate::next_hops::NextHopSocket;
    use socket2::SockRef;
    use std::future::poll_fn;
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::time::Duration;
    use tokio::net::TcpListener;
    use weir_semantics::Method;
    use weir_wire::LineBuffer;

    /// A connection to a next hop, and its other end.
    async fn connected() -> (NextHopSocket, std::net::TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let next_hop = accepted.unwrap().0.into_std().unwrap();
        (NextHopSocket::Clear(ours.unwrap()), next_hop)
    }

    fn reset(next_hop: &std::net::TcpStream) {
        let socket = SockRef::from(next_hop);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }

    #[tokio::test]
    async fn reset_is_reported_by_each_read_behind_it() {
        let (mut ours, next_hop) = connected().await;
        let mut reception = Reception::new();
        let write_failed = Cell::new(false);
        let (read, _) = ours.split();
        let mut response = Http1Reception::new(read, &mut reception, &write_failed, None);
        reset(&next_hop);
        drop(next_hop);
        let mut scratch = [0; 64];
        for _ in 0..2 {
            let read = poll_fn(|cx| response.poll_receive_head(cx, &mut scratch)).await;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        }
    }

    /// Receives a response without a length, sends until that fails if it `writes`, and says how
    /// the content ends once the next hop has reset the connection, or closed it.
    async fn end_of_content(resets: bool, writes: bool) -> Result<ContentEnd, ContentCut> {
        let (mut ours, mut next_hop) = connected().await;
        next_hop.write_all(b"HTTP/1.1 200 OK\r\n\r\npart").unwrap();
        let (mut reception, mut writer) = (Reception::new(), MessageWriter::new());
        let write_failed = Cell::new(false);
        let (read, write) = ours.split();
        let mut response = Http1Reception::new(read, &mut reception, &write_failed, None);
        let mut request = Http1Request::new(write, &mut writer, &write_failed, None);
        let mut scratch = [0; 4096];
        while response.buffered_bytes() < 23 {
            poll_fn(|cx| response.poll_receive_head(cx, &mut scratch))
                .await
                .unwrap();
        }
        assert!(response.is_worth_reading(&HeadLimits::default()));
        let received = response.take_received();
        let mut lines = LineBuffer::new();
        let head = received.head(Method::Get, &HeadLimits::default(), &mut lines);
        let accepted = head.unwrap().unwrap().acceptance();
        response.return_received(received, Some(accepted));
        response.take_buffered(|_| ControlFlow::Continue(()));
        if resets {
            reset(&next_hop);
        }
        drop(next_hop);
        let length = BodyLength::Exact(u64::MAX);
        request.begin(b"POST / HTTP/1.1\r\n".to_vec(), length, false);
        let content = [0; 65536];
        while writes
            && poll_fn(|cx| request.poll_send(cx, &[&content], None))
                .await
                .is_ok()
        {}
        let take = |_: &mut Context<'_>, _: &[u8]| ControlFlow::Continue(());
        poll_fn(|cx| response.poll_content(cx, &mut scratch, take))
            .await
            .map(|read| read.end)
    }

    #[tokio::test]
    async fn end_of_the_connection_ends_no_content_once_a_write_has_failed() {
        assert_eq!(end_of_content(false, false).await, Ok(ContentEnd::Whole));
        assert_eq!(end_of_content(true, false).await, Err(ContentCut::Reset));
        assert_eq!(end_of_content(true, true).await, Err(ContentCut::Reset));
        assert_eq!(end_of_content(false, true).await, Err(ContentCut::Reset));
    }
}
