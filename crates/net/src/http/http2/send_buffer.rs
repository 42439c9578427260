//! Frames on their way to the socket.

use crate::client::ClientSocket;
use crate::flow::ClientFlow;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

/// Frames that are gathered before they are written, bytes. `h2` offers them one by one; a call of
/// the kernel and a record of TLS for each would cost more than all the rest of a small response.
pub(super) const GATHERED_BYTES_MAX: usize = 64 * 1024;

/// Bytes that the kernel may hold and not have sent yet. More would be ahead of frames that come
/// later and matter more; less costs calls.
const UNSENT_BYTES: u32 = 64 * 1024;

/// The size of a page, bytes.
const PAGE_BYTES: usize = 4096;

/// How far behind the boundary of a page frames begin, bytes. Content comes from a page's beginning
/// as often as not, and its place here is a few bytes further, behind the heads of frames. Some
/// processors take thirty times as long to copy between addresses that are so near but for whole
/// pages (glibc bug 30994). Not that of records of TLS, which frames are copied to.
const OFFSET: usize = PAGE_BYTES / 2;

thread_local! {
    /// The buffer of the connection of this thread that has written last.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What was gathered of the frames of a connection and is not written. While there is nothing it
/// owns no memory.
pub(super) struct SendBuffer {
    /// What was gathered, behind a gap.
    bytes: Vec<u8>,
    /// The gap, bytes.
    gap: usize,
    /// Where what is not written begins.
    written: usize,
    flow: ClientFlow,
}

impl SendBuffer {
    pub(super) fn new(socket: &ClientSocket) -> Self {
        let mut flow = ClientFlow::new(0);
        flow.set_unsent(socket.tcp(), Some(UNSENT_BYTES));
        Self {
            bytes: Vec::new(),
            gap: 0,
            written: 0,
            flow,
        }
    }

    /// Bytes that are not written.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Whether it takes no more before some of it is written.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() - self.gap >= GATHERED_BYTES_MAX
    }

    /// Takes what there is room for of `slice`; how much that is.
    pub(super) fn gather(&mut self, slice: &[u8]) -> usize {
        if self.bytes.capacity() == 0 {
            self.bytes = SPARE.take();
            if self.bytes.is_empty() {
                self.bytes = behind_gap();
            }
            self.gap = self.bytes.len();
            self.written = self.gap;
        }
        let room = GATHERED_BYTES_MAX.saturating_sub(self.bytes.len() - self.gap);
        let taken = room.min(slice.len());
        self.bytes.extend_from_slice(&slice[..taken]);
        taken
    }

    /// Writes all of it; ready when that is done, or cannot be.
    pub(super) fn poll_write(
        &mut self,
        socket: &ClientSocket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.len() > 0 {
            let room = ready!(self.flow.poll_room(socket.tcp(), cx));
            let end = self.bytes.len().min(self.written.saturating_add(room?));
            let slice = IoSlice::new(&self.bytes[self.written..end]);
            let count = ready!(socket.poll_write_vectored(cx, &[slice]))?;
            self.flow.wrote(count);
            self.written += count;
        }
        self.clear();
        Poll::Ready(Ok(()))
    }

    /// Forgets what is not written.
    pub(super) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(self.gap);
        (self.gap, self.written) = (0, 0);
        if bytes.capacity() > 0 {
            SPARE.set(bytes);
        }
    }
}

/// A buffer that is filled as far as nothing is gathered.
fn behind_gap() -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(PAGE_BYTES + GATHERED_BYTES_MAX);
    let gap = OFFSET.wrapping_sub(bytes.as_ptr().addr()) % PAGE_BYTES;
    // never empty: that is how a new one is known
    bytes.resize(if gap == 0 { PAGE_BYTES } else { gap }, 0);
    bytes
}

/// The first `written` bytes of `slices`.
pub(super) fn written_of<'s>(
    slices: &'s [IoSlice<'_>],
    written: usize,
) -> impl Iterator<Item = &'s [u8]> {
    let mut left = written;
    slices.iter().map(move |slice| {
        let passed = left.min(slice.len());
        left -= passed;
        &slice[..passed]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_the_first_bytes_of_the_slices() {
        let slices = [b"head".as_slice(), b"", b"content"].map(IoSlice::new);
        for (written, expected) in [(0, ""), (3, "hea"), (6, "headco"), (11, "headcontent")] {
            let all: Vec<&[u8]> = written_of(&slices, written).collect();
            assert_eq!(all.concat(), expected.as_bytes());
        }
    }

    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn frames_are_bounded_written_in_order_and_leave_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut client, socket) = (client.unwrap(), ClientSocket::Clear(accepted.unwrap().0));
        let mut buffer = SendBuffer::new(&socket);
        let offered: Vec<u8> = (0..=250).cycle().take(2 * GATHERED_BYTES_MAX).collect();
        // of memory that is new, and that was used before
        for _ in 0..2 {
            let mut taken = 0;
            for piece in offered.chunks(1000) {
                taken += buffer.gather(piece);
            }
            assert_eq!((taken, buffer.len()), (GATHERED_BYTES_MAX, taken));
            assert!(buffer.is_full());
            let begin = buffer.bytes[buffer.gap..].as_ptr().addr();
            assert_eq!(begin % PAGE_BYTES, OFFSET);
            let mut received = vec![0; taken];
            let written = std::future::poll_fn(|cx| buffer.poll_write(&socket, cx));
            let (written, read) = tokio::join!(written, client.read_exact(&mut received));
            written.unwrap();
            read.unwrap();
            assert!(received == offered[..taken]);
            assert_eq!((buffer.len(), buffer.bytes.capacity()), (0, 0));
        }
    }
}
