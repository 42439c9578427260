//! One end of a tunnel: a socket, or a connection under TLS.

use crate::client::ClientSocket;
use crate::tls::TlsStream;
use rustix::net::{Shutdown, shutdown};
use std::future::poll_fn;
use std::io;
use tokio::net::TcpStream;

/// One end of a tunnel.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// In clear.
    Clear(&'a TcpStream),
    /// Under TLS: bytes are copied, as they are encrypted in this process.
    Tls(&'a TlsStream),
}

impl<'a> End<'a> {
    pub(super) const fn is_tls(self) -> bool {
        matches!(self, Self::Tls(_))
    }

    pub(super) fn tcp(self) -> &'a TcpStream {
        match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.tcp(),
        }
    }

    /// Ready when there may be something to read.
    pub(super) async fn readable(self) -> io::Result<()> {
        match self {
            Self::Tls(stream) if stream.has_content() => Ok(()),
            end => end.tcp().readable().await,
        }
    }

    pub(super) async fn writable(self) -> io::Result<()> {
        self.tcp().writable().await
    }

    pub(super) fn try_read(self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_read(into),
            Self::Tls(stream) => stream.try_read(into),
        }
    }

    /// Bytes that were not taken are to be offered again before any others.
    pub(super) fn try_write(self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_write(bytes),
            Self::Tls(stream) => stream.try_write(bytes),
        }
    }

    /// Says that no more bytes follow.
    pub(super) async fn close(self) -> io::Result<()> {
        match self {
            Self::Clear(socket) => Ok(shutdown(socket, Shutdown::Write)?),
            Self::Tls(stream) => poll_fn(|cx| stream.poll_shutdown(cx)).await,
        }
    }
}

impl<'a> From<&'a ClientSocket> for End<'a> {
    fn from(client: &'a ClientSocket) -> Self {
        match client {
            ClientSocket::Clear(socket) => Self::Clear(socket),
            ClientSocket::Tls(stream) => Self::Tls(stream),
        }
    }
}
