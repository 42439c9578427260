//! Content from the next hop to the client, and on its way into the store: one reader, one bounded buffer.
//!
//! Bytes are read into the worker's scratch and written from there; only what the client does not take at once is
//! copied, and nothing more is read until it is gone. So the proxy holds at most one scratch buffer for a client,
//! however slow (kernel buffers come on top).

use crate::deadline::{Deadline, Party};
use crate::inbound::Framing;
use crate::keeper::Keeper;
use crate::sink::Sink;
use crate::worker::Worker;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::ReadHalf;
use weir_policy::catalog::Refusal;
use weir_wire::{BodyEvent, BodyLength, BodyReader, HeadLimits, write};

/// Pieces below this size are copied together and written at once; larger ones are written in place.
const COPY_BYTES_MAX: usize = 8 * 1024;

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// The response was whole, and the client has it.
    Whole,
    /// The next hop cut it, or broke the framing; the word says how. The client is not told a lie.
    Cut(&'static str),
    /// The client went away or stopped reading.
    ClientLeft,
}

/// What a relay moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) end: RelayEnd,
    /// Nothing was left behind the response on the next hop's connection.
    pub(crate) hop_clean: bool,
    pub(crate) from_hop_bytes: u64,
    pub(crate) to_client_bytes: u64,
    pub(crate) body_bytes: u64,
    /// The store did not take it, and why.
    pub(crate) refused: Option<Refusal>,
}

/// A response under way.
pub(crate) struct Relay<'a> {
    from_hop: ReadHalf<'a>,
    to_client: Sink<'a>,
    worker: &'a Worker,
    deadline: &'a mut Deadline,
    hop_silence: Duration,
    client_silence: Duration,
    reader: BodyReader,
    framing: Framing,
    /// Bytes the client has not taken yet; begins with the head.
    out: Vec<u8>,
    sent: usize,
    keeper: Option<Keeper>,
    finished: bool,
    ended: Ended,
}

