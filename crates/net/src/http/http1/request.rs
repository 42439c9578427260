//! A request to a next hop on an HTTP/1.1 connection.

use super::chunks::Framing;
use super::writer::{MessageWriter, Transport};
use crate::next_hops::{LinkUse, SpentLink, WriteEnd};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use weir_wire::{BodyLength, write};

/// Sends one request on an HTTP/1.1 connection.
pub struct Http1Request<'a> {
    half: NextHopTransport<'a>,
    writer: &'a mut MessageWriter,
    write_failed: &'a Cell<bool>,
}

/// The connection to a next hop, and the link that it leads over.
struct NextHopTransport<'a> {
    end: WriteEnd<'a>,
    link: Option<&'a mut LinkUse>,
}

impl Transport for NextHopTransport<'_> {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &mut self.link {
            Some(link) => link.poll_permit(cx, usize::MAX),
            None => Poll::Ready(Ok(usize::MAX)),
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.end.poll_write(cx, slices);
        if let Some(link) = &mut self.link {
            // under TLS some may be on the wire before the whole counts as written
            match self.end.take_sent(&written) {
                0 => link.give_back(),
                bytes => link.sent(bytes),
            }
        }
        written
    }
}

impl<'a> Http1Request<'a> {
    pub(super) fn new(
        end: WriteEnd<'a>,
        writer: &'a mut MessageWriter,
        write_failed: &'a Cell<bool>,
        link: Option<&'a mut LinkUse>,
    ) -> Self {
        Self {
            half: NextHopTransport { end, link },
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

    pub(crate) fn link_spent(&self) -> Option<SpentLink> {
        self.half.link.as_ref()?.spent()
    }

    pub(crate) fn is_held_back(&self) -> bool {
        let link = self.half.link.as_ref();
        link.is_some_and(|link| link.is_held_back())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.writer.is_complete()
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.writer.sent_bytes()
    }
}
