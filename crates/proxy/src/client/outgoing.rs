//! Bytes that still have to be written to a client.
//!
//! Empty most of the time: what the kernel takes at once never gets here.

use std::io;
use std::task::{Context, Poll, ready};
use weir_net::client::ClientSocket;

/// Bytes waiting for the client. While there are none it is one word of an idle connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds bytes behind those that wait.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let waiting = self.0.get_or_insert_default();
            waiting.bytes.extend_from_slice(bytes);
        }
    }

    /// Writes until the kernel has accepted everything. Memory that is not needed any more is freed
    /// at once.
    pub(crate) fn poll_send(
        &mut self,
        stream: &mut ClientSocket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(waiting) = &mut self.0 {
            while let left @ [_, ..] = &waiting.bytes[waiting.sent..] {
                match ready!(stream.poll_write(cx, left))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => waiting.sent += written,
                }
            }
        }
        *self = Self::default();
        Poll::Ready(Ok(()))
    }
}
