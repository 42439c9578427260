//! What still has to be written to a client: bytes, then perhaps a piece of a stored response.
//!
//! Empty most of the time: what the kernel takes at once never gets here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use weir_store::StoredResponse;

/// Pieces handed to the kernel in one call.
const PIECES_MAX: usize = 16;

/// Bytes waiting for the client.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    stored: Option<Box<StoredPiece>>,
}

/// A piece of a stored response's content.
#[derive(Debug)]
pub(crate) struct StoredPiece {
    /// The response, held while it is sent, whatever the store does with it.
    pub response: Arc<StoredResponse>,
    /// Next byte to send.
    pub at: u64,
    /// One past the last byte to send.
    pub end: u64,
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
        if piece.at < piece.end {
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

    /// Writes once; yields the bytes the kernel took. Memory that is no longer needed is given back at once.
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
        self.advance(written);
        if self.is_empty() {
            *self = Self::default();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_write_some(
        &self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        if self.sent < self.bytes.len() {
            pieces[0] = IoSlice::new(&self.bytes[self.sent..]);
            count = 1;
        }
        if let Some(piece) = &self.stored {
            let mut at = piece.at;
            while at < piece.end && count < PIECES_MAX {
                let block = piece.slice(at);
                debug_assert!(!block.is_empty(), "a piece that is not stored");
                if block.is_empty() {
                    // the write says so, and the client is cut rather than told a lie
                    break;
                }
                at += block.len() as u64;
                pieces[count] = IoSlice::new(block);
                count += 1;
            }
        }
        Pin::new(stream).poll_write_vectored(cx, &pieces[..count])
    }

    fn advance(&mut self, written: usize) {
        let of_bytes = written.min(self.bytes.len() - self.sent);
        self.sent += of_bytes;
        if let Some(piece) = &mut self.stored {
            piece.at += (written - of_bytes) as u64;
            if piece.at >= piece.end {
                self.stored = None;
            }
        }
    }
}

impl StoredPiece {
    /// The content from `at` up to the end of its block or of the piece.
    pub(crate) fn slice(&self, at: u64) -> &[u8] {
        let block = self.response.body.at(at);
        let left = usize::try_from(self.end - at).unwrap_or(usize::MAX);
        &block[..block.len().min(left)]
    }
}
