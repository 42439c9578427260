//! The connection of a client as `h2` reads and writes it.

use super::shared::Shared;
use crate::client::ClientSocket;
use crate::flow::ClientFlow;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that the kernel may hold and not have sent yet. More would be ahead of frames that come
/// later and matter more; less costs calls.
const UNSENT_BYTES: u32 = 64 * 1024;

/// Bytes that are read at once: what was decoded of one read is looked at before the next.
const READ_BYTES_MAX: usize = 8 * 1024;

/// Slices that are written at once.
const SLICES_MAX: usize = 16;

/// Reads and writes a connection.
pub(super) struct Transport {
    shared: Rc<Shared>,
    /// What was read before HTTP/2 was known to be spoken.
    first: Vec<u8>,
    flow: ClientFlow,
}

impl Transport {
    pub(super) fn new(shared: Rc<Shared>, first: Vec<u8>) -> Self {
        let mut flow = ClientFlow::new(0);
        flow.set_unsent(shared.socket.tcp(), Some(UNSENT_BYTES));
        Self {
            shared,
            first,
            flow,
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.shared.is_reading_held() {
            // the driver polls again once it has looked
            return Poll::Pending;
        }
        let most = buffer.remaining().min(READ_BYTES_MAX);
        if !this.first.is_empty() {
            let rest = this.first.split_off(most.min(this.first.len()));
            let first = std::mem::replace(&mut this.first, rest);
            buffer.put_slice(&first);
            this.shared.received(&first);
            return Poll::Ready(Ok(()));
        }
        let into = buffer.initialize_unfilled_to(most);
        let count = ready!(this.shared.socket.poll_receive(cx, into))?;
        this.shared.received(&into[..count]);
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

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
        let this = self.get_mut();
        let Shared { socket, .. } = &*this.shared;
        let room = ready!(this.flow.poll_room(socket.tcp(), cx))?;
        let mut cut = [IoSlice::new(&[]); SLICES_MAX];
        let count = cut_to(slices, room, &mut cut);
        let written = ready!(socket.poll_write_vectored(cx, &cut[..count]))?;
        this.flow.wrote(written);
        let mut left = written;
        for slice in &cut[..count] {
            let passed = left.min(slice.len());
            this.shared.sent(&slice[..passed]);
            left -= passed;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What was accepted is with the kernel.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ClientSocket::poll_close(&self.get_mut().shared.socket, cx)
    }
}

/// Puts the first `room` bytes of `slices` into `cut`; how many slices these are.
fn cut_to<'s>(
    slices: &'s [IoSlice<'_>],
    mut room: usize,
    cut: &mut [IoSlice<'s>; SLICES_MAX],
) -> usize {
    let mut count = 0;
    let filled = slices.iter().filter(|slice| !slice.is_empty());
    for (slice, place) in filled.zip(cut) {
        if room == 0 {
            break;
        }
        let taken = room.min(slice.len());
        *place = IoSlice::new(&slice[..taken]);
        room -= taken;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_to_the_room() {
        let slices = [b"".as_slice(), b"head", b"", b"content"].map(IoSlice::new);
        for (room, expected) in [(4, "head"), (6, "headco"), (100, "headcontent"), (0, "")] {
            let mut cut = [IoSlice::new(&[]); SLICES_MAX];
            let count = cut_to(&slices, room, &mut cut);
            let pieces: Vec<&[u8]> = cut[..count].iter().map(|slice| &slice[..]).collect();
            assert_eq!(pieces.concat(), expected.as_bytes());
        }
    }
}
