//! Request content from the client to the next hop: decoded, framed again, one bounded buffer
//! between them.

pub(crate) mod progress;

use crate::exchange::downloaded::HopFailure;
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::{Sending, UploadEnd};
use crate::request::answer::AnswerReason;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::tcp::WriteHalf;
use weir_measure::Metric;
use weir_net::http::{ContentError, RequestContent};
use weir_net::{Deadline, Party};
use weir_semantics::ProxyError;
use weir_wire::{BodyLength, write};

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

/// What was sent.
#[derive(Debug, Default)]
pub(crate) struct Uploaded {
    pub(crate) end: UploadEnd,
    pub(crate) to_hop_bytes: u64,
}

/// Sends a request head.
pub(crate) async fn send_head(
    to_hop: &mut WriteHalf<'_>,
    head: &[u8],
    exchange: &mut RequestState,
) -> Result<(), HopFailure> {
    let silence = exchange
        .settings
        .config
        .limits
        .next_hop_silence
        .as_duration();
    exchange.tx.sent(exchange.worker.now());
    let mut sent = 0;
    let mut deadline = None;
    let written = poll_fn(|cx| {
        while sent < head.len() {
            match Pin::new(&mut *to_hop).poll_write(cx, &head[sent..]) {
                Poll::Ready(Ok(count)) if count > 0 => sent += count,
                Poll::Ready(_) => return Poll::Ready(false),
                Poll::Pending => {
                    let deadline = deadline.get_or_insert_with(|| Deadline::new(silence));
                    return deadline.poll_passed(cx).map(|()| false);
                }
            }
        }
        Poll::Ready(true)
    })
    .await;
    exchange.log.sent_to_next_hop(sent as u64);
    let counters = exchange.worker.counters();
    counters.add(Metric::BytesToNextHops, sent as u64);
    if written {
        exchange.log.request_head_sent();
        return Ok(());
    }
    Err(HopFailure::Unanswered(AnswerReason::new(
        ProxyError::ConnectionTerminated,
        "the next hop closed the connection while the request was sent",
    )))
}

/// Sends the content of a request.
pub(crate) async fn send_content(
    from_client: &mut RequestContent<'_>,
    to_hop: &mut WriteHalf<'_>,
    limits: Limits,
    worker: &Worker,
    sending: &Cell<Sending>,
) -> Uploaded {
    let mut upload = Upload {
        is_chunked: from_client.length() == BodyLength::Chunked,
        from_client,
        limits,
        content: Vec::new(),
        held: 0,
        out: Vec::new(),
        sent: 0,
        finished: false,
        to_hop_bytes: 0,
        deadline: Deadline::new(limits.client_silence),
    };
    let end = poll_fn(|cx| {
        let polled = upload.poll(to_hop, worker, cx);
        if upload.to_hop_bytes > 0 {
            sending.set(Sending::UnderWay);
        }
        polled
    })
    .await;
    sending.set(if end.is_whole() {
        Sending::Done
    } else {
        Sending::Stopped
    });
    Uploaded {
        end,
        to_hop_bytes: upload.to_hop_bytes,
    }
}

struct Upload<'a, 'c> {
    from_client: &'a mut RequestContent<'c>,
    is_chunked: bool,
    limits: Limits,
    /// Content that was received.
    content: Vec<u8>,
    /// Bytes of content that are not with the next hop.
    held: usize,
    /// The same as it is framed for the next hop.
    out: Vec<u8>,
    sent: usize,
    finished: bool,
    to_hop_bytes: u64,
    deadline: Deadline,
}

impl Upload<'_, '_> {
    fn poll(
        &mut self,
        to_hop: &mut WriteHalf<'_>,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<UploadEnd> {
        loop {
            while self.sent < self.out.len() {
                match Pin::new(&mut *to_hop).poll_write(cx, &self.out[self.sent..]) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        self.sent += count;
                        self.to_hop_bytes += count as u64;
                        worker.counters().add(Metric::BytesToNextHops, count as u64);
                        self.deadline.moved();
                    }
                    Poll::Ready(_) => return Poll::Ready(UploadEnd::NextHop),
                    Poll::Pending => {
                        self.deadline
                            .wait_for(Party::NextHop, self.limits.hop_silence);
                        return self.deadline.poll_passed(cx).map(|()| UploadEnd::NextHop);
                    }
                }
            }
            self.from_client.consumed(self.held);
            self.held = 0;
            self.content.clear();
            self.out.clear();
            self.sent = 0;
            if self.finished {
                return Poll::Ready(UploadEnd::Whole);
            }
            let mut scratch = worker.scratch();
            let content = &mut self.content;
            match self.from_client.poll_receive(cx, &mut scratch, content) {
                Poll::Pending => {
                    self.deadline
                        .wait_for(Party::Client, self.limits.client_silence);
                    return self.deadline.poll_passed(cx).map(|()| UploadEnd::Client);
                }
                Poll::Ready(Ok(received)) => {
                    self.deadline.moved();
                    worker
                        .counters()
                        .add(Metric::BytesFromClients, received.read_bytes as u64);
                    self.finished = received.is_end;
                    self.frame();
                }
                Poll::Ready(Err(ContentError::Disconnected)) => {
                    return Poll::Ready(UploadEnd::Client);
                }
                Poll::Ready(Err(ContentError::Invalid(error))) => {
                    return Poll::Ready(UploadEnd::Invalid(error));
                }
            }
        }
    }

    /// Frames what was received for the next hop.
    fn frame(&mut self) {
        self.held = self.content.len();
        if !self.is_chunked {
            std::mem::swap(&mut self.out, &mut self.content);
            return;
        }
        if !self.content.is_empty() {
            write::chunk_header(&mut self.out, self.content.len());
            self.out.extend_from_slice(&self.content);
            write::chunk_end(&mut self.out);
        }
        if self.finished {
            write::last_chunk(&mut self.out, self.from_client.trailers());
        }
    }
}
