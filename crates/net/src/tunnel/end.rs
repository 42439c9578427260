//! One end of a tunnel: a socket, or a connection under TLS.

use crate::client::ClientSocket;
use crate::tls::TlsStream;
use crate::tls::client::NextHopTls;
use rustix::net::{Shutdown, shutdown};
use std::future::poll_fn;
use std::io;
use tokio::net::TcpStream;

/// One end of a tunnel.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// In clear.
    Clear(&'a TcpStream),
    /// Of a client, under TLS: bytes are copied, as they are encrypted in this process.
    Tls(&'a TlsStream),
    /// The same of a next hop.
    NextHopTls(&'a NextHopTls),
}

impl<'a> End<'a> {
    pub(super) const fn is_tls(self) -> bool {
        matches!(self, Self::Tls(_) | Self::NextHopTls(_))
    }

    pub(crate) fn tcp(self) -> &'a TcpStream {
        match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.tcp(),
            Self::NextHopTls(stream) => stream.tcp(),
        }
    }

    /// Whether a read needs no call of the kernel.
    pub(crate) fn is_readable(self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(stream) => stream.is_readable(),
            Self::NextHopTls(stream) => stream.is_readable(),
        }
    }

    /// Ready when there may be something to read.
    pub(super) async fn readable(self) -> io::Result<()> {
        match self.is_readable() {
            true => Ok(()),
            false => self.tcp().readable().await,
        }
    }

    pub(crate) async fn writable(self) -> io::Result<()> {
        self.tcp().writable().await
    }

    pub(crate) fn try_read(self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_read(into),
            Self::Tls(stream) => stream.try_read(into),
            Self::NextHopTls(stream) => stream.try_read(into),
        }
    }

    /// Bytes that were not taken are to be offered again before any others.
    pub(crate) fn try_write(self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_write(bytes),
            Self::Tls(stream) => stream.try_write(bytes),
            Self::NextHopTls(stream) => stream.try_write(bytes),
        }
    }

    /// Of a next hop under TLS: bytes that were received on the wire since this was last called.
    pub(crate) fn take_received(self) -> Option<usize> {
        match self {
            Self::Clear(_) | Self::Tls(_) => None,
            Self::NextHopTls(stream) => Some(stream.take_received()),
        }
    }

    /// Of a next hop under TLS: bytes that were sent on the wire since this was last called.
    pub(crate) fn take_sent(self) -> Option<usize> {
        match self {
            Self::Clear(_) | Self::Tls(_) => None,
            Self::NextHopTls(stream) => Some(stream.take_sent()),
        }
    }

    /// Says that no more bytes follow.
    pub(crate) async fn close(self) -> io::Result<()> {
        match self {
            Self::Clear(socket) => Ok(shutdown(socket, Shutdown::Write)?),
            Self::Tls(stream) => poll_fn(|cx| stream.poll_shutdown(cx)).await,
            Self::NextHopTls(stream) => poll_fn(|cx| stream.poll_shutdown(cx)).await,
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
