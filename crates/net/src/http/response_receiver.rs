//! A response as it is received from the next hop.

#[cfg(feature = "multiplexed-double")]
use super::double::DoubleExchange;
use super::http1::Http1Reception;
use super::http2::next_hop::{HopProtocolError, Http2Reception};
use super::received_content::{ContentCut, ContentEnd, ContentRead};
use super::received_head::{AcceptedHead, ReceivedBytes};
use crate::filter::ContentFilter;
use crate::filter::ReceivedFilter;
use crate::next_hops::SpentLink;
use std::io;
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use weir_wire::HeadLimits;

/// Receives one response: interim heads, the final head, content, trailers.
pub struct ResponseReceiver<'a> {
    kind: Kind<'a>,
    filter: &'a mut Option<Box<ReceivedFilter>>,
}

pub(super) enum Kind<'a> {
    /// On an HTTP/1.1 connection.
    Http1(Http1Reception<'a>),
    /// On a stream of HTTP/2.
    Http2(Http2Reception<'a>),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleExchange),
}

impl<'a> ResponseReceiver<'a> {
    pub(super) const fn new(kind: Kind<'a>, filter: &'a mut Option<Box<ReceivedFilter>>) -> Self {
        Self { kind, filter }
    }

    /// Has the content pass `filter`, from the bytes `received` on, which were taken and are not
    /// used; they are the last of it if it `is_last`. To be called once the final head was
    /// received. What is reported as received is what came from the next hop; there is no trailer
    /// section.
    pub fn set_filter(&mut self, filter: Box<dyn ContentFilter>, received: Vec<u8>, is_last: bool) {
        let filter = ReceivedFilter::new(filter, received, is_last);
        *self.filter = Some(Box::new(filter));
    }

    /// Whether the content passes a filter.
    #[must_use]
    pub const fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether the content passes a filter that has used up what was received: more must come from
    /// the next hop before it can put out more.
    #[must_use]
    pub fn is_filter_idle(&self) -> bool {
        let filter = self.filter.as_deref();
        filter.is_some_and(ReceivedFilter::needs_content)
    }

    /// Receives once, while there is no final head; `scratch` is memory to read into. Returns the
    /// bytes received, 0 at the end of the connection.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_receive_head(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        of_kind!(Kind of &mut self.kind, response => response.poll_receive_head(cx, scratch))
    }

    /// The link that its connection leads over, if that has spent its quota: an error was none of
    /// the next hop.
    #[must_use]
    pub fn link_spent(&self) -> Option<SpentLink> {
        of_kind!(Kind of &self.kind, response => response.link_spent())
    }

    /// Whether it waits for the link that its connection leads over, and not for the next hop.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        of_kind!(Kind of &self.kind, response => response.is_held_back())
    }

    /// Whether anything was received and not used.
    #[must_use]
    pub fn has_received(&self) -> bool {
        of_kind!(Kind of &self.kind, response => response.has_received())
    }

    /// How the next hop has broken HTTP/2 in place of a response, if it has.
    #[must_use]
    pub fn protocol_error(&self) -> Option<HopProtocolError> {
        match &self.kind {
            Kind::Http2(response) => response.protocol_error(),
            _ => None,
        }
    }

    /// Whether there may be a whole head that was not there before.
    pub fn is_worth_reading(&mut self, limits: &HeadLimits) -> bool {
        of_kind!(Kind of &mut self.kind, response => response.is_worth_reading(limits))
    }

    /// Whether it comes by HTTP/1.1.
    #[must_use]
    pub const fn is_http1(&self) -> bool {
        matches!(self.kind, Kind::Http1(_))
    }

    /// Lends what was received, to look for a head in it.
    pub fn take_received(&mut self) -> ReceivedBytes {
        of_kind!(Kind of &mut self.kind, response => response.take_received())
    }

    /// Takes it back: there was no head in it, or one that was `accepted`. Behind a final head
    /// comes content.
    pub fn return_received(&mut self, received: ReceivedBytes, accepted: Option<AcceptedHead>) {
        of_kind!(Kind of &mut self.kind, response => response.return_received(received, accepted));
    }

    /// Bytes received with the head and not used, framing included.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        of_kind!(Kind of &self.kind, response => response.buffered_bytes())
    }

    /// Passes the content that was received with the head to `take`, until that breaks.
    pub fn take_buffered(&mut self, take: impl FnMut(&[u8]) -> ControlFlow<()>) -> ContentRead {
        match self.filter {
            None => of_kind!(Kind of &mut self.kind, response => response.take_buffered(take)),
            Some(filter) => {
                let keep = |content: &[u8]| {
                    filter.keep(content);
                    ControlFlow::Continue(())
                };
                let read =
                    of_kind!(Kind of &mut self.kind, response => response.take_buffered(keep));
                filter.note(read)
            }
        }
    }

    /// Receives once, at most as many bytes as `scratch` has, and gives the content to `take`.
    ///
    /// # Errors
    ///
    /// There is no more of it, and it is not whole.
    pub fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        match self.filter {
            None => {
                of_kind!(Kind of &mut self.kind, response => response.poll_content(cx, scratch, take))
            }
            Some(filter) => self.kind.poll_filtered(filter, cx, scratch, take),
        }
    }

    /// The trailer section, as field lines with CRLF; empty before the end.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match self.filter {
            None => of_kind!(Kind of &self.kind, response => response.trailers()),
            Some(_) => &[],
        }
    }

    /// Begins to bound how much of the response may be under way; `base` is the window at rest. The
    /// round trip, microseconds; 0 if it is not known.
    pub fn begin_window(&mut self, base: u32) -> u32 {
        of_kind!(Kind of &mut self.kind, response => response.begin_window(base))
    }

    /// Permits the next hop to send so many bytes that are not received yet; `None` leaves that to
    /// the connection. `remaining` is how many bytes of the response are still to be received, if
    /// that is known. Only after [`Self::begin_window`].
    pub fn set_window(&mut self, window: Option<u32>, remaining: Option<u64>) {
        of_kind!(Kind of &mut self.kind, response => response.set_window(window, remaining));
    }

    /// Looks again at what is measured; the round trip, microseconds, if it is known. After
    /// [`Self::begin_window`] windows follow what was measured.
    pub fn measure_round_trip(&mut self) -> Option<u32> {
        of_kind!(Kind of &mut self.kind, response => response.measure_round_trip())
    }
}

impl Kind<'_> {
    /// Has the filter put out what it can; receives once if that is nothing, and it needs content.
    fn poll_filtered(
        &mut self,
        filter: &mut ReceivedFilter,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        mut take: impl FnMut(&mut Context<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Poll<Result<ContentRead, ContentCut>> {
        let mut has_put = false;
        let put = filter.poll_put(cx, scratch.len(), |cx, content| {
            has_put = true;
            take(cx, content)
        });
        // nothing was put out, and nothing more comes of what was received. What was put out must
        // be reported at once: the next hop may send nothing for long
        let is_idle = matches!(&put, Poll::Ready(Ok(read)) if read.end == ContentEnd::More)
            && !has_put
            && filter.needs_content();
        if !is_idle {
            return put;
        }
        let keep = |_: &mut Context<'_>, content: &[u8]| {
            filter.keep(content);
            ControlFlow::Continue(())
        };
        let read = of_kind!(Kind of self, response => response.poll_content(cx, scratch, keep));
        read.map_ok(|read| filter.note(read))
    }
}
