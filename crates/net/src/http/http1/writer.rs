//! A message on its way to an HTTP/1.1 peer: heads, framed content, the end.

use super::chunks::Framing;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

/// Pieces of content handed to the kernel in one call; those beyond wait for the next one. `writev`
/// takes 1024 (IOV_MAX), but a large write keeps other connections waiting. The blocks of 1 MiB of
/// stored content leave by one call.
const PIECES_MAX: usize = 17;

/// Pieces of content up to which a short array of slices is used, as most writes have one or two.
const SHORT_PIECES_MAX: usize = 2;

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
    /// Bytes of `frame` that the kernel has accepted.
    frame_sent: usize,
    /// Where the final head begins in `frame`, until a byte of it is sent.
    head_at: Option<usize>,
    is_begun: bool,
    /// The end is in `frame`, or sent.
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

    /// Queues a complete interim head.
    pub(super) fn push(&mut self, head: &[u8]) {
        debug_assert!(!self.is_begun, "an interim head behind the final one");
        self.frame.extend_from_slice(head);
    }

    /// Queues the final head; `complete` appends what the connection adds to it.
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

    /// Sends what is queued, then of `content` as much as there is room for, then, if all of it is
    /// sent, the end with the trailer section `end`. Returns the bytes of `content` that were
    /// accepted; 0 when everything queued is sent.
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
            if offered == 0 && self.frame.is_empty() && (end.is_none() || !self.framing.has_end()) {
                self.is_ended = end.is_some();
                return Poll::Ready(Ok(0));
            }
            let room = ready!(transport.poll_room(cx))?;
            let allowed = self.framing.open(offered.min(room), &mut self.frame);
            let is_last = end.is_some() && allowed == offered;
            let tail = self.framing.tail(allowed, end.filter(|_| is_last));
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
    ) -> Poll<io::Result<SentBytes>> {
        let frame = &self.frame[self.frame_sent..];
        let frame_bytes = frame.len();
        // most often there is a head, or content of one piece: the long array costs more than that
        let sent = if content.len() <= SHORT_PIECES_MAX {
            let mut slices = [IoSlice::new(&[]); SHORT_PIECES_MAX + 2];
            let count = gather(&mut slices, frame, content, allowed, tail);
            transport.poll_write(cx, &slices[..count])
        } else {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX + 2];
            let count = gather(&mut slices, frame, content, allowed, tail);
            transport.poll_write(cx, &slices[..count])
        };
        let sent = ready!(sent)?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.sent_bytes += sent as u64;
        let of_frame = sent.min(frame_bytes);
        self.advance_frame(of_frame);
        let of_content = (sent - of_frame).min(allowed);
        self.framing.sent(of_content);
        Poll::Ready(Ok(SentBytes {
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

    /// So many bytes of content were sent from a file.
    pub(super) fn sent_by_file(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// Takes the final head back, if nothing of it was sent.
    pub(super) fn retract(&mut self) -> bool {
        let Some(at) = self.head_at.take() else {
            return false;
        };
        self.frame.truncate(at);
        if self.frame_sent == at {
            self.frame.clear();
            self.frame_sent = 0;
        }
        self.framing = Framing::Length;
        self.is_begun = false;
        self.is_ended = false;
        true
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.frame.is_empty()
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Whether all of it, its end included, is sent.
    pub(super) fn is_complete(&self) -> bool {
        self.is_ended && self.frame.is_empty()
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

/// Lays `frame`, `allowed` bytes of `content` and, if that is all of it, `tail` side by side; how
/// many slices that takes.
#[inline]
fn gather<'a>(
    slices: &mut [IoSlice<'a>],
    frame: &'a [u8],
    content: &[&'a [u8]],
    allowed: usize,
    tail: &'a [u8],
) -> usize {
    let mut count = 0;
    let mut push = |piece| {
        slices[count] = IoSlice::new(piece);
        count += 1;
    };
    if !frame.is_empty() {
        push(frame);
    }
    let mut left = allowed;
    for piece in content {
        let piece = &piece[..piece.len().min(left)];
        if !piece.is_empty() {
            push(piece);
            left -= piece.len();
        }
    }
    if !tail.is_empty() && left == 0 {
        push(tail);
    }
    count
}

/// What was taken of content and of what follows it, bytes.
struct SentBytes {
    content: usize,
    tail: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A kernel that accepts at most `step` bytes a call, and `room` bytes of content.
    struct Kernel {
        step: usize,
        room: usize,
        taken: Vec<u8>,
    }

    impl Transport for Kernel {
        fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
            match self.room {
                0 => Poll::Pending,
                room => Poll::Ready(Ok(room)),
            }
        }

        fn poll_write(
            &mut self,
            _cx: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let offered: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            let count = offered.len().min(self.step);
            self.taken.extend_from_slice(&offered[..count]);
            Poll::Ready(Ok(count))
        }
    }

    fn kernel(step: usize, room: usize) -> Kernel {
        let taken = Vec::new();
        Kernel { step, room, taken }
    }

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    fn begun(framing: Framing) -> MessageWriter {
        let mut writer = MessageWriter::new();
        writer.push(b"103\r\n");
        let head = writer.begin(b"200\r\n".to_vec(), framing, |head| head.extend(b"\r\n"));
        assert!(head.starts_with(b"200\r\n"));
        writer
    }

    /// Sends `content`, offered as pieces of at most `offer` bytes, two at a time.
    fn sent(
        framing: Framing,
        content: &[u8],
        (step, room, offer): (usize, usize, usize),
    ) -> String {
        let (mut writer, mut kernel) = (begun(framing), kernel(step, room));
        let mut at = 0;
        while !writer.is_complete() {
            let rest = &content[at..];
            let first = &rest[..rest.len().min(offer)];
            let second = &rest[first.len()..];
            let second = &second[..second.len().min(offer)];
            let is_all = first.len() + second.len() == rest.len();
            let end = is_all.then_some(&b"T: 1\r\n"[..]);
            let polled = writer.poll_send(&mut kernel, &mut context(), &[first, second], end);
            let Poll::Ready(Ok(count)) = polled else {
                panic!("{polled:?}");
            };
            at += count;
        }
        assert_eq!(at, content.len());
        assert_eq!(writer.sent_bytes(), kernel.taken.len() as u64);
        String::from_utf8(kernel.taken).expect("text")
    }

    #[test]
    fn each_byte_of_heads_content_and_framing_is_sent_once() {
        for step in 1..20 {
            for room in [1, 2, 7, 100] {
                let how = (step, room, 4);
                let length = sent(Framing::Length, b"0123456789", how);
                assert_eq!(length, "103\r\n200\r\n\r\n0123456789", "{how:?}");
                let close = sent(Framing::Close, b"", how);
                assert_eq!(close, "103\r\n200\r\n\r\n", "{how:?}");
            }
            let how = (step, 100, 5);
            let head = "103\r\n200\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunked = sent(Framing::Chunked(0), b"0123456789", how);
            let one = "a\r\n0123456789\r\n0\r\nT: 1\r\n\r\n";
            assert_eq!(chunked, format!("{head}{one}"), "{how:?}");
            let chunked = sent(Framing::Chunked(0), b"01234567", (step, 6, 4));
            let two = "6\r\n012345\r\n2\r\n67\r\n0\r\nT: 1\r\n\r\n";
            assert_eq!(chunked, format!("{head}{two}"), "{how:?}");
            let empty = sent(Framing::Chunked(0), b"", how);
            assert_eq!(empty, format!("{head}0\r\nT: 1\r\n\r\n"), "{how:?}");
        }
    }

    #[test]
    fn end_without_bytes_of_its_own_needs_no_room() {
        let mut writer = begun(Framing::Length);
        let mut kernel = kernel(100, 100);
        let sent = writer.poll_send(&mut kernel, &mut context(), &[b"0123"], None);
        assert!(matches!(sent, Poll::Ready(Ok(4))), "{sent:?}");
        kernel.room = 0;
        let ended = writer.poll_send(&mut kernel, &mut context(), &[], Some(&[]));
        assert!(matches!(ended, Poll::Ready(Ok(0))), "{ended:?}");
        assert!(writer.is_complete());
    }

    #[test]
    fn head_is_taken_back_until_a_byte_of_it_has_left() {
        let interim = b"103\r\n".len();
        for step in 1..=interim + 1 {
            let mut writer = begun(Framing::Close);
            let mut kernel = kernel(step, 100);
            let written = writer.poll_write(&mut kernel, &mut context(), &[], 0, &[]);
            assert!(written.is_ready());
            assert_eq!(writer.retract(), step <= interim, "{step}");
            if step > interim {
                continue;
            }
            assert!(!writer.is_begun());
            let _ = writer.begin(b"502\r\n".to_vec(), Framing::Length, |_| {});
            while !writer.is_complete() {
                let sent = writer.poll_send(&mut kernel, &mut context(), &[], Some(&[]));
                assert!(sent.is_ready());
            }
            assert_eq!(kernel.taken, b"103\r\n502\r\n", "{step}");
        }
    }
}
