//! The connection to a next hop: TCP, in clear or under TLS.

use super::hop_key::HopKey;
use super::rules::ConnectionRules;
use crate::flow::read_once;
use crate::tls::TlsClient;
use crate::tls::client::NextHopTls;
use crate::tunnel::End;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// The connection to a next hop.
pub enum NextHopSocket {
    /// In clear.
    Clear(TcpStream),
    /// Under TLS.
    Tls(Box<TlsConnection>),
}

/// A connection under TLS.
pub struct TlsConnection {
    pub(super) stream: NextHopTls,
    /// What the next hop has proved its name to.
    pub(super) client: Arc<TlsClient>,
}

impl std::fmt::Debug for NextHopSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NextHopSocket").field(self.tcp()).finish()
    }
}

impl NextHopSocket {
    /// The TCP connection that it is, or that its records are sent on.
    #[inline]
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Clear(socket) => socket,
            Self::Tls(tls) => tls.stream.tcp(),
        }
    }

    /// Whether the next hop has sent something before it was sent a request, on a connection in
    /// clear that was opened just now. Under TLS it may have, such as tickets.
    pub(super) fn has_spoken_first(&self) -> bool {
        match self {
            Self::Clear(socket) => has_bytes(socket),
            Self::Tls(_) => false,
        }
    }

    /// Whether it is open, and has nothing to read; of one that HTTP/2 was chosen on, whether it is
    /// open: the next hop has the right to begin. By system calls, as the reactor may not have
    /// polled yet.
    pub(super) fn is_quiet(&self) -> bool {
        match self {
            Self::Clear(socket) => is_quiet(socket),
            Self::Tls(tls) => {
                let stream = &tls.stream;
                let has_begun = || self.has_chosen_http2() && stream.has_content();
                stream.is_quiet() || (has_begun() && !stream.is_end_announced())
            }
        }
    }

    /// Whether nothing is held that was received or is to be sent.
    pub(crate) fn is_clean(&self) -> bool {
        match self {
            Self::Clear(_) => true,
            Self::Tls(tls) => tls.stream.is_clean(),
        }
    }

    /// Whether the next hop has chosen HTTP/2 in the handshake.
    pub(crate) fn has_chosen_http2(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(tls) => tls.stream.has_protocol(b"h2"),
        }
    }

    /// Whether what it leads to has proved its name to those that `rules` trust.
    pub(crate) fn is_trusted(&self, hop: &HopKey, rules: &ConnectionRules) -> bool {
        match (&hop.tls, self) {
            (None, Self::Clear(_)) => true,
            (Some(trust), Self::Tls(tls)) => {
                let trusted = rules.tls.of(trust);
                trusted.is_some_and(|client| Arc::ptr_eq(client, &tls.client))
            }
            (None, Self::Tls(_)) | (Some(_), Self::Clear(_)) => false,
        }
    }

    /// Reads once, 0 at the end; beside writes. For a connection whose frames are shared by many
    /// requests.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(tls) => return tls.stream.poll_read(cx, into),
        };
        loop {
            ready!(socket.poll_read_ready(cx))?;
            match read_once(socket, into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Writes once; how many bytes were accepted. Those that were not are to be offered again
    /// before any others.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(tls) => return tls.stream.poll_write_vectored(cx, slices),
        };
        loop {
            ready!(socket.poll_write_ready(cx))?;
            match socket.try_write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Says that nothing more follows, and closes the sending side.
    pub(crate) fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Clear(socket) => match shutdown(socket, Shutdown::Write) {
                // the other side has closed it before
                Err(Errno::NOTCONN) => Poll::Ready(Ok(())),
                closed => Poll::Ready(closed.map_err(Into::into)),
            },
            Self::Tls(tls) => tls.stream.poll_shutdown(cx),
        }
    }

    /// The same, registered with the reactor of this thread.
    pub(super) fn moved_here(self) -> io::Result<Self> {
        match self {
            Self::Clear(socket) => {
                let socket = TcpStream::from_std(socket.into_std()?)?;
                Ok(Self::Clear(socket))
            }
            Self::Tls(tls) => {
                let TlsConnection { stream, client } = *tls;
                let stream = stream.moved_here()?;
                Ok(Self::Tls(Box::new(TlsConnection { stream, client })))
            }
        }
    }

    /// Bytes that were received and sent on the wire and that no link has counted: of a connection
    /// in clear none, as each is counted by the call that moves it.
    pub(super) fn take_moved(&self) -> (usize, usize) {
        match self {
            Self::Clear(_) => (0, 0),
            Self::Tls(tls) => (tls.stream.take_received(), tls.stream.take_sent()),
        }
    }

    /// Its two directions, which are used at once.
    pub(crate) fn split(&mut self) -> (ReadEnd<'_>, WriteEnd<'_>) {
        match self {
            Self::Clear(socket) => {
                let (read, write) = socket.split();
                (ReadEnd::Clear(read), WriteEnd::Clear(write))
            }
            Self::Tls(tls) => (ReadEnd::Tls(&tls.stream), WriteEnd::Tls(&tls.stream)),
        }
    }

    pub(crate) fn end(&self) -> End<'_> {
        match self {
            Self::Clear(socket) => End::Clear(socket),
            Self::Tls(tls) => End::NextHopTls(&tls.stream),
        }
    }
}

