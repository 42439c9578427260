//! A message on its way to an HTTP/1.1 peer: heads, framed content, the end.

use super::chunks::Framing;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

/// Pieces of content handed to the kernel in one call.
const PIECES_MAX: usize = 16;

/// The sending half of a connection.
pub(super) trait Transport {
    /// How many bytes may be sent now; ready when that is at least one.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>>;

    /// Sends once; how many bytes were taken.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;
}

/// What of a message has not been sent, and how its content is framed.
#[derive(Debug)]
pub(super) struct MessageWriter {
    framing: Framing,
    /// Heads and framing that precede the next content.
    frame: Vec<u8>,
    /// Bytes of `frame` that have left.
    frame_sent: usize,
    /// Where the final head begins in `frame`, until a byte of it has left.
    head_at: Option<usize>,
    is_begun: bool,
    /// The end is in `frame`, or has left.
    is_ended: bool,
    sent_bytes: u64,
}

impl MessageWriter {
    pub(super) const fn new() -> Self {
        Self {
            framing: Framing::Length,
            frame: Vec::new(),
            frame_sent: 0,
            head_at: None,
            is_begun: false,
            is_ended: false,
            sent_bytes: 0,
        }
    }

    /// Puts a complete interim head in line.
    pub(super) fn push(&mut self, head: &[u8]) {
        self.frame.extend_from_slice(head);
    }

    /// Puts the final head in line; `complete` appends what the connection adds to it.
    pub(super) fn begin(
        &mut self,
        head: Vec<u8>,
        framing: Framing,
        complete: impl FnOnce(&mut Vec<u8>),
    ) -> &[u8] {
        self.is_begun = true;
        self.framing = framing;
        let from = self.frame.len();
        self.head_at = Some(from);
        if self.frame.is_empty() {
            self.frame = head;
        } else {
            self.frame.extend_from_slice(&head);
        }
        if matches!(framing, Framing::Chunked(_)) {
            let field = b"Transfer-Encoding: chunked\r\n";
            self.frame.extend_from_slice(field);
        }
        complete(&mut self.frame);
        &self.frame[from..]
    }

    /// Sends what is in line, then of `content` as much as there is room for, then the end if all
    /// of it has left and `end` has the trailer section. The bytes of `content` that were taken; 0
    /// when everything in line has left.
    pub(super) fn poll_send(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let end = end.filter(|_| content.len() <= PIECES_MAX);
        let content = &content[..content.len().min(PIECES_MAX)];
        let offered: usize = content.iter().map(|piece| piece.len()).sum();
        loop {
            if self.is_ended {
                ready!(self.poll_flush(transport, cx))?;
                return Poll::Ready(Ok(0));
            }
            if offered == 0 && end.is_none() && self.frame.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let room = ready!(transport.poll_room(cx))?;
            let allowed = self.framing.open(offered.min(room), &mut self.frame);
            let is_last = end.is_some() && allowed == offered;
            let tail = self.framing.tail(allowed, end.filter(|_| is_last));
            if self.frame.is_empty() && allowed == 0 && tail.is_empty() {
                self.is_ended = is_last;
                return Poll::Ready(Ok(0));
            }
            let taken = ready!(self.poll_write(transport, cx, content, allowed, &tail))?;
            if taken.content == allowed {
                self.frame.extend_from_slice(&tail[taken.tail..]);
                self.is_ended = is_last;
            }
            if taken.content > 0 {
                return Poll::Ready(Ok(taken.content));
            }
        }
    }

    /// Writes what is left of the frame, then `allowed` bytes of `content`, then `tail`, once.
    fn poll_write(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        allowed: usize,
        tail: &[u8],
    ) -> Poll<io::Result<Taken>> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX + 2];
        let mut count = 0;
        let frame = &self.frame[self.frame_sent..];
        if !frame.is_empty() {
            slices[0] = IoSlice::new(frame);
            count = 1;
        }
        let mut left = allowed;
        for piece in content {
            let piece = &piece[..piece.len().min(left)];
            if !piece.is_empty() {
                slices[count] = IoSlice::new(piece);
                count += 1;
                left -= piece.len();
            }
        }
        if !tail.is_empty() && left == 0 {
            slices[count] = IoSlice::new(tail);
            count += 1;
        }
        let frame_bytes = frame.len();
        let sent = ready!(transport.poll_write(cx, &slices[..count]))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.sent_bytes += sent as u64;
        let of_frame = sent.min(frame_bytes);
        self.advance_frame(of_frame);
        let of_content = (sent - of_frame).min(allowed);
        self.framing.sent(of_content);
        Poll::Ready(Ok(Taken {
            content: of_content,
            tail: sent - of_frame - of_content,
        }))
    }

    fn advance_frame(&mut self, sent: usize) {
        self.frame_sent += sent;
        self.head_at = self.head_at.filter(|at| self.frame_sent <= *at);
        if self.frame_sent == self.frame.len() {
            self.frame.clear();
            self.frame_sent = 0;
        }
    }

    /// Sends the frame.
    pub(super) fn poll_flush(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.frame.is_empty() {
            ready!(self.poll_write(transport, cx, &[], 0, &[]))?;
        }
        Poll::Ready(Ok(()))
    }

    /// So many bytes of content left by another way.
    pub(super) fn sent_otherwise(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// Takes the final head back, if nothing of it has left.
    pub(super) fn retract(&mut self) -> bool {
        let Some(at) = self.head_at.take() else {
            return false;
        };
        self.frame.truncate(at);
        self.framing = Framing::Length;
        self.is_begun = false;
        self.is_ended = false;
        true
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    pub(super) fn has_line(&self) -> bool {
        !self.frame.is_empty()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Whether the end has been put in line.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether all of it, its end included, has left.
    pub(super) fn is_complete(&self) -> bool {
        self.is_ended && self.frame.is_empty()
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

/// What was taken of content and of what follows it, bytes.
struct Taken {
    content: usize,
    tail: usize,
}
