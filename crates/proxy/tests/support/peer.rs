//! One end of a TCP connection, read with patience and exactly.

use super::PATIENCE;
use super::message::{Head, Response};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By FIN.
    Closed,
    /// By RST.
    Reset,
}

/// A connection, and the bytes of it that were read and not yet used.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    unused: Vec<u8>,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            unused: Vec::new(),
        }
    }

    /// Sends exactly these bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .expect("the peer takes what is sent");
    }

    /// Sends these bytes, while `read` does what makes room for them.
    pub(crate) fn send_while<T>(&mut self, bytes: &[u8], read: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            scope.spawn(|| self.send(bytes));
            read()
        })
    }

    /// Sends bytes that the peer may refuse by closing; whether it took them.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Says that nothing more will come.
    pub(crate) fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("still open");
    }

    /// Closes with RST.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .expect("a socket");
    }

    /// Reads once more; how the connection ended if it did.
    fn read_more(&mut self) -> Result<(), End> {
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Closed),
            Ok(count) => {
                self.unused.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(error) => panic!(
                "nothing more came ({error}) behind {:?}",
                self.unused_text()
            ),
        }
    }

    fn read_more_or_fail(&mut self, wanted: &str) {
        if let Err(end) = self.read_more() {
            panic!(
                "{end:?} instead of {wanted}, behind {:?}",
                self.unused_text()
            );
        }
    }

    fn unused_text(&self) -> String {
        String::from_utf8_lossy(&self.unused[..self.unused.len().min(2000)]).into_owned()
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.unused.split_off(length);
        std::mem::replace(&mut self.unused, rest)
    }

    /// Reads exactly so many bytes.
    pub(crate) fn read_exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unused.len() < length {
            self.read_more_or_fail("content");
        }
        self.take(length)
    }

    /// Reads exactly these bytes and fails on any other.
    pub(crate) fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let read = self.read_exactly(bytes.len());
        assert_eq!(
            String::from_utf8_lossy(&read),
            String::from_utf8_lossy(bytes)
        );
    }

    /// Reads up to and with `mark`.
    pub(crate) fn read_until(&mut self, mark: &str) -> Vec<u8> {
        loop {
            let found = self
                .unused
                .windows(mark.len())
                .position(|window| window == mark.as_bytes());
            if let Some(at) = found {
                return self.take(at + mark.len());
            }
            self.read_more_or_fail(mark);
        }
    }

    /// Reads a head.
    pub(crate) fn read_head(&mut self) -> Head {
        Head::new(&self.read_until("\r\n\r\n"))
    }

    /// Reads content in chunks: all of it, and the trailer section.
    pub(crate) fn read_chunks(&mut self) -> (Vec<u8>, String) {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.read_until("\r\n")).expect("a chunk size");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("a hexadecimal size");
            if size == 0 {
                return (body, self.read_trailers());
            }
            body.extend_from_slice(&self.read_exactly(size));
            self.expect("\r\n");
        }
    }

    /// Reads whole chunks of exactly so many bytes together, and nothing behind.
    pub(crate) fn read_chunks_of(&mut self, length: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < length {
            let line = String::from_utf8(self.read_until("\r\n")).expect("a chunk size");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("a hexadecimal size");
            assert!(size > 0, "the last chunk after {} bytes", body.len());
            body.extend_from_slice(&self.read_exactly(size));
            self.expect("\r\n");
        }
        assert_eq!(body.len(), length, "more content than expected");
        body
    }

    fn read_trailers(&mut self) -> String {
        let mut trailers = String::new();
        loop {
            let line = String::from_utf8(self.read_until("\r\n")).expect("a trailer");
            if line == "\r\n" {
                return trailers;
            }
            trailers.push_str(&line);
        }
    }

    /// Reads a response to anything but HEAD, to its end.
    pub(crate) fn read_response(&mut self) -> Response {
        let head = self.read_head();
        let (body, trailers) = if head.is_chunked() {
            assert_eq!(head.length(), None, "two lengths in {head:?}");
            self.read_chunks()
        } else if let Some(length) = head.length() {
            (self.read_exactly(length), String::new())
        } else if matches!(head.status(), 204 | 304) || head.status() < 200 {
            (Vec::new(), String::new())
        } else {
            let (body, end) = self.read_to_end();
            assert_eq!(end, End::Closed, "content was cut behind {head:?}");
            (body, String::new())
        };
        Response {
            head,
            body,
            trailers,
        }
    }

    /// Reads everything, and how it ended.
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, End) {
        loop {
            if let Err(end) = self.read_more() {
                return (std::mem::take(&mut self.unused), end);
            }
        }
    }

    /// Reads what is left behind `head` of a response that is cut, and fails if it looks whole.
    /// Yields the content, of which a reset may have taken some.
    pub(crate) fn read_cut(&mut self, head: &Head) -> Vec<u8> {
        let (rest, end) = self.read_to_end();
        if head.is_chunked() {
            unchunked(&rest)
        } else if let Some(length) = head.length() {
            assert!(rest.len() < length, "all {length} bytes came");
            rest
        } else {
            assert_eq!(end, End::Reset, "an end like that of whole content");
            rest
        }
    }

    /// Nothing more comes, and the connection ends; by FIN or RST, as the peer had unread bytes or
    /// not.
    pub(crate) fn expect_end(&mut self) -> End {
        let (rest, end) = self.read_to_end();
        assert!(
            rest.is_empty(),
            "more came: {:?}",
            String::from_utf8_lossy(&rest)
        );
        end
    }

    /// Nothing has arrived that was not used, except perhaps the end.
    pub(crate) fn expect_no_bytes(&mut self) {
        self.stream.set_nonblocking(true).expect("a socket");
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        self.stream.set_nonblocking(false).expect("a socket");
        assert!(
            self.unused.is_empty() && !matches!(read, Ok(1..)),
            "more came: {:?} {read:?}",
            self.unused_text()
        );
    }

    /// What has arrived and was not read. The connection is open.
    pub(crate) fn read_available(&mut self) -> Vec<u8> {
        self.stream.set_nonblocking(true).expect("a socket");
        let mut buffer = [0; 65_536];
        let ended = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break Some("it was closed".to_owned()),
                Ok(count) => self.unused.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        self.stream.set_nonblocking(false).expect("a socket");
        assert_eq!(ended, None);
        std::mem::take(&mut self.unused)
    }

    /// Every byte received is used, as far as it has arrived, and the connection is open.
    pub(crate) fn expect_nothing_more(&mut self) {
        self.stream.set_nonblocking(true).expect("a socket");
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        self.stream.set_nonblocking(false).expect("a socket");
        assert!(
            self.unused.is_empty() && read.is_err(),
            "more came: {:?} {read:?}",
            self.unused_text()
        );
    }
}

/// The content of chunks that break off; fails if there is a last one.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let line = std::str::from_utf8(&rest[..end]).expect("a chunk size");
        let size = usize::from_str_radix(line, 16).expect("a hexadecimal size");
        assert!(size > 0, "the last chunk came");
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    body
}
