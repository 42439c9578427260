//! What still has to be written to a client: bytes, then perhaps a piece of a stored response.
//!
//! Empty most of the time: what the kernel takes at once never gets here.

pub(crate) use crate::send::stored_piece::StoredPiece;

use crate::send::disk_read::ContentReadError;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// Bytes waiting for the client.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    stored: Option<Box<StoredPiece>>,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.stored.is_none()
    }

    /// Adds bytes behind those that wait; not allowed behind a stored piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        debug_assert!(self.stored.is_none());
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a piece of a stored response as the last thing.
    pub(crate) fn push_stored(&mut self, piece: StoredPiece) {
        if !piece.is_sent() {
            self.stored = Some(Box::new(piece));
        }
    }

    /// Writes until everything is with the kernel.
    pub(crate) fn poll_send(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            ready!(self.poll_send_some(stream, cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes once; yields the bytes the kernel took. Memory that is no longer needed is given back
    /// at once.
    pub(crate) fn poll_send_some(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let written = ready!(self.poll_write_some(stream, cx))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        if self.is_empty() {
            *self = Self::default();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_some(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let front = &self.bytes[self.sent..];
        let written = match &mut self.stored {
            None => ready!(Pin::new(stream).poll_write(cx, front))?,
            Some(piece) => ready!(piece.poll_write(stream, front, cx))?,
        };
        self.sent += written.min(front.len());
        if self.stored.as_ref().is_some_and(|piece| piece.is_sent()) {
            self.stored = None;
        }
        Poll::Ready(Ok(written))
    }

    /// What was not written of the bytes, and of the piece, which could not be read: the next byte
    /// of the content, and one past the last. `None` without a piece.
    pub(crate) fn into_unread(mut self) -> Option<(Vec<u8>, u64, u64)> {
        let (at, end) = self.stored?.rest();
        Some((self.bytes.split_off(self.sent), at, end))
    }

    /// Why the piece could not be read, if so.
    pub(crate) fn read_error(&self) -> Option<ContentReadError> {
        self.stored.as_ref().and_then(|piece| piece.read_error())
    }
}
