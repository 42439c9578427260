//! Where a response goes: to a client, or to nobody when it is fetched for the store alone.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
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
    pub(crate) fn client(&self) -> Option<&TcpStream> {
        match self {
            Self::Client(half) => Some(half.as_ref()),
            Self::Nobody => None,
        }
    }

    /// Writes what can be written at once. By a shared reference, so that the connection can be
    /// watched meanwhile.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(client) = self.client() else {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        };
        loop {
            ready!(client.poll_write_ready(cx))?;
            match client.try_write_vectored(pieces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    /// Makes the end of the connection a reset, the one way to say "cut" where the content has no
    /// other end.
    pub(crate) fn end_by_reset(&self) {
        if let Some(client) = self.client() {
            end_by_reset(client);
        }
    }
}

/// The same for a connection.
pub(crate) fn end_by_reset(client: &TcpStream) {
    // if it cannot be set the client has gone already
    let _ = socket2::SockRef::from(client).set_linger(Some(Duration::ZERO));
}

impl AsyncWrite for Sink<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, pieces)
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
