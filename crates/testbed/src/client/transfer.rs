//! A response as it arrives at a client: head, then content of which every byte is checked.

use super::http2::{ClientVersion, Http2Response, Piece};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use weir_bench::client::{Command, Connection, Ending, Event, Inspect};
use weir_bench::origin::{ResponseSpec, content_of};
use weir_semantics::line_named;
use weir_wire::ResponseHead;
use weir_workload::Content;

/// A request that was sent, and what has arrived of its response.
#[derive(Debug)]
pub(crate) struct Transfer {
    stream: TcpStream,
    response: Response,
    /// The frames that it comes in, by HTTP/2.
    frames: Option<Http2Response>,
}

impl Transfer {
    /// Requests a whole response. One without a length is requested in HTTP/1.0, so that its
    /// content is not chunked.
    pub(crate) fn ask(mut stream: TcpStream, spec: &ResponseSpec) -> io::Result<Self> {
        let version = if spec.has_length { "1.1" } else { "1.0" };
        let request = format!("GET {spec} HTTP/{version}\r\nHost: origin.example\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let response = Response::new(spec);
        Ok(Self {
            stream,
            response,
            frames: None,
        })
    }

    /// The same by a version of HTTP.
    pub(crate) fn ask_by(
        version: ClientVersion,
        mut stream: TcpStream,
        spec: &ResponseSpec,
    ) -> io::Result<Self> {
        if version == ClientVersion::Http1 {
            return Self::ask(stream, spec);
        }
        let frames = Http2Response::ask(&mut stream, spec)?;
        Ok(Self {
            stream,
            response: Response::new(spec),
            frames: Some(frames),
        })
    }

    /// Leaves the response: its connection ends, or, by HTTP/2, its stream alone. What is handed
    /// back is the connection that goes on, then.
    pub(crate) fn leave(mut self) -> Option<TcpStream> {
        self.frames?;
        Http2Response::leave(&mut self.stream).ok()?;
        Some(self.stream)
    }

    /// Accepts the content without a length: a module may change it.
    pub(crate) fn accept_any_framing(&mut self) {
        self.response.check.has_length = false;
    }

    /// Reads once, at most as much as `buffer` holds, and says how many bytes came. None came if
    /// the socket's time limit passed, if it does not wait, or at the end of a whole response.
    ///
    /// # Errors
    /// Says what is wrong with the response or the connection; the transfer is over.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        match self.stream.read(buffer) {
            Ok(0) => self.response.end().map(|()| 0),
            Ok(length) => match &mut self.frames {
                None => self.response.take(&buffer[..length]).map(|()| length),
                Some(frames) => {
                    let response = &mut self.response;
                    frames.receive(&buffer[..length], |piece| response.take_piece(piece))?;
                    let sent = frames.respond(&mut self.stream);
                    sent.map_err(|error| error.kind().to_string())?;
                    Ok(length)
                }
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(CUT.to_owned()),
            Err(error) => Err(error.kind().to_string()),
        }
    }

    /// Whether nothing of a response came.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.response.is_unanswered
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.response.is_whole
    }

    /// Content that arrived.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.response.check.read_bytes
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection, for another request.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// The connection ended before the response did.
pub(crate) const CUT: &str = "cut";

const TOO_LONG: &str = "more content than there is";

#[derive(Debug)]
struct Response {
    connection: Connection,
    check: ContentCheck,
    is_unanswered: bool,
    is_whole: bool,
}

impl Response {
    fn new(spec: &ResponseSpec) -> Self {
        Self {
            connection: Connection::with_get_sent(),
            check: ContentCheck {
                content: content_of(&spec.to_string()),
                size_bytes: spec.size_bytes,
                has_length: spec.has_length,
                read_bytes: 0,
                mismatch: None,
            },
            is_unanswered: true,
            is_whole: false,
        }
    }

    fn end(&mut self) -> Result<(), String> {
        if self.is_whole {
            return Ok(());
        }
        self.handle(Event::Closed)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.is_unanswered = false;
        if self.is_whole {
            return Err(TOO_LONG.to_owned());
        }
        self.handle(Event::Bytes(bytes))
    }

    /// The same of a piece by HTTP/2.
    fn take_piece(&mut self, piece: Piece<'_>) -> Result<(), String> {
        self.is_unanswered = false;
        match piece {
            Piece::Content(bytes) => {
                // what is wrong is looked at below
                let _ = self.check.content(bytes);
            }
            Piece::End => self.is_whole = self.check.is_complete(),
        }
        match self.check.mismatch.take() {
            Some(mismatch) => Err(mismatch),
            None if piece == Piece::End && !self.is_whole => Err(CUT.to_owned()),
            None => Ok(()),
        }
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), String> {
        let command = self.connection.handle(event, &mut self.check);
        if let Some(mismatch) = self.check.mismatch.take() {
            return Err(mismatch);
        }
        let Command::Finish { ending, .. } = command else {
            return Ok(());
        };
        self.is_whole = matches!(ending, Ending::Whole { .. }) && self.check.is_complete();
        match ending {
            _ if self.is_whole => Ok(()),
            Ending::Surplus => Err(TOO_LONG.to_owned()),
            Ending::Unreadable(why) => Err(why.to_owned()),
            _ => Err(CUT.to_owned()),
        }
    }
}

