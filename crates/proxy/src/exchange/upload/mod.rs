//! Request content from the client to the next hop: decoded, framed again, one bounded buffer
//! between them.

pub(crate) mod progress;
pub(crate) mod source;

use crate::config::Span;
use crate::exchange::response_outcome::{HopFailure, broken};
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::{Sending, UploadEnd};
use crate::request::answer::AnswerReason;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use weir_measure::Metric;
use weir_net::http::{
    ContentError, HopProtocolError, ReceivedContent, RequestContent, RequestSender,
};
use weir_net::{Deadline, Party};
use weir_semantics::ProxyError;

/// How long either side may stall while content is sent.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    client_silence: Duration,
    hop_silence: Duration,
}

impl Limits {
    pub(crate) fn of(exchange: &RequestState) -> Self {
        let limits = &exchange.settings.config.limits;
        Self {
            client_silence: limits.client_silence.as_duration(),
            hop_silence: limits.next_hop_silence.as_duration(),
        }
    }
}

/// Sends a request head.
pub(crate) async fn send_head(
    to_hop: &mut RequestSender<'_>,
    head: Vec<u8>,
    exchange: &mut RequestState,
) -> Result<(), HopFailure> {
    let silence = exchange.settings.config.limits.next_hop_silence;
    exchange.tx.sent(exchange.worker.now());
    let request = &exchange.request;
    to_hop.begin(head, request.body, request.upgrade);
    let end = (!request.has_content()).then_some(&[][..]);
    let mut deadline = None;
    let written = poll_fn(|cx| {
        let before = to_hop.sent_bytes();
        let polled = to_hop.poll_send(cx, &[], end);
        // at once: the request may be given up before the head is sent
        let sent = to_hop.sent_bytes() - before;
        exchange.log.sent_to_next_hop(sent);
        let counters = exchange.worker.counters();
        counters.add(Metric::BytesToNextHops, sent);
        match polled {
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(match to_hop.link_spent() {
                Some(spent) => HopFailure::Broken(AnswerReason::link_spent(spent)),
                None => closed(to_hop.protocol_error()),
            })),
            Poll::Pending if to_hop.is_held_back() => {
                // a link that it waits for is no silence of the next hop
                deadline = None;
                Poll::Pending
            }
            Poll::Pending => {
                let deadline = deadline.get_or_insert_with(|| Deadline::new(silence.as_duration()));
                deadline
                    .poll_passed(cx)
                    .map(|()| Err(takes_nothing(silence)))
            }
        }
    })
    .await;
    if written.is_ok() {
        exchange.log.request_head_sent();
    }
    written
}

/// The request may be repeated: the next hop has not had all of its head.
fn closed(protocol_error: Option<HopProtocolError>) -> HopFailure {
    HopFailure::Unanswered(match protocol_error {
        Some(error) => broken(&error),
        None => AnswerReason::new(
            ProxyError::ConnectionTerminated,
            "the next hop closed the connection while the request was sent",
        ),
    })
}

fn takes_nothing(limit: Span) -> HopFailure {
    HopFailure::Broken(AnswerReason::new(
        ProxyError::ConnectionWriteTimeout,
        format!("the next hop took no more of the request for {limit}"),
    ))
}

