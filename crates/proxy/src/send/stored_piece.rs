//! A piece of a stored response's content on its way to a client: from memory, or from disk.
//!
//! Content in a file in memory is sent by `sendfile`, and so is content on disk if the page cache
//! has it and it was verified there; otherwise the disk's threads read and verify it, and it is
//! sent from memory. The worker waits for a device only if the kernel gives a page up in the moment
//! ([`FOUND_TIME`]) after it was found in the page cache.

use crate::send::disk_read::{ContentReadError, DiskRead};
use rustix::io::Errno;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use weir_disk::{ReadError, SendPiece};
use weir_net::http::ResponseSender;
use weir_store::{Block, HeldContent, PieceRef, StoredContent, StoredResponse};

/// Pieces handed to the kernel in one call: as many blocks as 1 MiB of content has.
const PIECES_MAX: usize = 17;

/// Bytes of a file handed to the kernel in one call: other connections of the worker wait for it.
/// As many as from memory, which takes longer.
const SENDFILE_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes from memory in one piece: content in a file may have more.
const COPIED_BYTES_MAX: u64 = SENDFILE_BYTES_MAX;

/// For so long what was found in the page cache counts as there. The kernel gives up first what was
/// not used for the longest time; of a client that reads slowly it is asked again.
const FOUND_TIME: Duration = Duration::from_millis(100);

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
    /// Whether what is in a file in memory may be sent from there.
    by_memory_file: bool,
    /// Some of it was.
    was_sent_by_memory_file: bool,
    /// What is in a file on disk is read from now on.
    sendfile_failed: bool,
    /// What was found in a file on disk that can be sent, from `at` on.
    found: Option<FoundInFile>,
    /// What was read from disk, from `at` on.
    read: Option<(Block, usize)>,
    reading: Option<DiskRead>,
    read_error: Option<ContentReadError>,
}

/// What can be sent from a file, and when it was found there.
#[derive(Debug)]
struct FoundInFile {
    file: SendPiece,
    at: Instant,
}

/// How the next bytes are written.
enum Next {
    /// From memory.
    Memory,
    /// As a file in memory has them.
    MemoryFile,
    /// As a file on disk has them: what was found there.
    File,
}