impl<'a> Relay<'a> {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, every part of the exchange meets here"
    )]
    pub(crate) fn new(
        from_hop: ReadHalf<'a>,
        to_client: Sink<'a>,
        worker: &'a Worker,
        deadline: &'a mut Deadline,
        (hop_silence, client_silence): (Duration, Duration),
        trailers: HeadLimits,
        body: BodyLength,
        framing: Framing,
        head: Vec<u8>,
        keeper: Option<Keeper>,
    ) -> Self {
        let body = if framing == Framing::None {
            BodyLength::None
        } else {
            body
        };
        Self {
            from_hop,
            to_client,
            worker,
            deadline,
            hop_silence,
            client_silence,
            reader: BodyReader::new(body, trailers),
            framing,
            out: head,
            sent: 0,
            keeper,
            finished: false,
            ended: Ended {
                end: RelayEnd::Whole,
                hop_clean: true,
                from_hop_bytes: 0,
                to_client_bytes: 0,
                body_bytes: 0,
                refused: None,
            },
        }
    }

    /// Relays until the end; `first` are the bytes that came with the head.
    pub(crate) async fn run(mut self, first: &[u8]) -> Ended {
        let mut first = Some(first);
        let end = poll_fn(|cx| {
            if let Some(first) = first.take()
                && let Err(end) = self.take(first, cx)
            {
                return Poll::Ready(end);
            }
            self.poll(cx)
        })
        .await;
        self.ended.end = end;
        if end != RelayEnd::Whole {
            // what is half kept is let go by dropping it
            self.keeper = None;
            self.signal_cut(end);
        }
        self.ended
    }

    /// A body that ends with the connection can only be told from a cut one by a reset. Where nothing was sent
    /// yet, an error can still be.
    fn signal_cut(&self, end: RelayEnd) {
        let cut = matches!(end, RelayEnd::Cut(_)) && self.ended.to_client_bytes > 0;
        if cut && self.framing == Framing::Close {
            self.to_client.end_by_reset();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<RelayEnd> {
        loop {
            match self.poll_flush(cx) {
                Poll::Pending => {
                    return match self.deadline.poll_passed(cx) {
                        Poll::Ready(()) => Poll::Ready(RelayEnd::ClientLeft),
                        Poll::Pending => Poll::Pending,
                    };
                }
                Poll::Ready(Err(_)) => return Poll::Ready(RelayEnd::ClientLeft),
                Poll::Ready(Ok(())) => {}
            }
            if self.finished {
                return Poll::Ready(RelayEnd::Whole);
            }
            match self.poll_more(cx) {
                Poll::Pending => {
                    return match self.deadline.poll_passed(cx) {
                        Poll::Ready(()) => Poll::Ready(RelayEnd::Cut("next-hop-silent")),
                        Poll::Pending => Poll::Pending,
                    };
                }
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Ready(Ok(())) => {}
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            let written = Pin::new(&mut self.to_client).poll_write(cx, &self.out[self.sent..]);
            match written {
                Poll::Pending => {
                    self.deadline.wait_for(Party::Client, self.client_silence);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.ended.to_client_bytes += count as u64;
                    self.deadline.moved();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Reads once from the next hop and passes on what came.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelayEnd>> {
        let worker = self.worker;
        let mut scratch = worker.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        match Pin::new(&mut self.from_hop).poll_read(cx, &mut buffer) {
            Poll::Pending => {
                self.deadline.wait_for(Party::NextHop, self.hop_silence);
                Poll::Pending
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(RelayEnd::Cut("next-hop-reset"))),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Poll::Ready(self.at_eof()),
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled();
                self.deadline.moved();
                self.ended.from_hop_bytes += bytes.len() as u64;
                Poll::Ready(self.take(bytes, cx))
            }
        }
    }

    fn at_eof(&mut self) -> Result<(), RelayEnd> {
        self.ended.hop_clean = false;
        if self.reader.at_eof().is_err() {
            return Err(RelayEnd::Cut("next-hop-closed-early"));
        }
        self.finish();
        Ok(())
    }

    /// Decodes bytes from the next hop, keeps and frames them.
    fn take(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<(), RelayEnd> {
        let mut rest = input;
        loop {
            let Ok(step) = self.reader.step(rest) else {
                return Err(RelayEnd::Cut("next-hop-broke-framing"));
            };
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => return Ok(()),
                BodyEvent::Data(data) => {
                    self.keep(data);
                    self.ended.body_bytes += data.len() as u64;
                    self.emit(data, cx)?;
                }
                BodyEvent::End => {
                    // bytes behind the response belong to nothing we asked for
                    self.ended.hop_clean = rest.is_empty();
                    self.finish();
                    return Ok(());
                }
            }
        }
    }

    fn keep(&mut self, data: &[u8]) {
        if let Some(keeper) = &mut self.keeper
            && let Err(refusal) = keeper.push(self.worker.now(), data)
        {
            self.ended.refused = Some(refusal);
            self.keeper = None;
        }
    }

    /// Everything has come: close the framing, make the stored response findable.
    fn finish(&mut self) {
        self.finished = true;
        if self.framing == Framing::Chunked {
            write::last_chunk(&mut self.out, self.reader.trailers());
        }
        if let Some(keeper) = self.keeper.take()
            && let Err(refusal) = keeper.finish(self.worker.now())
        {
            self.ended.refused = Some(refusal);
        }
    }

    /// Passes content on: in place if it is worth it, else behind what waits.
    fn emit(&mut self, data: &[u8], cx: &mut Context<'_>) -> Result<(), RelayEnd> {
        let mut header = Vec::new();
        if self.framing == Framing::Chunked {
            write::chunk_header(&mut header, data.len());
        }
        let tail: &[u8] = if self.framing == Framing::Chunked {
            b"\r\n"
        } else {
            b""
        };
        let mut written = 0;
        if data.len() > COPY_BYTES_MAX {
            let pieces = [
                IoSlice::new(&self.out[self.sent..]),
                IoSlice::new(&header),
                IoSlice::new(data),
                IoSlice::new(tail),
            ];
            match Pin::new(&mut self.to_client).poll_write_vectored(cx, &pieces) {
                Poll::Ready(Ok(count)) => {
                    written = count;
                    self.ended.to_client_bytes += count as u64;
                    self.deadline.moved();
                }
                Poll::Ready(Err(_)) => return Err(RelayEnd::ClientLeft),
                Poll::Pending => {}
            }
        }
        self.keep_unwritten(&[&header, data, tail], written);
        Ok(())
    }

    /// Copies behind `out` what of `pieces` was not written; `written` counts from the front of what waited.
    fn keep_unwritten(&mut self, pieces: &[&[u8]], written: usize) {
        let waiting = self.out.len() - self.sent;
        let mut skip = written.saturating_sub(waiting);
        self.sent += written.min(waiting);
        for piece in pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            self.out.extend_from_slice(&piece[skipped..]);
        }
    }
}
