//! The way of a response to the client.

use super::content_form::ContentForm;
use super::disconnect::{Disconnect, DisconnectSource};
#[cfg(feature = "multiplexed-double")]
use super::double::DoubleResponse;
use super::http1::Http1Response;
use super::http2::Http2Response;
use crate::filter::{ContentFilter, SentFilter};
use crate::flow::{Pacing, SendQueue, SendRate};
use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_semantics::FieldNames;

/// Sends the response to one request: interim heads, the final head, content, trailers.
pub struct ResponseSender<'c> {
    kind: Kind<'c>,
    filter: Option<Box<SentFilter>>,
    hop_lines: Option<HopLines>,
    left_out: FieldNames,
    pacing: Pacing,
}

/// Appends field lines, each with CRLF, to a final head that has all others but those of the
/// connection.
pub type HopLines = Box<dyn Fn(&mut Vec<u8>)>;

enum Kind<'c> {
    /// On an HTTP/1.1 connection.
    Http1(Http1Response<'c>),
    /// On a stream of HTTP/2.
    Http2(Http2Response),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleResponse),
}

impl<'c> ResponseSender<'c> {
    pub(super) const fn http1(response: Http1Response<'c>) -> Self {
        Self {
            kind: Kind::Http1(response),
            filter: None,
            hop_lines: None,
            left_out: FieldNames::NONE,
            pacing: Pacing::NONE,
        }
    }

    pub(super) const fn http2(response: Http2Response) -> Self {
        Self {
            kind: Kind::Http2(response),
            filter: None,
            hop_lines: None,
            left_out: FieldNames::NONE,
            pacing: Pacing::NONE,
        }
    }

    #[cfg(feature = "multiplexed-double")]
    pub(super) const fn double(response: DoubleResponse) -> Self {
        Self {
            kind: Kind::Double(response),
            filter: None,
            hop_lines: None,
            left_out: FieldNames::NONE,
            pacing: Pacing::NONE,
        }
    }

    /// The stream of HTTP/2 that it is the half of, if it is.
    pub(super) fn http2_mut(&mut self) -> Option<&mut Http2Response> {
        match &mut self.kind {
            Kind::Http2(response) => Some(response),
            _ => None,
        }
    }

    /// Has the content of the final response pass `filter`. To be called before [`Self::begin`],
    /// which is to be told that the length is not known. Bytes that are offered count as accepted
    /// once the filter has taken them; there is no trailer section.
    pub fn set_filter(&mut self, filter: Box<dyn ContentFilter>) {
        self.filter = Some(Box::new(SentFilter::new(filter)));
    }

    /// Limits how fast content leaves. Heads do not count, and do not wait.
    pub fn set_rate(&mut self, rate: Box<dyn SendRate>) {
        self.pacing.set(rate);
    }

