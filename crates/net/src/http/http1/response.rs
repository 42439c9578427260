//! The response to a request on an HTTP/1.1 connection.

use super::chunks::Framing;
use crate::flow::{ClientFlow, tcp_info, unacknowledged_bytes};
use crate::http::content_form::ContentForm;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use weir_wire::write;

/// Pieces of content handed to the kernel in one call.
const PIECES_MAX: usize = 16;

/// Sends the response to one request on an HTTP/1.1 connection.
pub struct Http1Response<'c> {
    socket: &'c TcpStream,
    http11: bool,
    keep_alive: bool,
    framing: Framing,
    /// Heads and framing that precede the next content.
    frame: Vec<u8>,
    /// Bytes of `frame` that have left.
    frame_sent: usize,
    flow: ClientFlow,
    is_bounded: bool,
    is_begun: bool,
    /// Where the final head begins in `frame`, until a byte of it has left.
    head_at: Option<usize>,
    /// The end is in `frame`, or has left.
    is_ended: bool,
    sent_bytes: u64,
}

impl<'c> Http1Response<'c> {
    pub(crate) fn new(socket: &'c TcpStream, http11: bool, keep_alive: bool) -> Self {
        Self {
            socket,
            http11,
            keep_alive,
            framing: Framing::Length,
            frame: Vec::new(),
            frame_sent: 0,
            flow: ClientFlow::new(0),
            is_bounded: false,
            is_begun: false,
            head_at: None,
            is_ended: false,
            sent_bytes: 0,
        }
    }

    pub(crate) fn socket(&self) -> &'c TcpStream {
        self.socket
    }

    pub(crate) fn push_interim(&mut self, head: &[u8]) {
        if self.http11 {
            self.frame.extend_from_slice(head);
        }
    }

    /// Appends the framing field and `Connection`, which needs no word where HTTP/1.1 stays open.
    pub(crate) fn begin(&mut self, head: Vec<u8>, content: ContentForm) -> &[u8] {
        self.is_begun = true;
        let from = self.frame.len();
        self.head_at = Some(from);
        if self.frame.is_empty() {
            self.frame = head;
        } else {
            self.frame.extend_from_slice(&head);
        }
        self.framing = match content {
            ContentForm::None | ContentForm::Sized => Framing::Length,
            ContentForm::Unsized if self.http11 => Framing::Chunked(0),
            ContentForm::Unsized => Framing::Close,
        };
        match self.framing {
            Framing::Length => {}
            Framing::Chunked(_) => {
                self.frame
                    .extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            Framing::Close => self.keep_alive = false,
        }
        write_connection(self.keep_alive, self.http11, &mut self.frame);
        write::end_of_head(&mut self.frame);
        &self.frame[from..]
    }

    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &[&[u8]],
        end: Option<&[u8]>,
    ) -> Poll<io::Result<usize>> {
        let end = end.filter(|_| content.len() <= PIECES_MAX);
        let content = &content[..content.len().min(PIECES_MAX)];
        let offered: usize = content.iter().map(|piece| piece.len()).sum();
        loop {
            if self.is_ended {
                ready!(self.poll_flush(cx))?;
                return Poll::Ready(Ok(0));
            }
            let is_idle = offered == 0 && end.is_none() && self.frame.is_empty();
            if is_idle {
                return Poll::Ready(Ok(0));
            }
            let room = ready!(self.flow.poll_room(self.socket, cx))?;
            let allowed = self.framing.open(offered.min(room), &mut self.frame);
            let is_last = end.is_some() && allowed == offered;
            let tail = self.framing.tail(allowed, end.filter(|_| is_last));
            if self.frame.is_empty() && allowed == 0 && tail.is_empty() {
                self.is_ended = is_last;
                return Poll::Ready(Ok(0));
            }
            let taken = ready!(self.poll_write(cx, content, allowed, &tail))?;
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
        let sent = ready!(poll_write_vectored(self.socket, cx, &slices[..count]))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.sent_bytes += sent as u64;
        self.flow.wrote(sent);
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
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.frame.is_empty() {
            ready!(self.poll_write(cx, &[], 0, &[]))?;
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn can_send_file(&self) -> bool {
        self.framing == Framing::Length && !self.is_bounded
    }

    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: u64,
        length: u64,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                let mut offset = offset;
                Ok(rustix::fs::sendfile(
                    self.socket,
                    file,
                    Some(&mut offset),
                    length,
                )?)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(sent) => {
                    self.sent_bytes += sent as u64;
                    return Poll::Ready(Ok(sent));
                }
            }
        }
    }

    pub(crate) fn set_unsent_limit(&mut self, bytes: Option<u32>) {
        if bytes.is_some() && !self.is_bounded {
            self.flow = ClientFlow::new(self.sent_bytes);
        }
        self.is_bounded = bytes.is_some();
        self.flow.set_unsent(self.socket, bytes);
    }

    pub(crate) fn round_trip_us(&self) -> Option<u32> {
        tcp_info(self.socket).map(|info| info.rtt_us)
    }

    pub(crate) fn unacknowledged_bytes(&self) -> Option<u32> {
        unacknowledged_bytes(self.socket)
    }

    pub(crate) fn close_after(&mut self) {
        self.keep_alive = false;
    }

    pub(crate) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(crate) fn has_line(&self) -> bool {
        !self.frame.is_empty()
    }

    pub(crate) fn retract(&mut self) -> bool {
        let Some(at) = self.head_at.take() else {
            return false;
        };
        self.frame.truncate(at);
        self.framing = Framing::Length;
        self.is_begun = false;
        self.is_ended = false;
        true
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_ended && self.frame.is_empty()
    }

    /// The end of the connection is the end of the response. Where it would also be the end of a
    /// whole one, it is a reset.
    pub(crate) fn abort(&mut self) {
        self.keep_alive = false;
        if self.framing == Framing::Close && self.sent_bytes > 0 && !self.is_ended {
            // if it cannot be set the client has gone already
            let _ = socket2::SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
        }
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

impl Drop for Http1Response<'_> {
    /// The next response on the connection has bounds of its own.
    fn drop(&mut self) {
        self.flow.release(self.socket);
    }
}

/// What the kernel took of content and of what follows it, bytes.
struct Taken {
    content: usize,
    tail: usize,
}

/// Appends `Connection` to a head where a client of this version needs it (RFC 9112 §9.3).
pub fn write_connection(keep_alive: bool, http11: bool, out: &mut Vec<u8>) {
    match (keep_alive, http11) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, false) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, true) => {}
    }
}

fn poll_write_vectored(
    socket: &TcpStream,
    cx: &mut Context<'_>,
    slices: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_write_ready(cx))?;
        let written = match slices {
            [one] => socket.try_write(one),
            slices => socket.try_write_vectored(slices),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return Poll::Ready(written),
        }
    }
}