/// What a response should be, and the first thing in it that is not so.
#[derive(Debug)]
struct ContentCheck {
    content: Content,
    size_bytes: u64,
    has_length: bool,
    read_bytes: u64,
    mismatch: Option<String>,
}

impl ContentCheck {
    fn is_complete(&self) -> bool {
        self.read_bytes == self.size_bytes
    }
}

impl Inspect for ContentCheck {
    fn head(&mut self, head: &ResponseHead<'_, '_>, _: &[u8]) {
        let length = line_named(head.fields, "Content-Length").map(String::from_utf8_lossy);
        self.mismatch = match length {
            _ if head.status != 200 => Some(format!("status {}", head.status)),
            _ if !self.has_length => None,
            Some(length) if length == self.size_bytes.to_string() => None,
            Some(length) => Some(format!("a Content-Length of {length}")),
            None => Some("no Content-Length".to_owned()),
        };
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if self.mismatch.is_none() {
            self.mismatch = if bytes.len() as u64 > self.size_bytes - self.read_bytes {
                Some(TOO_LONG.to_owned())
            } else {
                let at = self.content.differs_at(self.read_bytes, bytes);
                at.map(|at| format!("wrong content at {at}"))
            };
        }
        if self.mismatch.is_some() {
            return ControlFlow::Break(());
        }
        self.read_bytes += bytes.len() as u64;
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE_BYTES: u64 = 10_000;

    fn response(status_line: &str, length: &str, content_of_path: &str) -> Vec<u8> {
        let mut bytes =
            format!("HTTP/1.1 {status_line}\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        let head_bytes = bytes.len();
        bytes.resize(head_bytes + 10_000, 0);
        let spec = ResponseSpec::new(content_of_path, SIZE_BYTES);
        content_of(&spec.to_string()).fill(0, &mut bytes[head_bytes..]);
        bytes
    }

    /// The same whole and in pieces of seven bytes.
    fn check(bytes: &[u8], expected: Result<u64, &str>) {
        for piece in [bytes.len(), 7] {
            let mut response = Response::new(&ResponseSpec::new("/a", SIZE_BYTES));
            let taken = bytes.chunks(piece).try_for_each(|part| response.take(part));
            match (taken, expected) {
                (Ok(()), Ok(bytes)) => assert_eq!(response.check.read_bytes, bytes),
                (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
                (taken, expected) => panic!("{taken:?} instead of {expected:?}"),
            }
            assert_eq!(response.is_whole, expected == Ok(SIZE_BYTES));
        }
    }

    #[test]
    fn matching_response_is_whole_only_at_its_last_byte() {
        let right = response("200 OK", "10000", "/a");
        check(&right, Ok(SIZE_BYTES));
        check(&right[..right.len() - 1], Ok(SIZE_BYTES - 1));
        check(&right[..10], Ok(0));
    }

    #[test]
    fn response_with_wrong_status_length_or_content_is_refused() {
        check(
            &response("503 Service Unavailable", "10000", "/a"),
            Err("status 503"),
        );
        check(&response("200 OK", "9999", "/a"), Err("Content-Length"));
        check(&response("200 OK", "10000", "/b"), Err("wrong content"));
        let mut longer = response("200 OK", "10000", "/a");
        longer.push(0);
        check(&longer, Err("more content"));
        let mut changed = response("200 OK", "10000", "/a");
        let last = changed.len() - 1;
        changed[last] ^= 1;
        check(&changed, Err("wrong content at 9999"));
    }

    #[test]
    fn response_without_length_is_whole_only_at_the_end_of_its_connection() {
        let spec = ResponseSpec {
            has_length: false,
            ..ResponseSpec::new("/a", 3)
        };
        let mut bytes = b"HTTP/1.0 200 OK\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + 3, 0);
        let head_bytes = bytes.len() - 3;
        content_of(&spec.to_string()).fill(0, &mut bytes[head_bytes..]);
        for missing in [0, 1] {
            let mut response = Response::new(&spec);
            let taken = response.take(&bytes[..bytes.len() - missing]);
            assert!(taken.is_ok() && !response.is_whole);
            assert_eq!(response.end().is_ok(), missing == 0);
        }
    }
}
