//! One response by HTTP/2 in clear, on a connection of its own: frames, and the windows that a
//! client opens as it reads (RFC 9113 §5.2).

use std::io::{self, Write as _};
use std::net::TcpStream;
use weir_bench::origin::ResponseSpec;

/// How a client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientVersion {
    #[default]
    Http1,
    /// In clear, by a server that is known to speak it.
    Http2,
}

/// The window of the stream, bytes: what a client of HTTP/1.1 has for a receive buffer.
const WINDOW: u32 = 64 * 1024;

/// The window of a connection at its beginning (RFC 9113 §6.9.2).
const CONNECTION_WINDOW: u32 = 65_535;

/// Windows are opened by no less than this, bytes.
const OPENED_BYTES_MIN: u32 = 16 * 1024;

/// The stream of the request.
const STREAM: u32 = 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;
const CANCEL: u32 = 8;

/// `:status: 200` of the static table (RFC 7541, appendix A), which servers begin with.
const STATUS_200: u8 = 0x88;

/// Bytes of the head of a frame.
const HEAD_BYTES: usize = 9;

/// What comes of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'b> {
    Content(&'b [u8]),
    /// All was sent.
    End,
}

/// A response that is received.
#[derive(Debug, Default)]
pub(super) struct Http2Response {
    head: [u8; HEAD_BYTES],
    /// Bytes of `head` that have come.
    known: usize,
    /// Bytes of the payload that are still to come.
    left: usize,
    is_answered: bool,
    is_ended: bool,
    /// The kind of the frame whose payload comes is of content, and it ends the stream.
    ends: bool,
    /// Content that was read, and that windows were not opened by.
    consumed: u32,
    /// SETTINGS are to be acknowledged.
    settings: u32,
}

impl Http2Response {
    /// Asks on a new connection.
    pub(super) fn ask(stream: &mut TcpStream, spec: &ResponseSpec) -> io::Result<Self> {
        let mut window = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        window.extend(WINDOW.to_be_bytes());
        // `:method: GET` and `:scheme: http`, then `:path` and `:authority` as literals
        let mut block = vec![0x82, 0x86];
        for (name, value) in [(0x04, spec.to_string().as_str()), (0x01, "origin.example")] {
            block.push(name);
            length(value.len(), &mut block);
            block.extend(value.as_bytes());
        }
        let more = (WINDOW - CONNECTION_WINDOW).to_be_bytes();
        let all = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(SETTINGS, 0, 0, &window),
            frame(WINDOW_UPDATE, 0, 0, &more),
            frame(HEADERS, END_HEADERS | END_STREAM, STREAM, &block),
        ];
        stream.write_all(&all.concat())?;
        Ok(Self::default())
    }

    /// Takes bytes, and hands over what they are.
    ///
    /// # Errors
    /// Says what is wrong, or what `take` has said.
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(Piece<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.left == 0 {
                let taken = (HEAD_BYTES - self.known).min(bytes.len());
                self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
                self.known += taken;
                bytes = &bytes[taken..];
                if self.known == HEAD_BYTES {
                    self.known = 0;
                    self.begin()?;
                    if self.left == 0 {
                        self.end(&mut take)?;
                    }
                }
                continue;
            }
            let taken = self.left.min(bytes.len());
            let (payload, rest) = bytes.split_at(taken);
            self.payload(payload, &mut take)?;
            self.left -= taken;
            if self.left == 0 {
                self.end(&mut take)?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// The head of a frame has come.
    fn begin(&mut self) -> Result<(), String> {
        let [a, b, c, kind, flags, ..] = self.head;
        self.left = u32::from_be_bytes([0, a, b, c]) as usize;
        self.ends = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        match kind {
            SETTINGS if flags & ACK == 0 => self.settings += 1,
            RST_STREAM => return Err("the stream was reset".to_owned()),
            GOAWAY => return Err("the connection was ended".to_owned()),
            DATA if !self.is_answered => return Err("content before a head".to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn payload(
        &mut self,
        payload: &[u8],
        take: &mut impl FnMut(Piece<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.head[3] {
            DATA => {
                let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                self.consumed = self.consumed.saturating_add(bytes);
                take(Piece::Content(payload))
            }
            HEADERS if !self.is_answered => {
                self.is_answered = true;
                match payload.first() {
                    Some(&STATUS_200) => Ok(()),
                    _ => Err("another status than 200".to_owned()),
                }
            }
            _ => Ok(()),
        }
    }

    /// A frame has ended.
    fn end(
        &mut self,
        take: &mut impl FnMut(Piece<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.ends && !self.is_ended {
            self.is_ended = true;
            return take(Piece::End);
        }
        Ok(())
    }

    /// Sends what is due: windows by what was read, and acknowledged SETTINGS.
    pub(super) fn respond(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let mut out = Vec::new();
        for _ in 0..std::mem::take(&mut self.settings) {
            out.extend(frame(SETTINGS, ACK, 0, &[]));
        }
        if self.consumed >= OPENED_BYTES_MIN {
            let by = std::mem::take(&mut self.consumed).to_be_bytes();
            out.extend(frame(WINDOW_UPDATE, 0, 0, &by));
            if !self.is_ended {
                out.extend(frame(WINDOW_UPDATE, 0, STREAM, &by));
            }
        }
        match out.is_empty() {
            true => Ok(()),
            // some dozens of bytes are always taken
            false => stream.write_all(&out),
        }
    }

    /// Leaves the response, and keeps the connection.
    pub(super) fn leave(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(&frame(RST_STREAM, 0, STREAM, &CANCEL.to_be_bytes()))
    }
}

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default();
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Appends a length behind a prefix of 7 bits (RFC 7541 §5.1).
pub(crate) fn length(length: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(127) else {
        block.extend(u8::try_from(length));
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.extend(u8::try_from(rest % 128 + 128));
        rest /= 128;
    }
    block.extend(u8::try_from(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_however_their_bytes_come() {
        let all = [
            frame(SETTINGS, 0, 0, &[0; 6]),
            frame(HEADERS, END_HEADERS, STREAM, &[STATUS_200, 7, 7]),
            frame(DATA, 0, STREAM, &[b'a'; 20_000]),
            frame(DATA, END_STREAM, STREAM, &[]),
        ]
        .concat();
        for step in [1, 9, 10, 4096, all.len()] {
            let mut response = Http2Response::default();
            let (mut content, mut ends) = (0, 0);
            for bytes in all.chunks(step) {
                let received = response.receive(bytes, |piece| {
                    match piece {
                        Piece::Content(bytes) => content += bytes.len(),
                        Piece::End => ends += 1,
                    }
                    Ok(())
                });
                assert_eq!(received, Ok(()), "pieces of {step}");
            }
            assert_eq!((content, ends), (20_000, 1));
            assert_eq!((response.consumed, response.settings), (20_000, 1));
        }
    }

    #[test]
    fn response_of_another_status_or_a_reset_is_refused() {
        for bytes in [
            frame(HEADERS, END_HEADERS, STREAM, &[0x8d]),
            frame(RST_STREAM, 0, STREAM, &[0; 4]),
            frame(GOAWAY, 0, 0, &[0; 8]),
            frame(DATA, 0, STREAM, &[0]),
        ] {
            let mut response = Http2Response::default();
            assert!(response.receive(&bytes, |_| Ok(())).is_err(), "{bytes:?}");
        }
    }
}
