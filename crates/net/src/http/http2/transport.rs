//! The connection of a client as `h2` reads and writes it.

use super::shared::Shared;
use crate::client::ClientSocket;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once: what was decoded of one read is looked at before the next.
pub(super) const READ_BYTES_MAX: usize = 8 * 1024;

/// Memory of a thread that its connections read through, bytes: a frame of the usual size.
const SCRATCH_BYTES: usize = 16 * 1024;

/// Reads and writes a connection.
pub(super) struct Transport {
    shared: Rc<Shared>,
    /// What was read and not given to `h2`: before HTTP/2 was known to be spoken, or behind as many
    /// heads as `h2` is given at once.
    read: Vec<u8>,
}

impl Transport {
    pub(super) fn new(shared: Rc<Shared>, first: Vec<u8>) -> Self {
        Self {
            shared,
            read: first,
        }
    }
}

/// Reads once by `receive`, at most `most` bytes and [`SCRATCH_BYTES`], and appends them to
/// `buffer`. They pass through memory of the thread. To read into `buffer` itself, all of it would
/// have to be initialized for each read, and an idle connection would hold pages into which no byte
/// was received.
pub(super) fn poll_read_into(
    buffer: &mut ReadBuf<'_>,
    most: usize,
    receive: impl FnOnce(&mut [u8]) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<()>> {
    thread_local! {
        static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let most = most.min(scratch.len());
        let count = ready!(receive(&mut scratch[..most]))?;
        buffer.put_slice(&scratch[..count]);
        Poll::Ready(Ok(()))
    })
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.shared.is_reading_held() || this.shared.hold_reading_for_heads() {
            // the driver polls again once it has looked
            return Poll::Pending;
        }
        if this.shared.is_streams_turn() {
            // they were woken before
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = buffer.remaining().min(READ_BYTES_MAX);
        let shared = &this.shared;
        if !this.read.is_empty() {
            let given = most.min(this.read.len());
            let given = shared.before_head(&this.read[..given]);
            buffer.put_slice(&this.read[..given]);
            shared.received(&this.read[..given]);
            match given == this.read.len() {
                true => this.read = Vec::new(),
                false => drop(this.read.drain(..given)),
            }
            return Poll::Ready(Ok(()));
        }
        poll_read_into(buffer, most, |into| {
            let count = ready!(shared.socket.poll_receive(cx, into))?;
            let given = shared.before_head(&into[..count]);
            this.read.extend_from_slice(&into[given..count]);
            shared.received(&into[..given]);
            Poll::Ready(Ok(given))
        })
    }
}

/// Frames are gathered: the connection sends them when `h2` has no more at the moment
/// ([`Shared::poll_sent`]).
impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let shared = &self.get_mut().shared;
        if shared.send_buffer.borrow().is_full() {
            ready!(shared.poll_sent(cx))?;
        }
        shared.queue.gather();
        let mut gathered = 0;
        for slice in slices {
            let taken = shared.send_buffer.borrow_mut().gather(slice);
            shared.sent(&slice[..taken]);
            gathered += taken;
            if taken < slice.len() {
                break;
            }
        }
        Poll::Ready(Ok(gathered))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.get_mut().shared;
        ready!(shared.poll_sent(cx))?;
        ClientSocket::poll_close(&shared.socket, cx)
    }
}
