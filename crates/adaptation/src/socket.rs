//! A connection between the two sides of ICAP: TCP, or a socket in the file system.

use rustix::net::{RecvFlags, sockopt};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream as IdleUnix;
use std::task::{Context, Poll, ready};
use tokio::net::{TcpStream, UnixStream};

/// A connection in use, on the runtime of its thread.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection that no runtime looks after.
#[derive(Debug)]
pub(crate) enum IdleSocket {
    Tcp(std::net::TcpStream),
    Unix(IdleUnix),
}

/// What the kernel holds of a connection in each direction, bytes; it counts its own bookkeeping in
/// twice as many. Content on its way through a service is read ahead of the client by the buffers
/// of both sides: the kernel would let each grow to megabytes.
const BUFFER_BYTES: usize = 32 * 1024;

impl Socket {
    /// A connection that was just opened.
    ///
    /// # Errors
    ///
    /// It has ended already.
    pub(crate) fn tcp(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES)?;
        sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES)?;
        Ok(Self::Tcp(socket))
    }

    /// Receives into `into`, which is not empty; 0: the peer has closed.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let read = match self {
                Self::Tcp(socket) => {
                    ready!(socket.poll_read_ready(cx))?;
                    socket.try_read(into)
                }
                Self::Unix(socket) => {
                    ready!(socket.poll_read_ready(cx))?;
                    socket.try_read(into)
                }
            };
            match read {
                Err(error) if is_transient(&error) => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Sends the beginning of `bytes`.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let written = match self {
                Self::Tcp(socket) => {
                    ready!(socket.poll_write_ready(cx))?;
                    socket.try_write(bytes)
                }
                Self::Unix(socket) => {
                    ready!(socket.poll_write_ready(cx))?;
                    socket.try_write(bytes)
                }
            };
            match written {
                Err(error) if is_transient(&error) => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Takes it from the runtime of this thread.
    pub(crate) fn idle(self) -> io::Result<IdleSocket> {
        match self {
            Self::Tcp(socket) => socket.into_std().map(IdleSocket::Tcp),
            Self::Unix(socket) => socket.into_std().map(IdleSocket::Unix),
        }
    }
}

impl IdleSocket {
    /// Whether the peer has neither closed nor sent something, which would answer no request.
    pub(crate) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = rustix::net::recv(self, &mut [0_u8; 1], flags);
        matches!(peeked, Err(error) if error == rustix::io::Errno::AGAIN)
    }

    /// Gives it to the runtime of this thread.
    pub(crate) fn used(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(socket) => TcpStream::from_std(socket).map(Socket::Tcp),
            Self::Unix(socket) => UnixStream::from_std(socket).map(Socket::Unix),
        }
    }
}

impl AsFd for IdleSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
