//! A client of HTTP/2 that sends single frames and takes what comes without waiting.

use crate::support::PATIENCE;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A setting (RFC 9113 §6.5.2).
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

const CANCEL: u32 = 8;

/// Bytes of the head of a frame.
const HEAD_BYTES: usize = 9;

/// A frame that came.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code of a GOAWAY.
    pub(crate) fn error(&self) -> u32 {
        let code = self.payload[4..8].try_into().expect("4 bytes");
        u32::from_be_bytes(code)
    }
}

/// A connection.
pub(crate) struct StreamsClient {
    stream: TcpStream,
    unused: Vec<u8>,
    has_ended: bool,
}

impl StreamsClient {
    /// Connects, and begins with the preface and empty settings.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the proxy listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_nonblocking(true).expect("a socket");
        let mut client = Self {
            stream,
            unused: Vec::new(),
            has_ended: false,
        };
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(SETTINGS, 0, 0, &[]);
        client
    }

    fn write(&mut self, mut bytes: &[u8]) {
        let until = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(Instant::now() < until, "the proxy does not read");
                }
                Err(error) => panic!("the proxy has closed the connection: {error}"),
            }
        }
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short payload");
        let mut bytes = length.to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        self.write(&bytes);
    }

    /// Sends a GET for a path, with what `Priority` says.
    pub(crate) fn get(&mut self, stream: u32, path: &str, priority: &str) {
        // `:method: GET` and `:scheme: http` of the static table, then literals (RFC 7541 §6)
        let mut block = vec![0x82, 0x86];
        for (name, value) in [(0x04, path), (0x01, "a.test")] {
            block.push(name);
            block.push(u8::try_from(value.len()).expect("short"));
            block.extend(value.as_bytes());
        }
        // a literal with a name that is not in the table
        block.extend(b"\x00\x08priority");
        block.push(u8::try_from(priority.len()).expect("short"));
        block.extend(priority.as_bytes());
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block);
    }

    /// Opens the window of a stream, or, by 0, of the connection.
    pub(crate) fn open_window(&mut self, stream: u32, by: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
    }

    /// Changes a setting.
    pub(crate) fn set(&mut self, setting: u16, value: u32) {
        let payload = [&setting.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.send(SETTINGS, 0, 0, &payload);
    }

    pub(crate) fn acknowledge(&mut self) {
        self.send(SETTINGS, ACK, 0, &[]);
    }

    pub(crate) fn reset(&mut self, stream: u32) {
        self.send(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
    }

    /// Says that no further stream is taken, and nothing is wrong.
    pub(crate) fn go_away(&mut self) {
        self.send(GOAWAY, 0, 0, &[0; 8]);
    }

    /// The next frame that has come whole.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        if let Some(frame) = self.parse() {
            return Some(frame);
        }
        let mut buffer = vec![0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.has_ended = true,
            Ok(count) => self.unused.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("the proxy has reset the connection: {error}"),
        }
        self.parse()
    }

    fn parse(&mut self) -> Option<Frame> {
        let head = self.unused.first_chunk::<HEAD_BYTES>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = self.unused.get(HEAD_BYTES..HEAD_BYTES + length)?.to_vec();
        self.unused.drain(..HEAD_BYTES + length);
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
            payload,
        })
    }

    /// Whether the proxy has ended the connection, and all was taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended && self.unused.is_empty()
    }
}
