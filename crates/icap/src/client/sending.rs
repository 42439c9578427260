//! What a client still sends of its content.

use alloc::vec::Vec;

use weir_wire::write;

use crate::limits::PIECE_BYTES_MAX;

/// Bytes to send, and how far the content is.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    out: Vec<u8>,
    /// How many bytes of `out` are sent.
    out_sent: usize,
    /// How many bytes are sent over the whole request; stays at the greatest number.
    total_sent: usize,
    state: State,
    /// The content ended, though its end cannot be written yet.
    is_finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The preview may have so many bytes more.
    Preview(usize),
    /// The preview was ended and content follows, if the server continues.
    AwaitContinue,
    Content,
    /// All is written.
    Done,
}

impl Sending {
    /// After `head`, content with or without a preview follows, or none.
    pub(crate) const fn new(head: Vec<u8>, has_content: bool, preview: Option<u32>) -> Self {
        let state = match (has_content, preview) {
            (false, _) => State::Done,
            (true, Some(bytes)) => State::Preview(bytes as usize),
            (true, None) => State::Content,
        };
        Self {
            out: head,
            out_sent: 0,
            total_sent: 0,
            state,
            is_finished: false,
        }
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.out_sent..]
    }

    pub(crate) fn total_sent(&self) -> usize {
        self.total_sent
    }

    pub(crate) fn advance(&mut self, count: usize) {
        assert!(
            count <= self.unsent().len(),
            "more bytes sent than there are"
        );
        self.out_sent += count;
        self.total_sent = self.total_sent.saturating_add(count);
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
        }
    }

    /// Whether all bytes of the request are sent that will be, if the server does not continue.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::AwaitContinue | State::Done) && self.unsent().is_empty()
    }

    /// Whether the server may send 100.
    pub(crate) fn awaits_continue(&self) -> bool {
        self.state == State::AwaitContinue && self.unsent().is_empty()
    }

    /// Whether content, or its end, can be taken now.
    pub(crate) fn takes_content(&self) -> bool {
        match self.state {
            State::Preview(0) => true,
            State::Preview(_) | State::Content => self.room() > 0,
            State::AwaitContinue | State::Done => false,
        }
    }

    pub(crate) fn room(&self) -> usize {
        let room = PIECE_BYTES_MAX.saturating_sub(self.unsent().len());
        match self.state {
            State::Preview(left) => room.min(left),
            State::Content => room,
            State::AwaitContinue | State::Done => 0,
        }
    }

    /// Takes as much of `piece` as there is room for.
    pub(crate) fn offer(&mut self, piece: &[u8]) -> usize {
        if self.is_finished {
            return 0;
        }
        let (taken, rest) = piece.split_at(piece.len().min(self.room()));
        if !taken.is_empty() {
            // the sent part is dropped, so that the buffer keeps its bound
            self.out.drain(..self.out_sent);
            self.out_sent = 0;
            write::chunk_header(&mut self.out, taken.len());
            self.out.extend_from_slice(taken);
            write::chunk_end(&mut self.out);
        }
        if let State::Preview(left) = &mut self.state {
            *left -= taken.len();
        }
        if !rest.is_empty() {
            self.content_follows();
        }
        taken.len()
    }

    /// More content follows: a full preview ends.
    pub(crate) fn content_follows(&mut self) {
        if self.state == State::Preview(0) && !self.is_finished {
            write::last_chunk(&mut self.out, b"");
            self.state = State::AwaitContinue;
        }
    }

    /// No more content follows.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
        match self.state {
            State::Preview(_) => self.out.extend_from_slice(b"0; ieof\r\n\r\n"),
            State::Content => write::last_chunk(&mut self.out, b""),
            State::AwaitContinue | State::Done => return,
        }
        self.state = State::Done;
    }

    /// The server sent 100.
    pub(crate) fn continue_content(&mut self) {
        self.state = State::Content;
        if self.is_finished {
            self.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sending: &mut Sending) -> String {
        let bytes = String::from_utf8_lossy(sending.unsent()).into_owned();
        sending.advance(bytes.len());
        bytes
    }

    #[test]
    fn preview_shorter_than_announced_ends_with_ieof() {
        let mut sending = Sending::new(b"head ".to_vec(), true, Some(8));
        assert_eq!(sending.offer(b"hello"), 5);
        assert_eq!(sending.room(), 3);
        sending.finish();
        assert_eq!(sent(&mut sending), "head 5\r\nhello\r\n0; ieof\r\n\r\n");
        assert!(sending.is_complete() && !sending.awaits_continue());
    }

    #[test]
    fn full_preview_ends_once_it_is_known_what_follows() {
        let mut whole = Sending::new(Vec::new(), true, Some(5));
        assert_eq!(whole.offer(b"hello"), 5);
        assert!(whole.takes_content(), "the end of the content is not known");
        let mut partial = whole.clone();
        whole.finish();
        assert_eq!(sent(&mut whole), "5\r\nhello\r\n0; ieof\r\n\r\n");
        assert_eq!(partial.offer(b"!"), 0);
        assert_eq!(sent(&mut partial), "5\r\nhello\r\n0\r\n\r\n");
        assert!(partial.awaits_continue() && partial.is_complete());
        assert_eq!(partial.offer(b"!"), 0);
        partial.continue_content();
        assert_eq!(partial.offer(b"!"), 1);
        partial.finish();
        assert_eq!(sent(&mut partial), "1\r\n!\r\n0\r\n\r\n");
    }

    #[test]
    fn content_that_ends_while_the_server_decides_ends_after_100() {
        let mut sending = Sending::new(Vec::new(), true, Some(0));
        sending.content_follows();
        sending.finish();
        assert_eq!(sent(&mut sending), "0\r\n\r\n");
        assert!(sending.awaits_continue());
        sending.continue_content();
        assert_eq!(sent(&mut sending), "0\r\n\r\n");
        assert!(sending.is_complete() && !sending.awaits_continue());
    }

    #[test]
    fn unsent_bytes_are_bounded() {
        let mut sending = Sending::new(Vec::new(), true, None);
        let piece = [b'x'; 4096];
        while sending.offer(&piece) > 0 {}
        assert_eq!(sending.room(), 0);
        let framing_max = 32 * (PIECE_BYTES_MAX / piece.len());
        assert!(sending.unsent().len() <= PIECE_BYTES_MAX + framing_max);
        sending.advance(10_000);
        let taken = sending.offer(&[b'x'; 2 * PIECE_BYTES_MAX]);
        assert!((1..=10_000).contains(&taken));
    }

    #[test]
    fn bytes_that_were_sent_are_dropped_although_others_wait() {
        let mut sending = Sending::new(Vec::new(), true, None);
        sending.offer(&[b'x'; 1000]);
        for _ in 0..1000 {
            sending.advance(sending.unsent().len() / 2);
            assert_eq!(sending.offer(&[b'x'; 500]), 500);
            assert!(sending.out.len() < 3000);
        }
    }
}