    /// The address at which the client's connection was accepted.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        let socket = match &self.kind {
            Kind::Http1(response) => response.socket(),
            Kind::Http2(response) => response.socket(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => return None,
        };
        socket.local_addr().ok()
    }

    /// Content leaves as fast as the client takes it, from now on.
    pub fn lift_rate(&mut self) {
        self.pacing.lift();
    }

    /// Whether content waits for its rate, and not for the client; by HTTP/2 also, whether it waits
    /// for other responses that the client finds more urgent, or for the socket that all share.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        let is_held_back = match &self.kind {
            Kind::Http2(response) => response.is_held_back(),
            _ => false,
        };
        is_held_back || self.pacing.is_held_back()
    }

    /// Has the final head end with `lines`: fields for the client at the other end of this
    /// connection alone.
    pub fn set_hop_lines(&mut self, lines: HopLines) {
        self.hop_lines = Some(lines);
    }

    /// Leaves fields with these names out of interim heads and out of the trailer section. Of the
    /// final head the caller takes care.
    pub fn leave_out(&mut self, names: FieldNames) {
        self.left_out = names;
    }

    /// Queues the complete head of an interim response (RFC 9110 §15.2), if the client understands
    /// them.
    pub fn push_interim(&mut self, head: &[u8]) {
        let head = &*self.kept(head);
        of_client_kind!(&mut self.kind, response => response.push_interim(head));
    }

    /// Queues the final head: `head` is a status line and end-to-end fields, each with CRLF. The
    /// head as it is sent, complete: with the fields of the connection where it has some.
    pub fn begin(&mut self, mut head: Vec<u8>, content: ContentForm) -> &[u8] {
        if let Some(lines) = &self.hop_lines {
            lines(&mut head);
        }
        of_client_kind!(&mut self.kind, response => response.begin(head, content))
    }

    /// The lines of a section that are not left out.
    fn kept<'s>(&self, section: &'s [u8]) -> Cow<'s, [u8]> {
        if section.is_empty() || self.left_out.is_empty() {
            return Cow::Borrowed(section);
        }
        Cow::Owned(self.left_out.without(section))
    }

    /// Sends what is queued, then of `content` as much as the client has room for. The caller
    /// offers again what was not accepted, before anything that follows it. `end` has the trailer
    /// section (empty if there is none) once nothing follows `content`.
    ///
    /// Ready with how many bytes of `content` were accepted: at least one, if there is content.
    /// Ready with 0 when everything queued is sent. Of many pieces only the first 16 are used;
    /// `end` is used when no piece is left out.
    ///
    /// # Errors
    ///
    /// The client has disconnected.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let end = end.map(|end| self.kept(end));
        let end = end.as_deref();
        let pacing = &mut self.pacing;
        match &mut self.filter {
            None if pacing.is_unlimited() => {
                of_client_kind!(&mut self.kind, response => response.poll_send(cx, content, end))
            }
            None => self.kind.poll_send_paced(pacing, cx, content, end),
            Some(filter) => self
                .kind
                .poll_send_filtered((filter, pacing), cx, content, end),
        }
    }

    /// Whether content can leave by [`Self::poll_send_file`].
    #[must_use]
    pub fn can_send_file(&self) -> bool {
        if self.filter.is_some() {
            return false;
        }
        match &self.kind {
            Kind::Http1(response) => response.can_send_file(),
            Kind::Http2(_) => false,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => false,
        }
    }

    /// The send queue that content leaves by which [`Self::poll_send_file`] sends; `None` where it
    /// sends none.
    #[must_use]
    pub fn file_queue(&self) -> Option<SendQueue> {
        match &self.kind {
            Kind::Http1(response) if self.can_send_file() => Some(response.send_queue()),
            _ => None,
        }
    }

    /// Sends what is queued, then content: at most `length` bytes of `file` from `offset` on,
    /// without a copy. Returns how many were accepted; 0 if the file ends there. Only where
    /// [`Self::can_send_file`].
    ///
    /// # Errors
    ///
    /// The client has disconnected, or the file cannot be read.
    pub fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: u64,
        length: u64,
    ) -> Poll<io::Result<usize>> {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        let Poll::Ready(permit) = self.pacing.poll_permit(cx, wanted) else {
            return self.kind.poll_send_queued(cx);
        };
        let length = length.min(permit as u64);
        let sent = match &mut self.kind {
            Kind::Http1(response) => response.poll_send_file(cx, file, offset, length),
            Kind::Http2(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        };
        if let Poll::Ready(Ok(bytes)) = sent {
            self.pacing.sent(bytes);
        }
        sent
    }

    /// Bounds the bytes that are accepted and not yet sent to the client: the read-ahead on this
    /// side. `None`, the initial value: no bound but the kernel's.
    pub fn set_unsent_limit(&mut self, bytes: Option<u32>) {
        of_client_kind!(&mut self.kind, response => response.set_unsent_limit(bytes));
    }

    /// The round trip to the client, microseconds; `None` if it is not known.
    #[must_use]
    pub fn round_trip_us(&self) -> Option<u32> {
        of_client_kind!(&self.kind, response => response.round_trip_us())
    }

    /// Bytes that were taken and the client has not acknowledged, sent or not; `None` if that is
    /// not known.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> Option<u32> {
        of_client_kind!(&self.kind, response => response.unacknowledged_bytes())
    }

    /// This is the last request of the client on the connection; the head says so, if it is not
    /// sent yet. Other streams of the connection are not affected.
    pub fn close_after(&mut self) {
        match &mut self.kind {
            Kind::Http1(response) => response.close_after(),
            Kind::Http2(_) => {}
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => {}
        }
    }

    /// Whether the connection can be used again after the complete response, by its head.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        match &self.kind {
            Kind::Http1(response) => response.is_persistent(),
            Kind::Http2(_) => true,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => true,
        }
    }

    /// Whether something is queued: a head, or framing.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        let is_filtered = |filter: &SentFilter| !filter.is_empty();
        self.filter.as_deref().is_some_and(is_filtered)
            || of_client_kind!(&self.kind, response => response.has_queued())
    }

    /// Whether a final head was queued.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        of_client_kind!(&self.kind, response => response.is_begun())
    }

    /// Whether all of the response, its end included, is sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        of_client_kind!(&self.kind, response => response.is_complete())
    }

    /// Takes the final head back, if nothing of it was sent: another one may be queued then, for
    /// content without a filter.
    /// Returns whether it did.
    pub fn retract(&mut self) -> bool {
        let is_taken_back = of_client_kind!(&mut self.kind, response => response.retract());
        if is_taken_back {
            self.filter = None;
        }
        is_taken_back
    }

    /// Ends a response that is not whole, so that the client cannot take it for a whole one.
    pub fn abort(&mut self) {
        of_client_kind!(&mut self.kind, response => response.abort());
    }

    /// Bytes sent, heads and framing included.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        of_client_kind!(&self.kind, response => response.sent_bytes())
    }

    /// Waits for the client's disconnect while nothing is sent to it. A client that has closed its
    /// sending side counts as disconnected after `half_closed` without progress.
    #[must_use]
    pub fn disconnect(&self, half_closed: Duration) -> Disconnect<'c> {
        Disconnect::new(self.disconnect_source(), half_closed)
    }

    /// The source of the client's disconnect.
    #[must_use]
    pub fn disconnect_source(&self) -> DisconnectSource<'c> {
        match &self.kind {
            Kind::Http1(response) => DisconnectSource::Http1(response.socket()),
            Kind::Http2(response) => DisconnectSource::Http2(response.disconnect()),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(response) => DisconnectSource::Double(response.clone()),
        }
    }
}

