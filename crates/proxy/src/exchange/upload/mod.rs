//! Request content from the client to the next hop: decoded, framed again, one bounded buffer
//! between them.

pub(crate) mod progress;

use crate::client::connection::Client;
use crate::exchange::downloaded::HopFailure;
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::{Sending, UploadEnd};
use crate::request::answer::AnswerReason;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use weir_measure::Metric;
use weir_net::{Deadline, Party};
use weir_semantics::ProxyError;
use weir_wire::{BodyError, BodyEvent, BodyLength, BodyReader, HeadLimits, write};

/// What the content of a request is and how long it may stall.
#[derive(Clone, Copy)]
pub(crate) struct Content {
    length: BodyLength,
    trailers: HeadLimits,
    client_silence: Duration,
    hop_silence: Duration,
}

impl Content {
    pub(crate) fn of(exchange: &RequestState) -> Self {
        let limits = &exchange.settings.config.limits;
        Self {
            length: exchange.request.body,
            trailers: exchange.settings.heads,
            client_silence: limits.client_silence.as_duration(),
            hop_silence: limits.next_hop_silence.as_duration(),
        }
    }
}

/// What was sent.
#[derive(Debug, Default)]
pub(crate) struct Uploaded {
    pub(crate) end: UploadEnd,
    pub(crate) from_client_bytes: u64,
    pub(crate) to_hop_bytes: u64,
    /// Content among those from the client, without framing.
    pub(crate) content_bytes: u64,
    /// Bytes behind the content: the next request.
    pub(crate) surplus: Vec<u8>,
}

/// Sends a request head.
pub(crate) async fn send_head(
    to_hop: &mut WriteHalf<'_>,
    head: &[u8],
    exchange: &mut RequestState,
    worker: &Worker,
) -> Result<(), HopFailure> {
    let silence = exchange
        .settings
        .config
        .limits
        .next_hop_silence
        .as_duration();
    exchange.tx.sent(worker.now());
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
    worker.counters().add(Metric::BytesToNextHops, sent as u64);
    if written {
        exchange.log.request_head_sent();
        return Ok(());
    }
    Err(HopFailure::Unanswered(AnswerReason::new(
        ProxyError::ConnectionTerminated,
        "the next hop closed the connection while the request was sent",
    )))
}