/// Sends the content of a request.
pub(crate) async fn send_content(
    from_client: &mut RequestContent<'_>,
    to_hop: &mut RequestSender<'_>,
    limits: Limits,
    worker: &Worker,
    sending: &Cell<Sending>,
) -> UploadEnd {
    let begun_bytes = to_hop.sent_bytes();
    let mut upload = Upload {
        from_client,
        limits,
        sending,
        content: Vec::new(),
        sent: 0,
        is_received: false,
        deadline: Deadline::new(limits.client_silence),
    };
    let end = poll_fn(|cx| {
        let (read_before, before) = (upload.from_client.read_bytes(), to_hop.sent_bytes());
        let polled = upload.poll(to_hop, worker, cx);
        let sent_bytes = to_hop.sent_bytes();
        let counters = worker.counters();
        counters.add(Metric::BytesToNextHops, sent_bytes - before);
        let read_bytes = upload.from_client.read_bytes() - read_before;
        counters.add(Metric::BytesFromClients, read_bytes);
        if sent_bytes > begun_bytes {
            sending.set(Sending::UnderWay);
        }
        polled
    })
    .await;
    sending.set(match end {
        UploadEnd::Whole => Sending::Done,
        UploadEnd::Client | UploadEnd::Invalid(_) => Sending::ClientStopped,
        UploadEnd::Module => Sending::ModuleStopped,
        UploadEnd::Unfinished | UploadEnd::NextHop => Sending::Stopped,
        UploadEnd::LinkSpent => Sending::LinkSpent,
    });
    end
}

struct Upload<'a, 'c> {
    from_client: &'a mut RequestContent<'c>,
    limits: Limits,
    sending: &'a Cell<Sending>,
    /// Content that was received, and how much of it was sent.
    content: Vec<u8>,
    sent: usize,
    /// All of it was received.
    is_received: bool,
    deadline: Deadline,
}

impl Upload<'_, '_> {
    fn poll(
        &mut self,
        to_hop: &mut RequestSender<'_>,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<UploadEnd> {
        loop {
            match self.poll_send(to_hop, cx) {
                Poll::Pending if to_hop.is_held_back() => {
                    self.deadline.moved();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    self.deadline
                        .wait_for(Party::NextHop, self.limits.hop_silence);
                    return self.deadline.poll_passed(cx).map(|()| UploadEnd::NextHop);
                }
                Poll::Ready(false) => {
                    return Poll::Ready(match to_hop.link_spent() {
                        Some(_) => UploadEnd::LinkSpent,
                        None => UploadEnd::NextHop,
                    });
                }
                Poll::Ready(true) if self.is_received => return Poll::Ready(UploadEnd::Whole),
                Poll::Ready(true) => {}
            }
            let mut scratch = worker.scratch();
            let content = &mut self.content;
            match self.from_client.poll_receive(cx, &mut scratch, content) {
                Poll::Pending => {
                    let silence = self.limits.client_silence;
                    if self.sending.get() == Sending::Expected {
                        // the next hop is to answer first, within its own limit
                        self.deadline.set(silence);
                    } else {
                        self.deadline.wait_for(Party::Client, silence);
                    }
                    return self.deadline.poll_passed(cx).map(|()| UploadEnd::Client);
                }
                Poll::Ready(Ok(received)) => {
                    self.deadline.moved();
                    self.is_received = received == ReceivedContent::Whole;
                }
                Poll::Ready(Err(ContentError::Disconnected)) => {
                    return Poll::Ready(UploadEnd::Client);
                }
                Poll::Ready(Err(ContentError::Filter)) => return Poll::Ready(UploadEnd::Module),
                Poll::Ready(Err(ContentError::Invalid(error))) => {
                    return Poll::Ready(UploadEnd::Invalid(error));
                }
            }
        }
    }

    /// Sends what was received, and the end once that has come; `false` if the next hop takes no
    /// more.
    fn poll_send(&mut self, to_hop: &mut RequestSender<'_>, cx: &mut Context<'_>) -> Poll<bool> {
        while self.sent < self.content.len() || self.is_received && !to_hop.is_complete() {
            let waiting = &self.content[self.sent..];
            let end = self.is_received.then(|| self.from_client.trailers());
            let Ok(count) = ready!(to_hop.poll_send(cx, &[waiting], end)) else {
                return Poll::Ready(false);
            };
            self.sent += count;
            self.deadline.moved();
        }
        self.from_client.consumed(self.content.len());
        self.content.clear();
        self.sent = 0;
        Poll::Ready(true)
    }
}