impl Kind<'_> {
    /// As [`ResponseSender::poll_send`], no faster than `pacing` permits.
    fn poll_send_paced(
        &mut self,
        pacing: &mut Pacing,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let all: usize = content.iter().map(|piece| piece.len()).sum();
        let first = content.iter().find(|piece| !piece.is_empty());
        let first = first.copied().unwrap_or_default();
        let Poll::Ready(permit) = pacing.poll_permit(cx, first.len()) else {
            return self.poll_send_queued(cx);
        };
        let piece = &first[..first.len().min(permit)];
        let end = end.filter(|_| piece.len() == all);
        let sent =
            ready!(of_client_kind!(self, response => response.poll_send(cx, &[piece], end)))?;
        pacing.sent(sent);
        Poll::Ready(Ok(sent))
    }

    /// Sends what is queued, while content waits: the head need not wait for it.
    fn poll_send_queued(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while of_client_kind!(self, response => response.has_queued()) {
            ready!(of_client_kind!(self, response => response.poll_send(cx, &[], None)))?;
        }
        Poll::Pending
    }

    /// As [`ResponseSender::poll_send`], through a filter. The filter works first: as long as it
    /// puts out nothing, the head can be taken back.
    fn poll_send_filtered(
        &mut self,
        (filter, pacing): (&mut SentFilter, &mut Pacing),
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if !filter.is_whole() {
                let taken = ready!(filter.poll_fill(cx, content, end.is_some()));
                let taken = taken.map_err(io::Error::other)?;
                if taken > 0 {
                    return Poll::Ready(Ok(taken));
                }
            }
            if filter.is_empty() && !filter.is_whole() {
                while of_client_kind!(self, response => response.has_queued()) {
                    ready!(of_client_kind!(self, response => response.poll_send(cx, &[], None)))?;
                }
                return Poll::Ready(Ok(0));
            }
            let end = filter.is_whole().then_some(&[][..]);
            while !filter.is_empty()
                || end.is_some() && !of_client_kind!(self, response => response.is_complete())
            {
                let pieces = filter.pieces();
                let sent = ready!(self.poll_send_paced(pacing, cx, &pieces, end))?;
                filter.advance(sent);
            }
            if filter.is_whole() {
                return Poll::Ready(Ok(content.iter().map(|piece| piece.len()).sum()));
            }
        }
    }
}
