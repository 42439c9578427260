//! The connection to a next hop as `h2` reads and writes it.

use super::shared::Shared;
use crate::http::http2::send_buffer::written_of;
use crate::http::http2::transport::poll_read_into;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once: a frame of the usual size.
const READ_BYTES_MAX: usize = 16 * 1024;

/// Reads and writes a connection.
pub(super) struct Transport(pub(super) Rc<Shared>);

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let shared = &self.0;
        if shared.is_streams_turn() {
            shared.set_read_handled(true);
            // they were woken before
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = buffer.remaining().min(READ_BYTES_MAX);
        poll_read_into(buffer, most, |into| {
            let read = shared.socket.poll_receive(cx, into);
            // it is asked for more once what it has is handled
            shared.set_read_handled(read.is_pending());
            if let Poll::Ready(Ok(count)) = &read {
                shared.received(&into[..*count]);
            }
            read
        })
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let shared = &self.0;
        let written = ready!(shared.socket.poll_send(cx, slices))?;
        written_of(slices, written).for_each(|bytes| shared.sent(bytes));
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What was accepted is with the kernel.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_close(cx)
    }
}
