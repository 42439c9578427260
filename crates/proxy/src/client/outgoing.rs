//! Bytes that still have to be written to a client.
//!
//! Empty most of the time: what the kernel takes at once never gets here.

use std::io;
use std::task::{Context, Poll, ready};
use weir_net::client::ClientSocket;

/// Bytes waiting for the client.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Adds bytes behind those that wait.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes until the kernel has accepted everything. Memory that is not needed any more is freed
    /// at once.
    pub(crate) fn poll_send(
        &mut self,
        stream: &mut ClientSocket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let waiting = &self.bytes[self.sent..];
            match ready!(stream.poll_write(cx, waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        *self = Self::default();
        Poll::Ready(Ok(()))
    }
}