/// The direction from a next hop.
pub(crate) enum ReadEnd<'a> {
    Clear(ReadHalf<'a>),
    Tls(&'a NextHopTls),
}

impl ReadEnd<'_> {
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Clear(half) => half.as_ref(),
            Self::Tls(stream) => stream.tcp(),
        }
    }

    /// Reads once; how many bytes.
    #[inline]
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Clear(half) => {
                let mut buffer = ReadBuf::new(into);
                ready!(Pin::new(half).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
            Self::Tls(stream) => stream.poll_read(cx, into),
        }
    }

    /// Whether a read needs no call of the kernel: what was received was counted then.
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Self::Clear(_) => false,
            Self::Tls(stream) => stream.is_readable(),
        }
    }

    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(half) => read_once(half.as_ref(), into),
            Self::Tls(stream) => stream.try_read(into),
        }
    }

    /// Bytes on the wire of the last read, which had this outcome.
    pub(crate) fn take_received(&self, read: &io::Result<usize>) -> usize {
        match self {
            Self::Clear(_) => *read.as_ref().unwrap_or(&0),
            Self::Tls(stream) => stream.take_received(),
        }
    }

    /// Whether the end of the connection, which was read, is the end that the next hop has meant.
    /// One of a connection in clear is taken for that, for lack of better knowledge.
    pub(crate) fn is_end_announced(&self) -> bool {
        match self {
            Self::Clear(_) => true,
            Self::Tls(stream) => stream.is_end_announced(),
        }
    }
}

/// The direction to a next hop.
pub(crate) enum WriteEnd<'a> {
    Clear(WriteHalf<'a>),
    Tls(&'a NextHopTls),
}

impl WriteEnd<'_> {
    /// Writes once; how many bytes were accepted. Bytes that were not are to be offered again
    /// before any others.
    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Clear(half) => match slices {
                [one] => AsyncWrite::poll_write(Pin::new(half), cx, one),
                slices => AsyncWrite::poll_write_vectored(Pin::new(half), cx, slices),
            },
            Self::Tls(stream) => stream.poll_write_vectored(cx, slices),
        }
    }

    /// Bytes on the wire of the last write, which had this outcome.
    pub(crate) fn take_sent(&self, written: &Poll<io::Result<usize>>) -> usize {
        match self {
            Self::Clear(_) => match written {
                Poll::Ready(Ok(bytes)) => *bytes,
                Poll::Ready(Err(_)) | Poll::Pending => 0,
            },
            Self::Tls(stream) => stream.take_sent(),
        }
    }
}

/// Whether bytes have come on a connection; by a system call, as above.
fn has_bytes(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)
        .is_ok_and(|(_, count)| count > 0)
}

/// Whether a connection is open and has nothing to read; by a system call, as the reactor may not
/// have polled yet.
pub fn is_quiet(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)
        .is_err_and(|error| error == rustix::io::Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn next_hop_that_sends_before_it_was_asked_has_spoken_first() {
        for bytes in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b""] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("it is bound");
            let stream = TcpStream::connect(address).await.expect("it listens");
            let (mut next_hop, _) = listener.accept().await.expect("a connection");
            let socket = NextHopSocket::Clear(stream);
            assert!(socket.is_quiet() && !socket.has_spoken_first());
            next_hop.write_all(bytes).await.expect("sent");
            // the end of a connection is no response
            drop(next_hop);
            socket.tcp().readable().await.expect("something came");
            assert!(!socket.is_quiet());
            assert_eq!(socket.has_spoken_first(), !bytes.is_empty());
        }
    }
}
