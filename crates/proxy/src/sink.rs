//! Where a response goes: to a client, or to nobody when it is fetched for the store alone.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;

/// The taker of a response.
pub(crate) enum Sink<'a> {
    /// A client.
    Client(WriteHalf<'a>),
    /// Nobody: a background validation.
    Nobody,
}

impl Sink<'_> {
    /// The client's connection, if there is a client.
    pub(crate) fn stream(&self) -> Option<&TcpStream> {
        match self {
            Self::Client(half) => Some(half.as_ref()),
            Self::Nobody => None,
        }
    }

    /// Makes the end of the connection a reset, the one way to say "cut" where the content has no other end.
    pub(crate) fn end_by_reset(&self) {
        if let Self::Client(half) = self {
            end_by_reset(half.as_ref());
        }
    }
}

/// The same for a connection.
pub(crate) fn end_by_reset(stream: &TcpStream) {
    // if it cannot be set the client has gone already
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

impl AsyncWrite for Sink<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Client(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Nobody => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Client(half) => Pin::new(half).poll_write_vectored(cx, pieces),
            Self::Nobody => Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Client(half) => Pin::new(half).poll_shutdown(cx),
            Self::Nobody => Poll::Ready(Ok(())),
        }
    }
}
