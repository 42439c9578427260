//! One POST of a JSON object, and its response, over HTTP/1.1.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_net::next_hops::HopKey;
use weir_net::resolver::Resolver;
use weir_semantics::Method;
use weir_wire::write::{decimal, end_of_head, field, request_line};
use weir_wire::{
    BodyEvent, BodyReader, HeadLimits, LineBuffer, Progress, Version, parse_response, response_body,
};

/// Time for a connection, the names' look-up included.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// The longest response, or line of a response that goes on, bytes. etcd takes requests of 1.5 MiB;
/// base64 makes 2 MiB of that.
pub(super) const CONTENT_BYTES_MAX: usize = 8 << 20;

/// The longest head, bytes: etcd's have some hundred.
const HEAD: HeadLimits = HeadLimits {
    bytes_max: 16 << 10,
    fields_max: 64,
};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Why there is no response.
#[derive(Debug)]
pub(super) struct HttpError(String);

impl HttpError {
    fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A response whose head has arrived.
#[derive(Debug)]
pub(super) struct Response {
    stream: TcpStream,
    /// What was received and not yet read.
    received: Vec<u8>,
    reader: BodyReader,
    /// Content that was not yet taken.
    content: Vec<u8>,
    is_complete: bool,
    pub(super) status: u16,
}

/// Sends `json` to `path` at `hop`; the response when its head is there.
pub(super) async fn post(
    resolver: &Resolver,
    hop: &HopKey,
    path: &str,
    json: &[u8],
) -> Result<Response, HttpError> {
    let connecting = timeout(CONNECT_LIMIT, connect(resolver, hop));
    let mut stream = connecting
        .await
        .map_err(|_| HttpError::new("no connection in time"))??;
    stream
        .write_all(&request(hop, path, json))
        .await
        .map_err(HttpError::new)?;
    let mut received = Vec::new();
    loop {
        if let Some((status, reader, consumed)) = read_head(&received)? {
            received.drain(..consumed);
            return Ok(Response {
                stream,
                received,
                reader,
                content: Vec::new(),
                is_complete: false,
                status,
            });
        }
        if receive(&mut stream, &mut received).await? == 0 {
            return Err(HttpError::new("closed without a response"));
        }
    }
}

async fn connect(resolver: &Resolver, hop: &HopKey) -> Result<TcpStream, HttpError> {
    let addresses = resolver.resolve(&hop.host).await.map_err(HttpError::new)?;
    let mut last = HttpError::new("no address");
    for ip in addresses.iter() {
        match TcpStream::connect(SocketAddr::new(*ip, hop.port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = HttpError::new(error),
        }
    }
    Err(last)
}

fn request(hop: &HopKey, path: &str, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + json.len());
    request_line(&mut out, "POST", path, Version::Http11);
    field(&mut out, "Host", hop.to_string().as_bytes());
    field(&mut out, "Content-Type", b"application/json");
    let mut length = Vec::new();
    decimal(&mut length, json.len() as u64);
    field(&mut out, "Content-Length", &length);
    field(&mut out, "Connection", b"close");
    end_of_head(&mut out);
    out.extend_from_slice(json);
    out
}

/// The status of a response, what reads its content, and where that begins; `None`: there is more
/// to come.
fn read_head(received: &[u8]) -> Result<Option<(u16, BodyReader, usize)>, HttpError> {
    let mut lines = LineBuffer::new();
    let parsed = parse_response(received, &HEAD, &mut lines).map_err(HttpError::new)?;
    let Progress::Complete { head, consumed } = parsed else {
        return Ok(None);
    };
    let length = response_body(head.version, Method::Post, head.status, head.fields);
    let length = length.map_err(HttpError::new)?;
    Ok(Some((head.status, BodyReader::new(length, HEAD), consumed)))
}

async fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Result<usize, HttpError> {
    received.reserve(READ_BYTES);
    stream.read_buf(received).await.map_err(HttpError::new)
}

impl Response {
    /// The whole content.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, HttpError> {
        while !self.is_complete {
            self.read_more().await?;
        }
        Ok(self.content)
    }

    /// The next line of the content, without its end; `None` at the end.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    pub(super) async fn line(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let mut looked = 0;
        loop {
            let end = self.content[looked..]
                .iter()
                .position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let mut line: Vec<u8> = self.content.drain(..=looked + end).collect();
                line.pop();
                return Ok(Some(line));
            }
            if self.is_complete {
                return Ok(None);
            }
            looked = self.content.len();
            self.read_more().await?;
        }
    }

    /// Reads what has arrived, or waits for more.
    async fn read_more(&mut self) -> Result<(), HttpError> {
        let mut at = 0;
        loop {
            let step = self.reader.step(&self.received[at..]);
            let step = step.map_err(HttpError::new)?;
            at += step.consumed;
            match step.event {
                BodyEvent::Data(data) => self.content.extend_from_slice(data),
                BodyEvent::NeedMore => break,
                BodyEvent::End => {
                    self.is_complete = true;
                    break;
                }
            }
            if self.content.len() > CONTENT_BYTES_MAX {
                return Err(HttpError::new(format_args!(
                    "more than {CONTENT_BYTES_MAX} bytes"
                )));
            }
        }
        self.received.drain(..at);
        if at == 0 && !self.is_complete && receive(&mut self.stream, &mut self.received).await? == 0
        {
            self.reader.at_eof().map_err(HttpError::new)?;
            self.is_complete = true;
        }
        Ok(())
    }
}
