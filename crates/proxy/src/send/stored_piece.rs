//! A piece of a stored response's content on its way to a client: from memory, or from disk.
//!
//! Content on disk is sent by `sendfile` if the page cache has it and it was verified there;
//! otherwise the disk's threads read and verify it, and it is sent from memory. The worker never
//! waits for a device.

use crate::send::disk_read::{ContentReadError, DiskRead};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use weir_disk::{ReadError, SendPiece};
use weir_net::http::ResponseSender;
use weir_store::{Block, PieceRef, StoredContent, StoredResponse};

/// Pieces handed to the kernel in one call.
const PIECES_MAX: usize = 16;

/// Bytes of a file handed to the kernel in one call: other connections of the worker wait for it.
const SENDFILE_BYTES_MAX: u64 = 512 * 1024;

/// A piece of a stored response's content.
#[derive(Debug)]
pub(crate) struct StoredPiece {
    /// The response, held while it is sent, whatever the store does with it; of one that is
    /// released, while bytes are handed to the kernel.
    response: Option<Arc<StoredResponse>>,
    /// The response, if it may be evicted before it is sent.
    released: Option<Weak<StoredResponse>>,
    /// Next byte to send.
    at: u64,
    /// One past the last byte to send.
    end: u64,
    /// What was read from disk, from `at` on.
    read: Option<(Block, usize)>,
    reading: Option<DiskRead>,
    read_error: Option<ContentReadError>,
}

/// How the next bytes are written.
enum Next {
    /// From memory.
    Memory,
    /// As a file has them.
    File(SendPiece),
}

impl StoredPiece {
    /// The content from `at` up to `end`.
    pub(crate) fn new(response: &Arc<StoredResponse>, at: u64, end: u64) -> Self {
        Self {
            response: Some(Arc::clone(response)),
            released: None,
            at,
            end,
            read: None,
            reading: None,
            read_error: None,
        }
    }

    /// Whether it is all of the content, and not empty.
    pub(crate) fn is_of_all(&self) -> bool {
        let length = self.body().map(StoredContent::len);
        self.at == 0 && self.end > 0 && length == Some(self.end)
    }

    /// From now on it does not keep the response in memory: if that is evicted, the rest cannot be
    /// read.
    pub(crate) fn release(&mut self) {
        self.released = self.response.take().map(|it| Arc::downgrade(&it));
    }

    /// Whether it was released.
    pub(crate) const fn is_released(&self) -> bool {
        self.released.is_some()
    }

    fn body(&self) -> Option<&StoredContent> {
        self.response.as_ref().map(|response| &response.body)
    }

    /// Whether all of it was written.
    pub(crate) fn is_sent(&self) -> bool {
        self.at >= self.end
    }

    /// The next byte of the content to be sent, and one past the last.
    pub(crate) fn rest(&self) -> (u64, u64) {
        (self.at, self.end)
    }

    /// Why it could not be read, if so.
    pub(crate) fn read_error(&self) -> Option<ContentReadError> {
        self.read_error
    }

    /// Ready once its first bytes can be sent, `by_file` if the stream can do so. Before the head
    /// is sent, a piece that cannot be read makes the request a miss.
    ///
    /// # Errors
    ///
    /// Why they cannot.
    pub(crate) async fn prepare(&mut self, by_file: bool) -> Result<(), ContentReadError> {
        if self.is_sent() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_next(by_file, cx)).await.map(|_| ())
    }

    /// Whether all of it is in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.body().is_some_and(StoredContent::is_in_memory)
    }

    /// Sends what is queued, then the next bytes of the piece, in one call, and with the last of
    /// them the end of the content; returns how many bytes of the piece were accepted.
    ///
    /// # Errors
    ///
    /// The client has disconnected, or the piece cannot be read: then there is a
    /// [`Self::read_error`].
    pub(crate) fn poll_send(
        &mut self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some(released) = &self.released {
            self.response = released.upgrade();
        }
        let sent = self.poll_send_held(response, cx);
        if self.is_released() {
            self.response = None;
        }
        sent
    }

    fn poll_send_held(
        &mut self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let next = match self.poll_next(response.can_send_file(), cx) {
            Poll::Ready(Ok(next)) => next,
            Poll::Ready(Err(error)) => {
                self.read_error = Some(error);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            // the head need not wait for it
            Poll::Pending => {
                return match response.poll_send(cx, &[], None) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    _ => Poll::Pending,
                };
            }
        };
        let sent = match next {
            Next::File(file) => {
                match ready!(response.poll_send_file(cx, file.fd(), file.offset, file.len))? {
                    // the file was cut under us
                    0 => {
                        self.read_error = Some(ContentReadError::Disk(ReadError::Damaged));
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                    sent => sent,
                }
            }
            Next::Memory => ready!(self.poll_send_memory(response, cx))?,
        };
        self.advance(sent);
        Poll::Ready(Ok(sent))
    }

    /// Finds out where the next bytes are, and reads them if they have to be.
    fn poll_next(
        &mut self,
        by_file: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Next, ContentReadError>> {
        if self.read.is_some() {
            return Poll::Ready(Ok(Next::Memory));
        }
        if self.reading.is_none() {
            let at = self.at;
            match self.body().and_then(|body| body.piece_ref_at(at)) {
                Some(PieceRef::Memory(_)) => return Poll::Ready(Ok(Next::Memory)),
                Some(PieceRef::Disk(extent)) => {
                    let most = (self.end - self.at).min(SENDFILE_BYTES_MAX);
                    if by_file && let Some(file) = extent.sendable(self.at, most) {
                        return Poll::Ready(Ok(Next::File(file)));
                    }
                    self.reading = Some(DiskRead::up_to(extent, self.at, self.end));
                }
                None => return Poll::Ready(Err(ContentReadError::NotThere)),
            }
        }
        if let Some(reading) = &mut self.reading {
            let block = ready!(reading.poll(cx));
            self.reading = None;
            self.read = Some((block?, 0));
        }
        Poll::Ready(Ok(Next::Memory))
    }

    fn poll_send_memory(
        &self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut pieces: [&[u8]; PIECES_MAX] = [&[]; PIECES_MAX];
        let mut count = 0;
        let mut at = self.at;
        while at < self.end && count < PIECES_MAX {
            let bytes = self.in_memory(at);
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
            pieces[count] = bytes;
            count += 1;
        }
        // the end leaves with the last of it, not by a call of its own
        let end = (at == self.end).then_some(&[][..]);
        response.poll_send(cx, &pieces[..count], end)
    }

    /// The content in memory from `at` up to the end of its block or of the piece.
    fn in_memory(&self, at: u64) -> &[u8] {
        let bytes = match &self.read {
            Some((block, from)) if at == self.at => &block[*from..],
            _ => self.body().map_or(&[][..], |body| body.at(at)),
        };
        let left = usize::try_from(self.end - at).unwrap_or(usize::MAX);
        &bytes[..bytes.len().min(left)]
    }

    fn advance(&mut self, count: usize) {
        self.at += count as u64;
        if let Some((block, from)) = &mut self.read {
            *from += count;
            if *from >= block.len() {
                self.read = None;
            }
        }
    }
}