impl StoredPiece {
    /// The content from `at` up to `end`.
    pub(crate) fn new(response: &Arc<StoredResponse>, at: u64, end: u64) -> Self {
        Self {
            response: Some(Arc::clone(response)),
            released: None,
            at,
            end,
            by_memory_file: false,
            was_sent_by_memory_file: false,
            sendfile_failed: false,
            found: None,
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

    /// From now on what is in a file in memory is sent from there. The caller holds what was
    /// [`Self::sent_by_memory_file`] until no socket has it any more.
    pub(crate) fn allow_memory_file(&mut self) {
        self.by_memory_file = true;
    }

    /// The content, if some of it was sent from a file in memory.
    pub(crate) fn sent_by_memory_file(&self) -> Option<HeldContent> {
        self.body()
            .filter(|_| self.was_sent_by_memory_file)
            .and_then(StoredContent::hold)
    }

    /// The same content, which has moved to `response`.
    pub(crate) fn moved_to(&mut self, response: &Arc<StoredResponse>) {
        self.response = Some(Arc::clone(response));
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

    /// Whether the next bytes can be sent from a file on disk. What was found is remembered, so
    /// that what follows asks the kernel no second time.
    pub(crate) fn find_in_file(&mut self) -> bool {
        if self.sendfile_failed {
            return false;
        }
        let found = self.found.as_ref();
        if found.is_some_and(|found| found.at.elapsed() < FOUND_TIME) {
            return true;
        }
        let bytes_max = (self.end - self.at).min(SENDFILE_BYTES_MAX);
        let file = match self.body().and_then(|body| body.piece_ref_at(self.at)) {
            Some(PieceRef::Disk(extent)) => extent.sendable(self.at, bytes_max),
            Some(PieceRef::Memory(_)) | None => None,
        };
        let at = Instant::now();
        self.found = file.map(|file| FoundInFile { file, at });
        self.found.is_some()
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
        let sent = loop {
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
            let sent = ready!(match next {
                Next::File => self.poll_send_found(response, cx),
                Next::MemoryFile => self.poll_send_memory_file(response, cx),
                Next::Memory => break ready!(self.poll_send_memory(response, cx))?,
            });
            match sent {
                // the rest is copied: if it cannot be read either, that says why
                Err(error) if is_of_file(&error) => {
                    (self.by_memory_file, self.sendfile_failed) = (false, true);
                }
                sent => break sent?,
            }
        };
        self.advance(sent);
        Poll::Ready(Ok(sent))
    }

    /// Sends what a file in memory has.
    fn poll_send_memory_file(
        &mut self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Some(part) = self.body().and_then(|body| body.file_part_at(self.at)) else {
            return Poll::Ready(Ok(0));
        };
        let wanted = (self.end - self.at).min(part.len).min(SENDFILE_BYTES_MAX);
        let sent = ready!(response.poll_send_file(cx, part.fd, part.offset, wanted))?;
        self.was_sent_by_memory_file = true;
        match sent {
            // a file in memory is never cut
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(sent)),
        }
    }

    /// Sends what was found in a file on disk.
    fn poll_send_found(
        &mut self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Some(FoundInFile { file, at }) = self.found.take() else {
            return Poll::Ready(Ok(0));
        };
        let sent = match response.poll_send_file(cx, file.fd(), file.offset, file.len) {
            Poll::Ready(sent) => sent?,
            Poll::Pending => {
                self.found = Some(FoundInFile { file, at });
                return Poll::Pending;
            }
        };
        if sent == 0 {
            // the file was cut under us
            self.read_error = Some(ContentReadError::Disk(ReadError::Damaged));
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let rest = file.after(sent as u64);
        self.found = rest.map(|file| FoundInFile { file, at });
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
            match self.body().and_then(|body| body.piece_ref_at(self.at)) {
                Some(PieceRef::Memory(_)) => {
                    return Poll::Ready(Ok(match by_file && self.by_memory_file {
                        true if self.body().is_some_and(StoredContent::is_in_file) => {
                            Next::MemoryFile
                        }
                        _ => Next::Memory,
                    }));
                }
                Some(PieceRef::Disk(_)) => {}
                None => return Poll::Ready(Err(ContentReadError::NotThere)),
            }
            if by_file && self.find_in_file() {
                return Poll::Ready(Ok(Next::File));
            }
            self.begin_read();
        }
        if let Some(reading) = &mut self.reading {
            let block = ready!(reading.poll(cx));
            self.reading = None;
            self.read = Some((block?, 0));
        }
        Poll::Ready(Ok(Next::Memory))
    }

    /// Reads what a device has at the next byte.
    fn begin_read(&mut self) {
        self.found = None;
        let body = self.response.as_ref().map(|response| &response.body);
        if let Some(PieceRef::Disk(extent)) = body.and_then(|body| body.piece_ref_at(self.at)) {
            self.reading = Some(DiskRead::up_to(extent, self.at, self.end));
        }
    }

    fn poll_send_memory(
        &self,
        response: &mut ResponseSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let first = self.in_memory(self.at);
        if self.at + first.len() as u64 == self.end {
            // most content has one block: an array for many costs more than the look
            return response.poll_send(cx, &[first], Some(&[]));
        }
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
        let left = (self.end - at).min(COPIED_BYTES_MAX);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
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

/// Whether `sendfile` has failed for what it reads from: a device cannot read it, or the file
/// system, the kernel or a filter of system calls refuses that. A client that has left is no such
/// error.
fn is_of_file(error: &io::Error) -> bool {
    const OF_FILE: [Errno; 10] = [
        Errno::IO,
        Errno::INVAL,
        Errno::NOSYS,
        Errno::OPNOTSUPP,
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOMEM,
        Errno::BADMSG,
        Errno::UCLEAN,
        Errno::STALE,
    ];
    Errno::from_io_error(error).is_some_and(|error| OF_FILE.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_client_that_has_left_is_none_of_the_file() {
        for error in [Errno::IO, Errno::NOSYS, Errno::INVAL] {
            assert!(is_of_file(&error.into()), "{error}");
        }
        for error in [
            Errno::PIPE,
            Errno::CONNRESET,
            Errno::TIMEDOUT,
            Errno::NOTCONN,
        ] {
            assert!(!is_of_file(&error.into()), "{error}");
        }
        assert!(!is_of_file(&io::ErrorKind::UnexpectedEof.into()));
    }
}