/// Sends content; `unread` are the bytes that came with the request head.
pub(crate) async fn send_content(
    from_client: &mut ReadHalf<'_>,
    to_hop: &mut WriteHalf<'_>,
    unread: Vec<u8>,
    content: Content,
    worker: &Worker,
    sending: &Cell<Sending>,
) -> Uploaded {
    let mut upload = Upload {
        reader: BodyReader::new(content.length, content.trailers),
        content,
        out: Vec::new(),
        sent: 0,
        finished: false,
        uploaded: Uploaded::default(),
        deadline: Deadline::new(content.client_silence),
    };
    let mut first = Some(unread);
    let end = poll_fn(|cx| {
        if let Some(first) = first.take()
            && let Err(error) = upload.take(&first)
        {
            return Poll::Ready(UploadEnd::Invalid(error));
        }
        let polled = upload.poll(from_client, to_hop, worker, cx);
        if upload.uploaded.to_hop_bytes > 0 {
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
    upload.uploaded.end = end;
    upload.uploaded
}

struct Upload {
    reader: BodyReader,
    content: Content,
    out: Vec<u8>,
    sent: usize,
    finished: bool,
    uploaded: Uploaded,
    deadline: Deadline,
}

impl Upload {
    fn poll(
        &mut self,
        from_client: &mut ReadHalf<'_>,
        to_hop: &mut WriteHalf<'_>,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<UploadEnd> {
        loop {
            while self.sent < self.out.len() {
                match Pin::new(&mut *to_hop).poll_write(cx, &self.out[self.sent..]) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        self.sent += count;
                        self.uploaded.to_hop_bytes += count as u64;
                        worker.counters().add(Metric::BytesToNextHops, count as u64);
                        self.deadline.moved();
                    }
                    Poll::Ready(_) => return Poll::Ready(UploadEnd::NextHop),
                    Poll::Pending => {
                        self.deadline
                            .wait_for(Party::NextHop, self.content.hop_silence);
                        return self.deadline.poll_passed(cx).map(|()| UploadEnd::NextHop);
                    }
                }
            }
            self.out.clear();
            self.sent = 0;
            if self.finished {
                return Poll::Ready(UploadEnd::Whole);
            }
            let mut scratch = worker.scratch();
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *from_client).poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    self.deadline
                        .wait_for(Party::Client, self.content.client_silence);
                    return self.deadline.poll_passed(cx).map(|()| UploadEnd::Client);
                }
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let bytes = buffer.filled();
                    self.deadline.moved();
                    worker
                        .counters()
                        .add(Metric::BytesFromClients, bytes.len() as u64);
                    if let Err(error) = self.take(bytes) {
                        return Poll::Ready(UploadEnd::Invalid(error));
                    }
                }
                Poll::Ready(_) => return Poll::Ready(UploadEnd::Client),
            }
        }
    }

    /// Decodes bytes of the client.
    fn take(&mut self, input: &[u8]) -> Result<(), BodyError> {
        let chunked = self.content.length == BodyLength::Chunked;
        let mut rest = input;
        loop {
            let step = self.reader.step(rest)?;
            self.uploaded.from_client_bytes += step.consumed as u64;
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => return Ok(()),
                BodyEvent::Data(data) if chunked => {
                    self.uploaded.content_bytes += data.len() as u64;
                    write::chunk_header(&mut self.out, data.len());
                    self.out.extend_from_slice(data);
                    write::chunk_end(&mut self.out);
                }
                BodyEvent::Data(data) => {
                    self.uploaded.content_bytes += data.len() as u64;
                    self.out.extend_from_slice(data);
                }
                BodyEvent::End => {
                    if chunked {
                        write::last_chunk(&mut self.out, self.reader.trailers());
                    }
                    self.finished = true;
                    self.uploaded.surplus = rest.to_vec();
                    return Ok(());
                }
            }
        }
    }
}

/// What is wrong with the content as far as it came with the head: then the next hop need not see
/// any of it.
pub(crate) fn check_begin(content: Content, begin: &[u8]) -> Result<(), BodyError> {
    let mut reader = BodyReader::new(content.length, content.trailers);
    let mut rest = begin;
    loop {
        let step = reader.step(rest)?;
        rest = &rest[step.consumed..];
        if !matches!(step.event, BodyEvent::Data(_)) {
            return Ok(());
        }
    }
}

/// Reads content away that nobody wants, up to the limit; `true` if all of it is gone and what
/// follows is a request.
pub(crate) async fn discard(client: &mut Client, exchange: &RequestState) -> bool {
    let limits = &exchange.settings.config.limits;
    let mut left = limits.request_body_drain.as_usize();
    client.deadline.set(limits.client_silence.as_duration());
    let mut reader = BodyReader::new(exchange.request.body, exchange.settings.heads);
    let mut input = std::mem::take(&mut client.unread);
    loop {
        let mut rest = &input[..];
        loop {
            let Ok(step) = reader.step(rest) else {
                return false;
            };
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => break,
                BodyEvent::Data(data) => match left.checked_sub(data.len()) {
                    Some(less) => left = less,
                    None => return false,
                },
                BodyEvent::End => {
                    client.unread = rest.to_vec();
                    return true;
                }
            }
        }
        input.clear();
        if !poll_fn(|cx| poll_into(client, &mut input, cx)).await {
            return false;
        }
    }
}

fn poll_into(client: &mut Client, into: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<bool> {
    let mut scratch = client.worker.scratch();
    let mut buffer = ReadBuf::new(&mut scratch);
    match Pin::new(&mut client.stream).poll_read(cx, &mut buffer) {
        Poll::Pending => {
            ready!(client.deadline.poll_passed(cx));
            Poll::Ready(false)
        }
        Poll::Ready(Err(_)) => Poll::Ready(false),
        Poll::Ready(Ok(())) => {
            into.extend_from_slice(buffer.filled());
            Poll::Ready(!into.is_empty())
        }
    }
}
