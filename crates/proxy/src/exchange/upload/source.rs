//! Content of a request that modules decide by, before the request is judged.

use crate::config::Span;
use crate::exchange::state::RequestState;
use crate::modules::content_source::{ContentSource, SourceEnded};
use crate::request::answer::{Answer, AnswerReason};
use crate::worker::core::Worker;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_measure::Metric;
use weir_net::Party;
use weir_net::http::{ClientStream, ContentError, ReceivedContent};

/// The content of a request, as its client sends it.
pub(crate) struct RequestSource<'a, 'c> {
    stream: &'a mut ClientStream<'c>,
    worker: Rc<Worker>,
    /// How long the client may send nothing.
    silence: Span,
    /// It waits for 100 (RFC 9110 §10.1.1), which it was not sent yet.
    awaits_continue: bool,
    /// The answer to a request whose content ended before it was whole.
    end: Option<Answer>,
}

impl<'a, 'c> RequestSource<'a, 'c> {
    /// The content of the request of `exchange`.
    pub(crate) fn new(stream: &'a mut ClientStream<'c>, exchange: &RequestState) -> Self {
        Self {
            stream,
            worker: Rc::clone(&exchange.worker),
            silence: exchange.settings.config.limits.client_silence,
            awaits_continue: exchange.tx.request().expects_continue,
            end: None,
        }
    }

    /// The answer to the request, if its content ended before it was whole.
    pub(crate) fn into_end(self) -> Option<Answer> {
        self.end
    }

    fn ended(&mut self, answer: Answer) -> Poll<Result<bool, SourceEnded>> {
        self.end = Some(answer);
        Poll::Ready(Err(SourceEnded))
    }

    /// Has the client send its content, which is needed now. Whether it can.
    fn send_continue(&mut self, cx: &mut Context<'_>) -> bool {
        let response = &mut self.stream.response;
        if std::mem::take(&mut self.awaits_continue) && !self.stream.content.is_begun() {
            response.push_interim(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        !response.has_queued() || !matches!(response.poll_send(cx, &[], None), Poll::Ready(Err(_)))
    }
}

impl ContentSource for RequestSource<'_, '_> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<bool, SourceEnded>> {
        if !self.send_continue(cx) {
            return self.ended(Answer::bad_request(&ContentError::Disconnected));
        }
        let content = &mut self.stream.content;
        let before = content.read_bytes();
        let received = content.poll_receive(cx, &mut self.worker.scratch(), into);
        let read_bytes = content.read_bytes() - before;
        let counters = self.worker.counters();
        counters.add(Metric::BytesFromClients, read_bytes);
        let deadline = &mut self.stream.deadline;
        match received {
            Poll::Pending => {
                deadline.wait_for(Party::Client, self.silence.as_duration());
                if deadline.poll_passed(cx).is_pending() {
                    return Poll::Pending;
                }
                let reason = format!("the client sent no content for {}", self.silence);
                self.ended(Answer::closing(408, AnswerReason::bad(reason)))
            }
            Poll::Ready(Ok(received)) => {
                deadline.moved();
                Poll::Ready(Ok(received == ReceivedContent::Whole))
            }
            Poll::Ready(Err(error)) => self.ended(Answer::bad_request(&error)),
        }
    }

    fn consumed(&mut self, bytes: usize) {
        self.stream.content.consumed(bytes);
    }
}
