//! The two queues of a connection under repair.

use crate::flow::socket::{SocketOption, number, set_number};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes given to a queue at once: the kernel makes one buffer of them.
const PIECE_BYTES: usize = 16 * 1024;

/// A queue of a connection, by its number for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Bytes received and not read.
    Received = 1,
    /// Bytes written and not acknowledged.
    Written = 2,
}

impl Queue {
    fn choose(self, socket: BorrowedFd<'_>) -> io::Result<()> {
        set_number(socket, SocketOption::TCP_REPAIR_QUEUE, self as u32)
    }

    /// The sequence number behind its last byte.
    pub(super) fn end(self, socket: BorrowedFd<'_>) -> io::Result<u32> {
        self.choose(socket)?;
        number(socket, SocketOption::TCP_QUEUE_SEQ)
    }

    /// Sets the sequence number of its first byte: it is empty, and the socket is not connected.
    pub(super) fn begin_at(self, socket: BorrowedFd<'_>, sequence: u32) -> io::Result<()> {
        self.choose(socket)?;
        set_number(socket, SocketOption::TCP_QUEUE_SEQ, sequence)
    }

    /// A copy of its bytes, of which there are `count` at most.
    pub(super) fn copy(self, socket: BorrowedFd<'_>, count: usize) -> io::Result<Vec<u8>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.choose(socket)?;
        let mut bytes = vec![0; count];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let length = match recv(socket, &mut bytes[..], flags) {
            Ok((length, _)) => length,
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Appends to it, without a packet.
    pub(super) fn fill(self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.choose(socket)?;
        for piece in bytes.chunks(PIECE_BYTES) {
            write(socket, piece)?;
        }
        Ok(())
    }
}

/// Until another queue is chosen, a connection under repair sends no byte that it has not sent
/// yet: where the kernel would send some, it only counts them as sent. If it sent them, the other
/// machine would not know that, and takes no acknowledgement of what it has not sent (RFC 9293
/// §3.10.7.4): with more under way than its window, the connection would stand still.
pub(super) fn hold_back(socket: BorrowedFd<'_>) -> io::Result<()> {
    Queue::Written.choose(socket)
}

/// Writes all of it at once: there is room for it in the socket's buffer.
pub(super) fn write(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match send(socket, bytes, flags) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
