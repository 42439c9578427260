//! The content of a request on an HTTP/1.1 connection.

use crate::client::ClientSocket;
use crate::http::received_content::{ContentError, ReceivedContent};
use std::task::{Context, Poll, ready};
use weir_semantics::NamedFields;
use weir_wire::{BodyError, BodyEvent, BodyLength, BodyReader, HeadLimits};

/// The content of a request on an HTTP/1.1 connection.
pub(crate) struct Http1Content<'c> {
    socket: &'c ClientSocket,
    /// What was read behind the head, until it is received; at the end what follows the content.
    unread: &'c mut Vec<u8>,
    length: BodyLength,
    trailers: HeadLimits,
    /// Of a request with content: others would be larger by it.
    reader: Option<Box<BodyReader>>,
    is_begun: bool,
    is_ended: bool,
    read_bytes: u64,
    received_bytes: u64,
    content_bytes: u64,
}

impl<'c> Http1Content<'c> {
    pub(crate) fn new(
        socket: &'c ClientSocket,
        unread: &'c mut Vec<u8>,
        length: BodyLength,
        (trailers, named): (HeadLimits, NamedFields),
    ) -> Self {
        let is_ended = matches!(length, BodyLength::None | BodyLength::Exact(0));
        let reader = || BodyReader::new(length, trailers).without_trailers(named);
        Self {
            socket,
            unread,
            length,
            trailers,
            reader: (!is_ended).then(|| Box::new(reader())),
            is_begun: false,
            is_ended,
            read_bytes: 0,
            received_bytes: 0,
            content_bytes: 0,
        }
    }

    pub(crate) fn length(&self) -> BodyLength {
        self.length
    }

    pub(crate) fn check_received(&self) -> Result<(), BodyError> {
        if self.is_begun {
            return Ok(());
        }
        let mut reader = BodyReader::new(self.length, self.trailers);
        let mut rest = &self.unread[..];
        loop {
            let step = reader.step(rest)?;
            rest = &rest[step.consumed..];
            if !matches!(step.event, BodyEvent::Data(_)) {
                return Ok(());
            }
        }
    }

    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        into: &mut Vec<u8>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        if !self.is_begun {
            self.is_begun = true;
            let first = std::mem::take(self.unread);
            return Poll::Ready(self.take(&first, into));
        }
        if self.is_ended {
            return Poll::Ready(self.take(&[], into));
        }
        let Ok(count) = ready!(self.socket.poll_receive(cx, scratch)) else {
            return Poll::Ready(Err(ContentError::Disconnected));
        };
        if count == 0 {
            return Poll::Ready(Err(ContentError::Disconnected));
        }
        self.read_bytes += count as u64;
        Poll::Ready(self.take(&scratch[..count], into))
    }

    /// Decodes `input`.
    fn take(&mut self, input: &[u8], into: &mut Vec<u8>) -> Result<ReceivedContent, ContentError> {
        let mut rest = input;
        while !self.is_ended
            && let Some(reader) = &mut self.reader
        {
            let step = reader.step(rest).map_err(ContentError::Invalid)?;
            self.received_bytes += step.consumed as u64;
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => break,
                BodyEvent::Data(data) => {
                    self.content_bytes += data.len() as u64;
                    into.extend_from_slice(data);
                }
                BodyEvent::End => self.is_ended = true,
            }
        }
        if !rest.is_empty() {
            *self.unread = rest.to_vec();
        }
        Ok(if self.is_ended {
            ReceivedContent::Whole
        } else {
            ReceivedContent::More
        })
    }

    pub(crate) fn poll_settle(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        left: &mut usize,
    ) -> Poll<bool> {
        let mut dropped = Vec::new();
        loop {
            dropped.clear();
            let Ok(received) = ready!(self.poll_receive(cx, scratch, &mut dropped)) else {
                return Poll::Ready(false);
            };
            match left.checked_sub(dropped.len()) {
                Some(less) => *left = less,
                None => return Poll::Ready(false),
            }
            if received == ReceivedContent::Whole {
                return Poll::Ready(true);
            }
        }
    }

    #[expect(clippy::unused_self, reason = "HTTP/1.1 has no window of its own")]
    pub(crate) fn consumed(&mut self, _bytes: usize) {}

    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        self.reader.as_ref().map_or(&[], |reader| reader.trailers())
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// The connection, and the bytes read behind the head: it is not used for HTTP any more.
    pub(crate) fn release(&mut self) -> (&'c ClientSocket, Vec<u8>) {
        (self.socket, std::mem::take(self.unread))
    }
}
