//! A connection of the proxy itself by TLS, as of a program that is a client and nothing else.

use super::NextHopTls;
use super::handshake::handshake;
use super::tls_client::TlsClient;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// A connection whose other side has proved its name.
pub struct VerifiedStream(NextHopTls);

impl VerifiedStream {
    /// Connects to the first of `addresses` that accepts, which must prove that it is `host`: a
    /// name or an address, without brackets; by `until`.
    ///
    /// # Errors
    ///
    /// None accepts, or the one that does proves nothing; the text says which.
    pub async fn connect(
        client: &TlsClient,
        addresses: &[SocketAddr],
        host: &str,
        until: Instant,
    ) -> io::Result<Self> {
        let mut last = io::Error::other("it has no address");
        for address in addresses {
            let socket = match timeout_at(until, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => socket,
                Ok(Err(error)) => {
                    last = error;
                    continue;
                }
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            };
            let stream = handshake(client, socket, (host, false), until).await;
            return stream
                .map(Self)
                .map_err(|failure| io::Error::other(failure.text));
        }
        Err(last)
    }
}

impl AsyncRead for VerifiedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.0.poll_read(cx, buffer.initialize_unfilled()))?;
        // what ends without the announcement may be cut by another (RFC 8446 §6.1)
        if read == 0 && buffer.remaining() > 0 && !self.0.is_end_announced() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for VerifiedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        content: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, content)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_shutdown(cx)
    }
}
