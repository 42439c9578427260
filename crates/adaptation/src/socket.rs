//! A connection between the two sides of ICAP: TCP, or a socket in the file system.

use rustix::net::{RecvFlags, sockopt};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime;

/// A connection, on the runtime of the thread that uses it.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection that is not in use. It stays with the runtime that used it last: taking it from
/// there costs two system calls, and a turn of the runtime until it is known to be writable.
#[derive(Debug)]
pub(crate) struct IdleSocket {
    socket: Socket,
    runtime: runtime::Id,
}

/// Bytes that are received at once.
const READ_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    /// What is received is put here first: an idle connection has no buffer of its own.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES_MAX]);
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

    /// Receives at most 16 KiB, and appends them to `into`; 0: the peer has closed. After fewer it
    /// is known that there is nothing more, and the next call asks the kernel only once there is.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut read = ReadBuf::new(scratch);
            loop {
                let polled = match self {
                    Self::Tcp(socket) => Pin::new(socket).poll_read(cx, &mut read),
                    Self::Unix(socket) => Pin::new(socket).poll_read(cx, &mut read),
                };
                match ready!(polled) {
                    Err(error) if is_transient(&error) => {}
                    Err(error) => return Poll::Ready(Err(error)),
                    Ok(()) => break,
                }
            }
            into.extend_from_slice(read.filled());
            Poll::Ready(Ok(read.filled().len()))
        })
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

    /// It is not in use any more, on the runtime of this thread.
    pub(crate) fn idle(self) -> IdleSocket {
        IdleSocket {
            socket: self,
            runtime: runtime::Handle::current().id(),
        }
    }

    /// Gives it to the runtime of this thread, from that of another.
    fn moved(self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => TcpStream::from_std(socket.into_std()?).map(Self::Tcp),
            Self::Unix(socket) => UnixStream::from_std(socket.into_std()?).map(Self::Unix),
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

    /// The runtime that it is with.
    pub(crate) const fn runtime(&self) -> runtime::Id {
        self.runtime
    }

    /// Gives it to the runtime of this thread.
    pub(crate) fn used(self) -> io::Result<Socket> {
        match runtime::Handle::current().id() == self.runtime {
            true => Ok(self.socket),
            false => self.socket.moved(),
        }
    }
}

impl AsFd for IdleSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
