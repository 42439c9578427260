//! A request to a next hop on an HTTP/1.1 connection.

use super::chunks::Framing;
use super::writer::{MessageWriter, Transport};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use tokio::net::tcp::WriteHalf;
use weir_wire::{BodyLength, write};

/// Sends one request on an HTTP/1.1 connection.
pub struct Http1Request<'a> {
    half: WriteHalf<'a>,
    writer: &'a mut MessageWriter,
    write_failed: &'a Cell<bool>,
}

impl Transport for WriteHalf<'_> {
    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(usize::MAX))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [one] => AsyncWrite::poll_write(Pin::new(self), cx, one),
            slices => AsyncWrite::poll_write_vectored(Pin::new(self), cx, slices),
        }
    }
}

impl<'a> Http1Request<'a> {
    pub(super) fn new(
        half: WriteHalf<'a>,
        writer: &'a mut MessageWriter,
        write_failed: &'a Cell<bool>,
    ) -> Self {
        Self {
            half,
            writer,
            write_failed,
        }
    }

    pub(crate) fn begin(&mut self, head: Vec<u8>, content: BodyLength, upgrade: bool) {
        let framing = match content {
            BodyLength::Chunked => Framing::Chunked(0),
            BodyLength::None | BodyLength::Exact(_) | BodyLength::UntilClose => Framing::Length,
        };
        self.writer.begin(head, framing, |head| {
            if upgrade {
                head.extend_from_slice(b"Connection: Upgrade\r\n");
            }
            write::end_of_head(head);
        });
    }

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let sent = self.writer.poll_send(&mut self.half, cx, content, end);
        if matches!(sent, Poll::Ready(Err(_))) {
            self.write_failed.set(true);
        }
        sent
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.writer.is_complete()
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.writer.sent_bytes()
    }
}
