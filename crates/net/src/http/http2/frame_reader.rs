//! Follows the frames that pass on a connection (RFC 9113 §4.1). Of payloads only the error codes
//! of RST_STREAM and GOAWAY are looked at, and by how much WINDOW_UPDATE opens a window.

/// Bytes of the head of a frame.
const HEAD_BYTES: usize = 9;

/// What a client begins a connection with (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    /// Bytes of its payload.
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Of which stream; 0 of the connection.
    pub(super) stream: u32,
    /// The error code of RST_STREAM and GOAWAY (RFC 9113 §6.4, §6.8), and the bytes of
    /// WINDOW_UPDATE (§6.9), with its reserved bit; 0 of other frames.
    pub(super) number: u32,
}

impl FrameHead {
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RST_STREAM: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const GOAWAY: u8 = 7;
    pub(super) const WINDOW_UPDATE: u8 = 8;
    pub(super) const CONTINUATION: u8 = 9;

    /// Bytes of the payload of RST_STREAM and WINDOW_UPDATE.
    const NUMBER_BYTES: u32 = 4;
    /// Bytes of that of GOAWAY, to the end of its error code.
    const GOAWAY_BYTES: u32 = 8;

    const END_STREAM: u8 = 1;
    const ACK: u8 = 1;
    const END_HEADERS: u8 = 4;

    /// Whether it is the last of its stream, of DATA and HEADERS.
    pub(super) const fn ends_stream(self) -> bool {
        self.flags & Self::END_STREAM != 0
    }

    /// Whether it says that settings were taken.
    pub(super) const fn acknowledges_settings(self) -> bool {
        self.kind == Self::SETTINGS && self.flags & Self::ACK != 0
    }

    /// Whether it changes settings of the peer.
    pub(super) const fn is_settings(self) -> bool {
        self.kind == Self::SETTINGS && self.flags & Self::ACK == 0
    }

    /// By how many bytes it opens a window, of WINDOW_UPDATE: the first bit is reserved
    /// (RFC 9113 §6.9).
    pub(super) const fn window_bytes(self) -> u32 {
        self.number & 0x7fff_ffff
    }

    pub(super) const fn is_of_head(self) -> bool {
        matches!(self.kind, Self::HEADERS | Self::CONTINUATION)
    }

    const fn ends_head(self) -> bool {
        self.flags & Self::END_HEADERS != 0
    }

    /// Bytes of its payload to the end of its number, of which that is the last four; 0: it has
    /// none.
    const fn bytes_to_number(self) -> u32 {
        match self.kind {
            Self::RST_STREAM | Self::WINDOW_UPDATE if self.length == Self::NUMBER_BYTES => {
                Self::NUMBER_BYTES
            }
            Self::GOAWAY if self.length >= Self::GOAWAY_BYTES => Self::GOAWAY_BYTES,
            _ => 0,
        }
    }
}

/// Where in a direction of a connection we are.
#[derive(Clone, Debug)]
pub(super) struct FrameReader {
    /// Bytes before the first frame that are still to come.
    before: usize,
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that have come.
    known: usize,
    /// Bytes of the payload that are still to come.
    payload: u32,
    /// A frame whose number comes.
    numbered: Option<FrameHead>,
    /// Bytes of its payload that are still to come, to the end of that.
    number_left: u32,
    /// A head of a message has begun, and its last frame has not come whole.
    is_in_head: bool,
    /// The frame whose payload comes is the last of a head.
    ends_head: bool,
}

impl FrameReader {
    /// Of what a client sends.
    pub(super) const fn of_client() -> Self {
        Self::behind(PREFACE.len())
    }

    /// Of what a server sends.
    pub(super) const fn of_server() -> Self {
        Self::behind(0)
    }

    const fn behind(before: usize) -> Self {
        Self {
            before,
            head: [0; HEAD_BYTES],
            known: 0,
            payload: 0,
            numbered: None,
            number_left: 0,
            is_in_head: false,
            ends_head: false,
        }
    }

    /// Whether a message's head has begun and is not whole.
    pub(super) const fn is_in_head(&self) -> bool {
        self.is_in_head
    }

