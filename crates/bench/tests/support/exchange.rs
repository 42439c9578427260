//! One end of a connection that sends exactly the given bytes, and reads one message at a time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use weir_semantics::{FieldLine, Method};
use weir_wire::{
    BodyEvent, BodyLength, BodyReader, HeadLimits, LineBuffer, Progress, Version, parse_request,
    parse_response, request_body, response_body,
};

use super::PATIENCE;

/// A connection and what has arrived on it beyond the messages that were read.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A response as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) version: Version,
    pub(crate) status: u16,
    /// In order of arrival.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) content: Vec<u8>,
    /// Did all of the content come that was promised?
    pub(crate) is_whole: bool,
    /// Is its end that of the connection?
    pub(crate) until_close: bool,
    /// From the first byte to the end of the head.
    pub(crate) head_bytes: usize,
}

/// A request as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) content: Vec<u8>,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("a connection"))
    }

    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request of these lines, an empty one added, and reads the response.
    pub(crate) fn ask(&mut self, lines: &[&str]) -> Reply {
        self.send(lines_of(lines).as_bytes()).expect("sent");
        let method = lines[0].split(' ').next().expect("a method");
        self.reply(method).expect("a response")
    }

    /// The next response, to a request with this method. A 1xx is returned like any other.
    ///
    /// # Errors
    /// Nothing, no response or no whole head arrived; content that is cut short is no error.
    pub(crate) fn reply(&mut self, method: &str) -> io::Result<Reply> {
        let (mut reply, length) = loop {
            if let Some(found) = take_response(&mut self.unread, method)? {
                break found;
            }
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        reply.until_close = length == BodyLength::UntilClose;
        (reply.content, reply.is_whole) = self.content(length)?;
        Ok(reply)
    }

    /// The next request; `None` when the peer has no more.
    pub(crate) fn request(&mut self) -> io::Result<Option<ReceivedRequest>> {
        let (mut asked, length) = loop {
            if let Some(found) = take_request(&mut self.unread)? {
                break found;
            }
            if !self.more()? {
                return Ok(None);
            }
        };
        (asked.content, _) = self.content(length)?;
        Ok(Some(asked))
    }

    /// All that comes until the peer closes; `Err` if it resets.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.more()? {}
        Ok(std::mem::take(&mut self.unread))
    }

    /// Content of this length, and whether it is whole. A reset is an end like a close.
    fn content(&mut self, length: BodyLength) -> io::Result<(Vec<u8>, bool)> {
        let mut reader = BodyReader::new(length, HeadLimits::default());
        let mut content = Vec::new();
        loop {
            let step = reader.step(&self.unread).map_err(invalid)?;
            let (consumed, event) = (step.consumed, step.event);
            match event {
                BodyEvent::Data(data) => content.extend_from_slice(data),
                BodyEvent::End => {
                    self.unread.drain(..consumed);
                    return Ok((content, true));
                }
                BodyEvent::NeedMore => {
                    self.unread.drain(..consumed);
                    if !self.more().unwrap_or(false) {
                        return Ok((content, reader.at_eof().is_ok()));
                    }
                    continue;
                }
            }
            self.unread.drain(..consumed);
        }
    }

    /// Reads some more; false at the end.
    fn more(&mut self) -> io::Result<bool> {
        let mut part = [0; 64 * 1024];
        let length = self.stream.read(&mut part)?;
        self.unread.extend_from_slice(&part[..length]);
        Ok(length > 0)
    }
}

impl Reply {
    /// The value of the first field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }
}

impl ReceivedRequest {
    /// The value of the first field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Lines with their ends, and the empty one.
fn lines_of(lines: &[&str]) -> String {
    lines
        .iter()
        .chain(&[""])
        .map(|line| format!("{line}\r\n"))
        .collect()
}

fn take_response(unread: &mut Vec<u8>, method: &str) -> io::Result<Option<(Reply, BodyLength)>> {
    let mut lines = LineBuffer::new();
    let limits = HeadLimits::default();
    let Progress::Complete { head, consumed } =
        parse_response(unread, &limits, &mut lines).map_err(invalid)?
    else {
        return Ok(None);
    };
    let length = response_body(
        head.version,
        Method::parse(method),
        head.status,
        head.fields,
    );
    let reply = Reply {
        version: head.version,
        status: head.status,
        fields: owned(head.fields),
        content: Vec::new(),
        is_whole: false,
        until_close: false,
        head_bytes: consumed,
    };
    unread.drain(..consumed);
    Ok(Some((reply, length.map_err(invalid)?)))
}

fn take_request(unread: &mut Vec<u8>) -> io::Result<Option<(ReceivedRequest, BodyLength)>> {
    let mut lines = LineBuffer::new();
    let limits = HeadLimits::default();
    let Progress::Complete { head, consumed } =
        parse_request(unread, &limits, &mut lines).map_err(invalid)?
    else {
        return Ok(None);
    };
    let length = request_body(head.version, head.fields);
    let asked = ReceivedRequest {
        method: head.method.to_owned(),
        target: head.target.to_owned(),
        version: head.version,
        fields: owned(head.fields),
        content: Vec::new(),
    };
    unread.drain(..consumed);
    Ok(Some((asked, length.map_err(invalid)?)))
}

fn owned(fields: &[FieldLine<'_>]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|line| {
            let value = String::from_utf8_lossy(line.value).into_owned();
            (line.name.to_owned(), value)
        })
        .collect()
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
