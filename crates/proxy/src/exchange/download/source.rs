//! Content of a response that modules decide by, before its head is judged.

use crate::config::Span;
use crate::exchange::download::{HopFailure, ResponseOutcome, broken};
use crate::exchange::response_outcome::{cut, silent};
use crate::exchange::upload::progress::Sending;
use crate::modules::content_source::{ContentSource, SourceEnded};
use crate::worker::core::Worker;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_net::http::{
    AcceptedHead, ContentCut, ContentEnd, ContentRead, Disconnect, ReceivedBytes, ResponseReceiver,
};
use weir_net::{Deadline, Party};

/// The content of a response, as the next hop sends it. Its head is accepted once content is
/// needed.
pub(super) struct ResponseSource<'a, 'h, 'c> {
    pub(super) from_hop: &'a mut ResponseReceiver<'h>,
    /// Its head, and what was received behind that.
    pub(super) received: &'a ReceivedBytes,
    pub(super) accepted: AcceptedHead,
    /// It has no content, such as the response to a HEAD.
    pub(super) is_empty: bool,
    pub(super) worker: &'a Rc<Worker>,
    pub(super) sending: &'a Cell<Sending>,
    pub(super) deadline: &'a mut Deadline,
    /// How long the next hop may send nothing.
    pub(super) silence: Span,
    /// The client, if the response is for it alone: no content is received for one that has
    /// disconnected.
    pub(super) client: Option<&'a mut Disconnect<'c>>,
    pub(super) fed: Fed,
}

/// How far the content was received.
#[derive(Default)]
pub(super) struct Fed {
    /// The head is accepted, and what was received with it taken.
    pub(super) is_begun: bool,
    /// Bytes that were received with the head.
    pub(super) buffered_bytes: u64,
    /// Bytes that were received since.
    pub(super) read_bytes: u64,
    /// Bytes of framing among both.
    pub(super) framing_bytes: u64,
    /// How the response ended before it was whole.
    pub(super) end: Option<ResponseOutcome>,
}

impl ResponseSource<'_, '_, '_> {
    /// Takes what was received with the head.
    fn begin(&mut self, into: &mut Vec<u8>) -> ContentRead {
        self.fed.is_begun = true;
        let received = self.received.clone();
        self.from_hop
            .return_received(received, Some(self.accepted.clone()));
        let read = self.from_hop.take_buffered(|content| {
            into.extend_from_slice(content);
            ControlFlow::Continue(())
        });
        self.fed.buffered_bytes += read.bytes;
        read
    }

    /// Content was received as `read` says.
    fn settle(&mut self, read: &ContentRead) -> Poll<Result<bool, SourceEnded>> {
        self.fed.framing_bytes += read.bytes - read.content_bytes;
        match read.end {
            ContentEnd::More => Poll::Ready(Ok(false)),
            ContentEnd::Whole => Poll::Ready(Ok(true)),
            ContentEnd::BrokenFraming | ContentEnd::Stopped => {
                self.fail("its content is not framed")
            }
        }
    }

    fn fail(&mut self, why: &str) -> Poll<Result<bool, SourceEnded>> {
        self.ended(ResponseOutcome::Failed(HopFailure::Broken(broken(&why))))
    }

    fn ended(&mut self, outcome: ResponseOutcome) -> Poll<Result<bool, SourceEnded>> {
        self.fed.end = Some(outcome);
        Poll::Ready(Err(SourceEnded))
    }

    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, SourceEnded>> {
        if let Some(client) = &mut self.client
            && client.poll(cx).is_ready()
        {
            return self.ended(ResponseOutcome::ClientLeft);
        }
        let silence = self.silence;
        if self.sending.get().is_under_way() || self.from_hop.is_held_back() {
            // what is sent has limits of its own, and a link that it waits for is no silence
            self.deadline.set(silence.as_duration());
        } else {
            self.deadline
                .wait_for(Party::NextHop, silence.as_duration());
        }
        if self.deadline.poll_passed(cx).is_pending() {
            return Poll::Pending;
        }
        self.ended(ResponseOutcome::Failed(silent(silence)))
    }
}

impl ContentSource for ResponseSource<'_, '_, '_> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<bool, SourceEnded>> {
        if self.sending.get().is_given_up() {
            return self.ended(ResponseOutcome::ClientLeft);
        }
        if self.is_empty {
            return Poll::Ready(Ok(true));
        }
        if !self.fed.is_begun {
            let read = self.begin(into);
            return self.settle(&read);
        }
        let worker = Rc::clone(self.worker);
        let take = |_: &mut Context<'_>, content: &[u8]| {
            into.extend_from_slice(content);
            ControlFlow::Continue(())
        };
        let read = self.from_hop.poll_content(cx, &mut worker.scratch(), take);
        match read {
            Poll::Pending => self.poll_silent(cx),
            Poll::Ready(Err(ContentCut::Reset)) => self.fail("it resets the connection"),
            Poll::Ready(Err(ContentCut::LinkSpent)) => {
                let failure = cut(self.from_hop.link_spent(), &"the link has spent its quota");
                self.ended(ResponseOutcome::Failed(failure))
            }
            Poll::Ready(Err(ContentCut::ClosedEarly | ContentCut::Filter)) => {
                self.fail("it closes the connection within the content")
            }
            Poll::Ready(Ok(read)) => {
                self.deadline.moved();
                self.fed.read_bytes += read.bytes;
                self.settle(&read)
            }
        }
    }

    /// What is not received holds a next hop back.
    fn consumed(&mut self, _bytes: usize) {}
}
