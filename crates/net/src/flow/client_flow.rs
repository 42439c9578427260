//! Bounds the bytes in a client's socket that are not sent yet.
//!
//! `TCP_NOTSENT_LOWAT` makes a socket writable only while less than half of it is unsent; the size
//! of the send buffer stays with the kernel, which knows what is on its way. But the kernel
//! compares only when it begins a new piece of memory of up to 64 KiB, so a small mark alone does
//! not bound what a writer adds. So the socket is polled for writability before each share, and no
//! more than one share is written then.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The bound on unsent bytes in one client's socket: the option as it is set, and the bytes that
/// may be written before the next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFlow {
    /// Bytes that may be unsent, and that are written after one poll.
    unsent: Option<u32>,
    /// What `TCP_NOTSENT_LOWAT` is, 0 as long as we have not set it.
    mark: u32,
    /// Bytes that may be written before the next poll.
    credit: u32,
    /// Bytes that were written before there was a bound.
    written: u64,
}

impl ClientFlow {
    /// Nothing is bounded until [`ClientFlow::set_unsent`]; `written` bytes may be unsent by now.
    pub fn new(written: u64) -> Self {
        Self {
            unsent: None,
            mark: 0,
            credit: 0,
            written,
        }
    }

    /// Bounds the bytes that may be unsent; one write adds at most as many. `None` bounds nothing.
    /// The first share costs no call to the kernel, so that a response that fits one costs none.
    pub fn set_unsent(&mut self, client: &TcpStream, unsent: Option<u32>) {
        if let (None, Some(unsent)) = (self.unsent, unsent) {
            // what is unsent, and one write
            let written = u32::try_from(self.written).unwrap_or(u32::MAX);
            self.credit = unsent.saturating_mul(2).saturating_sub(written);
        }
        self.unsent = unsent;
        match unsent {
            None => self.release(client),
            Some(unsent) if self.mark > 0 && differs(self.mark, unsent) => {
                self.set_mark(client, unsent);
            }
            Some(_) => {}
        }
    }

    /// How many bytes may be written now; ready when that is at least one.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn poll_room(
        &mut self,
        client: &TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Some(unsent) = self.unsent else {
            return Poll::Ready(Ok(usize::MAX));
        };
        if self.credit == 0 {
            if self.mark == 0 {
                self.set_mark(client, unsent);
            }
            ready!(poll_drained(client, cx))?;
            self.credit = unsent;
        }
        Poll::Ready(Ok(self.credit as usize))
    }

    /// The kernel took so many bytes.
    pub fn wrote(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.credit = self.credit.saturating_sub(bytes);
    }

    /// Bounds nothing any more.
    pub fn release(&mut self, client: &TcpStream) {
        self.unsent = None;
        if self.mark > 0 {
            self.set_mark(client, 0);
        }
    }

    fn set_mark(&mut self, client: &TcpStream, mark: u32) {
        // a socket that has been closed refuses; the next write fails then
        if SockRef::from(client).set_tcp_notsent_lowat(mark).is_ok() {
            self.mark = mark;
        }
    }
}

/// Ready when less than half of the mark is unsent. poll(2) makes the kernel notify the reactor
/// when that changes.
fn poll_drained(client: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(client.poll_write_ready(cx))?;
        match client.try_io(Interest::WRITABLE, || is_drained(client)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            drained => return Poll::Ready(drained),
        }
    }
}

fn is_drained(client: &TcpStream) -> io::Result<()> {
    let mut sockets = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::OUT)];
    match poll(&mut sockets, Some(&Timespec::default()))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

/// By a quarter or more.
const fn differs(one: u32, other: u32) -> bool {
    one.abs_diff(other) > one / 4
}
