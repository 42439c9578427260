//! The connection of a client: TCP, in clear or under TLS.

use crate::flow::read_once;
use crate::tls::TlsStream;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// The connection of a client. What it is was decided when it was accepted, and calls are static.
pub enum ClientSocket {
    /// In clear.
    Clear(TcpStream),
    /// Under TLS.
    Tls(Box<TlsStream>),
}

impl ClientSocket {
    /// The TCP connection that it is, or that its records are sent on.
    #[inline]
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.tcp(),
        }
    }

    /// Whether it is encrypted.
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether bytes were received from the kernel that are not read.
    pub fn has_received(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(stream) => stream.has_content(),
        }
    }

    /// Whether bytes were taken and encrypted of which [`Self::poll_write_vectored`] has not said
    /// that they are accepted: they cannot be taken back.
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Reads once; 0 at the end. Beside writes: it takes no more than a shared reference.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Clear(socket) => loop {
                ready!(socket.poll_read_ready(cx))?;
                match read_once(socket, into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return Poll::Ready(read),
                }
            },
            Self::Tls(stream) => stream.poll_read(cx, into),
        }
    }

    /// Writes once; how many bytes were accepted. Beside reads: it takes no more than a shared
    /// reference. Bytes that were not accepted are to be offered again before any others.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    #[inline]
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => return stream.poll_write_vectored(cx, slices),
        };
        loop {
            ready!(socket.poll_write_ready(cx))?;
            let written = match slices {
                [one] => socket.try_write(one),
                slices => socket.try_write_vectored(slices),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// The same, where more follows at once: bytes that do not fill a segment leave with those
    /// (`MSG_MORE`), after 200 ms in any case. TLS has records of its own.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_write_before_more(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let (Self::Clear(socket), [bytes]) = (self, slices) else {
            return self.poll_write_vectored(cx, slices);
        };
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        loop {
            ready!(socket.poll_write_ready(cx))?;
            let written = socket.try_io(Interest::WRITABLE, || Ok(send(socket, bytes, flags)?));
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// As [`AsyncRead::poll_read`].
    ///
    /// # Errors
    ///
    /// The connection is broken.
    #[inline]
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Clear(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => {
                let count = ready!(stream.poll_read(cx, buffer.initialize_unfilled()))?;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    }

    /// As [`AsyncWrite::poll_write`]; bytes that were not accepted are to be offered again before
    /// any others.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    #[inline]
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Clear(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// The same of a caller that reads before it writes again: in clear, a write takes no turn of
    /// those that the task has before it lets others run, and costs half the instructions.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    #[inline]
    pub fn poll_write_once(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Self::Clear(socket) = self {
            match socket.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
        self.poll_write(cx, bytes)
    }

    /// Says that nothing more follows, and closes the sending side. Beside reads: it takes no more
    /// than a shared reference.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Clear(socket) => match shutdown(socket, Shutdown::Write) {
                // the other side has closed it before
                Err(Errno::NOTCONN) => Poll::Ready(Ok(())),
                closed => Poll::Ready(closed.map_err(Into::into)),
            },
            Self::Tls(stream) => stream.poll_shutdown(cx),
        }
    }

    /// Says that nothing more follows, if that takes no wait, of a connection that is closed.
    pub fn announce_end(&self) {
        if let Self::Tls(stream) = self {
            stream.announce_end();
        }
    }
}
