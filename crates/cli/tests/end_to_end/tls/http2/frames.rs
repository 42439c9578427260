//! A client of HTTP/2, or a server, that sends the frames that it is given (RFC 9113 §4, RFC 7541).

use crate::support::PATIENCE;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// Codes of errors (RFC 9113 §7).
pub(super) const NO_ERROR: u32 = 0;
pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;
pub(super) const HTTP_1_1_REQUIRED: u32 = 13;

/// Settings (RFC 9113 §6.5.2).
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;

/// One connection.
pub(super) struct Frames(TcpStream);

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// The code of a `RST_STREAM` or GOAWAY.
    pub(super) fn error(&self) -> u32 {
        let from = if self.kind == GOAWAY { 4 } else { 0 };
        let code = self.payload[from..from + 4].try_into().expect("4 bytes");
        u32::from_be_bytes(code)
    }
}

impl Frames {
    /// Connects, and sends the preface and settings that are the defaults.
    pub(super) fn connect(address: SocketAddr) -> Self {
        Self::with_settings(address, &[])
    }

    /// The same with these settings.
    pub(super) fn with_settings(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        Self::behind(address, "", settings)
    }

    /// The same behind a balancer that sends this header.
    pub(super) fn behind(address: SocketAddr, header: &str, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).expect("the listener accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        let mut frames = Self(stream);
        frames.write(header.as_bytes());
        frames.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frames.settings(settings);
        frames
    }

    /// Accepts a client, and sends the settings of a server.
    pub(super) fn accept(listener: &TcpListener, settings: &[(u16, u32)]) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        let mut frames = Self(stream);
        let mut preface = [0; 24];
        frames.0.read_exact(&mut preface).expect("a preface");
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frames.settings(settings);
        frames
    }

    /// Another end of the connection, to send by.
    pub(super) fn sender(&self) -> Self {
        Self(self.0.try_clone().expect("a descriptor"))
    }

    fn settings(&mut self, settings: &[(u16, u32)]) {
        let mut payload = Vec::new();
        for (setting, value) in settings {
            payload.extend(setting.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        self.send(SETTINGS, 0, 0, &payload);
    }

    /// Has the kernel hold few bytes that are not read. To be called before content comes.
    pub(super) fn with_small_buffer(self) -> Self {
        let socket = socket2::SockRef::from(&self.0);
        socket.set_recv_buffer_size(64 * 1024).expect("an option");
        self
    }

    /// Sends bytes, if the peer takes them.
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// Sends a frame, if the peer takes it.
    pub(super) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        self.write(&frame(kind, flags, stream, payload))
    }

    /// Sends the head of a request without content.
    pub(super) fn request(&mut self, stream: u32, fields: &[(&str, &str)]) -> bool {
        let block = block(fields);
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// Sends a GET for a path.
    pub(super) fn get(&mut self, stream: u32, path: &str) -> bool {
        self.request(stream, &get(path))
    }

    /// Closes the connection.
    pub(super) fn end(&mut self) {
        self.0.shutdown(Shutdown::Both).expect("it is open");
    }

    /// The next frame; `None` at the end of the connection.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("no frame comes"),
            Err(_) => return None,
        }
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
            payload,
        })
    }

    /// The next frame of a kind, or GOAWAY; others are dropped.
    #[track_caller]
    pub(super) fn until(&mut self, kind: u8) -> Frame {
        loop {
            match self.next() {
                Some(frame) if frame.kind == kind || frame.kind == GOAWAY => return frame,
                Some(_) => {}
                None => panic!("the connection ends before a frame of kind {kind}"),
            }
        }
    }

    /// The code of the last GOAWAY before the connection ends; `None`: it ends without one.
    pub(super) fn goaway(&mut self) -> Option<u32> {
        let mut error = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                error = Some(frame.error());
            }
        }
        error
    }
}

/// The bytes of a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The fields of a GET.
pub(super) fn get(path: &str) -> [(&'static str, &str); 4] {
    [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a.test"),
    ]
}

/// Fields as literals that are not indexed and not compressed (RFC 7541 §6.2.2).
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            number(text.len(), &mut block);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A number behind a prefix of 7 bits (RFC 7541 §5.1).
fn number(number: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = number.checked_sub(127) else {
        block.push(u8::try_from(number).expect("7 bits"));
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).expect("7 bits") | 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).expect("7 bits"));
}