    /// How many of the `bytes` that come next are before the first frame of the head behind the
    /// next `most` ones; all of them, if they have none.
    pub(super) fn before_head(&self, bytes: &[u8], most: usize) -> usize {
        let (mut head, mut known) = (self.head, self.known);
        let mut at = self.before.saturating_add(self.payload as usize);
        let mut heads = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let taken = (HEAD_BYTES - known).min(rest.len());
            head[known..known + taken].copy_from_slice(&rest[..taken]);
            if known + taken < HEAD_BYTES {
                break;
            }
            let [a, b, c, kind, ..] = head;
            heads += usize::from(kind == FrameHead::HEADERS);
            if heads > most {
                return at;
            }
            let payload = u32::from_be_bytes([0, a, b, c]) as usize;
            at = at.saturating_add(taken + payload);
            known = 0;
        }
        bytes.len()
    }

    /// Follows `bytes`, and calls `note` with the head of each frame once that has come, of those
    /// with a number once that has.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut note: impl FnMut(FrameHead)) {
        let before = self.before.min(bytes.len());
        self.before -= before;
        bytes = &bytes[before..];
        while !bytes.is_empty() {
            if self.payload > 0 {
                let most = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let passed = self.payload.min(most);
                self.payload -= passed;
                let (payload, rest) = bytes.split_at(passed as usize);
                bytes = rest;
                if let Some(frame) = &mut self.numbered {
                    let of_number = self.number_left.min(passed);
                    // of more than four bytes the last ones stay
                    for byte in &payload[..of_number as usize] {
                        frame.number = frame.number << 8 | u32::from(*byte);
                    }
                    self.number_left -= of_number;
                    if self.number_left == 0 {
                        self.numbered.take().into_iter().for_each(&mut note);
                    }
                }
                self.end_head();
                continue;
            }
            let taken = (HEAD_BYTES - self.known).min(bytes.len());
            self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            bytes = &bytes[taken..];
            if self.known == HEAD_BYTES {
                self.known = 0;
                let [a, b, c, kind, flags, stream @ ..] = self.head;
                let frame = FrameHead {
                    length: u32::from_be_bytes([0, a, b, c]),
                    kind,
                    flags,
                    // the first bit is reserved (RFC 9113 §4.1)
                    stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
                    number: 0,
                };
                self.payload = frame.length;
                self.is_in_head |= frame.is_of_head();
                self.ends_head = frame.is_of_head() && frame.ends_head();
                self.end_head();
                match frame.bytes_to_number() {
                    0 => note(frame),
                    number_left => {
                        self.number_left = number_left;
                        self.numbered = Some(frame);
                    }
                }
            }
        }
    }

    /// The head is whole, if this was the end of its last frame.
    fn end_head(&mut self) {
        if self.ends_head && self.payload == 0 {
            self.is_in_head = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        [&head[..], payload].concat()
    }

    #[test]
    fn frames_are_followed_however_their_bytes_come() {
        let sent = [
            PREFACE.to_vec(),
            frame(4, 0, &[]),
            frame(FrameHead::HEADERS, 0, &[7; 300]),
            frame(FrameHead::CONTINUATION, 4, &[9; 70_000]),
            frame(FrameHead::DATA, 1, &[]),
            frame(FrameHead::RST_STREAM, 0, &[1, 2, 3, 4]),
            // malformed
            frame(FrameHead::RST_STREAM, 0, &[5; 5]),
            frame(FrameHead::RST_STREAM, 0, &[]),
            frame(FrameHead::RST_STREAM, 0, &[0, 0, 0, 8]),
            frame(FrameHead::GOAWAY, 0, b"\0\0\0\x07\0\0\0\x0bcalm"),
            frame(FrameHead::GOAWAY, 0, &[9; 7]),
            frame(FrameHead::WINDOW_UPDATE, 0, &[0, 1, 2, 3]),
            frame(FrameHead::WINDOW_UPDATE, 0, &[7; 3]),
            frame(FrameHead::DATA, 0, &[3; 20]),
        ]
        .concat();
        for step in [1, 2, 8, 9, 10, 4096, sent.len()] {
            let mut reader = FrameReader::of_client();
            let (mut kinds, mut numbers) = (Vec::new(), Vec::new());
            for piece in sent.chunks(step) {
                reader.follow(piece, |frame| {
                    kinds.push((frame.kind, frame.length, frame.ends_stream()));
                    numbers.push(frame.number);
                });
            }
            let expected = [
                (4, 0, false),
                (1, 300, false),
                (9, 70_000, false),
                (0, 0, true),
                (3, 4, false),
                (3, 5, false),
                (3, 0, false),
                (3, 4, false),
                (7, 12, false),
                (7, 7, false),
                (8, 4, false),
                (8, 3, false),
                (0, 20, false),
            ];
            assert_eq!(kinds, expected, "pieces of {step}");
            let expected = [0, 0, 0, 0, 0x0102_0304, 0, 0, 8, 11, 0, 0x0001_0203, 0, 0];
            assert_eq!(numbers, expected, "pieces of {step}");
            assert!(!reader.is_in_head());
        }
    }

    #[test]
    fn bytes_are_parted_before_a_head() {
        let head = frame(FrameHead::HEADERS, 0, &[7; 30]);
        let rest = frame(FrameHead::CONTINUATION, 4, &[9; 10]);
        let data = frame(FrameHead::DATA, 1, &[1; 5]);
        let sent = [PREFACE, &head, &rest, &data, &head, &rest, &head].concat();
        let begins = [24, 24 + 39 + 19 + 14, 24 + 2 * (39 + 19) + 14];
        // wherever what came before has ended: each head once more behind it
        for passed in 0..=begins[1] {
            let mut reader = FrameReader::of_client();
            reader.follow(&sent[..passed], |_| {});
            let next = |most| passed + reader.before_head(&sent[passed..], most);
            // a head of which some bytes have passed, and not all of its frame's, is one to come
            let is_first_known = passed >= begins[0] + HEAD_BYTES;
            let expected = match is_first_known {
                false => [begins[1], begins[2], sent.len()],
                true => [begins[2], sent.len(), sent.len()],
            };
            assert_eq!([next(1), next(2), next(3)], expected, "{passed} bytes");
        }
        let reader = FrameReader::of_client();
        assert_eq!(reader.before_head(&sent[..10], 1), 10);
        assert_eq!(reader.before_head(&sent[..begins[1] + 4], 1), begins[1] + 4);
        assert_eq!(reader.before_head(&[], 1), 0);
    }

    #[test]
    fn head_is_whole_with_the_last_byte_of_its_last_frame() {
        let mut reader = FrameReader::of_server();
        let first = frame(FrameHead::HEADERS, 0, b"part");
        reader.follow(&first, |_| {});
        assert!(reader.is_in_head());
        let last = frame(FrameHead::CONTINUATION, 4, b"rest");
        reader.follow(&last[..last.len() - 1], |_| {});
        assert!(reader.is_in_head());
        reader.follow(&last[last.len() - 1..], |_| {});
        assert!(!reader.is_in_head());
    }
}
