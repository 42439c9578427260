//! One request to an admin interface, and its reply: HTTP/1.1 as far as that needs it.

use super::no_reply::NoReply;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weir_proxy::admin::{
    INTERFACE_VERSION, LIST_TITLE, NO_ENDPOINT, NO_METHOD, Token, VERSION_FIELD,
};
use weir_proxy::config::AdminAddress;

/// How long connecting may take: it is this machine, or one near it.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the proxy may be silent: a reload opens listeners, a purge waits for the disk.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// Bytes of a reply: the longest is stored content, which is given at once up to 16 MiB.
const REPLY_BYTES_MAX: u64 = 17 << 20;

/// What the admin interface said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The status code.
    pub(crate) status: u16,
    /// The text; empty if it is none.
    pub(crate) body: String,
    /// The content as it is.
    pub(crate) content: Vec<u8>,
    /// The version of the admin interface, if it names one.
    version: Option<u32>,
}

impl Reply {
    /// Whether the interface says that it does not know what was asked for.
    fn lacks_endpoint(&self) -> bool {
        let line = self.body.lines().next();
        match self.status {
            404 => line == Some(NO_ENDPOINT),
            405 => line == Some(NO_METHOD),
            _ => false,
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Reads.
    Get,
    /// Changes something.
    Post,
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// Sends a request and reads the reply.
///
/// # Errors
///
/// What keeps the admin interface at `address` from answering it.
pub(crate) fn send(
    address: &AdminAddress,
    request: (Method, &str),
    body: &[u8],
    (token, waits): (Option<&Token>, Waits),
) -> Result<Reply, NoReply> {
    // a token is not shown to another program that has the port
    if token.is_some() {
        check_identity(address, waits)?;
    }
    let reply = exchange(address, request, body, (token, waits))?;
    match reply.version {
        Some(version) if version > INTERFACE_VERSION => return Err(NoReply::Newer),
        Some(_) => {}
        None if token.is_some() => {}
        None => check_identity(address, waits)?,
    }
    if reply.lacks_endpoint() {
        return Err(NoReply::Older);
    }
    Ok(reply)
}

/// Whether a Weir answers at `address`. One that names no version of its interface lists its
/// endpoints under the same title.
fn check_identity(address: &AdminAddress, waits: Waits) -> Result<(), NoReply> {
    let list = exchange(address, (Method::Get, "/"), b"", (None, waits))?;
    let has_title = list.body.lines().next() == Some(LIST_TITLE);
    if has_title || list.version.is_some() {
        Ok(())
    } else {
        Err(NoReply::Other)
    }
}

fn exchange(
    address: &AdminAddress,
    (method, path): (Method, &str),
    body: &[u8],
    (token, waits): (Option<&Token>, Waits),
) -> Result<Reply, NoReply> {
    let host = match address {
        AdminAddress::At(address) => address.to_string(),
        AdminAddress::Unix(_) | AdminAddress::Off => "localhost".to_owned(),
    };
    let mut request = format!(
        "{} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n",
        method.as_str(),
        body.len()
    );
    if let Some(token) = token {
        let _infallible = write!(request, "Authorization: Bearer {}\r\n", token.as_str());
    }
    request.push_str("\r\n");
    let request = [request.as_bytes(), body].concat();
    match address {
        AdminAddress::Off => Err(NoReply::Off),
        AdminAddress::At(address) => {
            let limit = CONNECT_LIMIT.min(waits.left()?);
            let stream = TcpStream::connect_timeout(address, limit);
            let stream = stream.map_err(|error| waits.failed(error, limit))?;
            speak(stream, &request, waits)
        }
        AdminAddress::Unix(path) => speak(UnixStream::connect(path)?, &request, waits),
    }
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// Until then in all, if it is limited, and how long that was.
    until: Option<(Instant, Duration)>,
}

impl Waits {
    /// From now on so long in all; without it as long as it is not silent for too long.
    pub(crate) fn of(answer_max: Option<Duration>) -> Self {
        let until = answer_max.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        Self { until }
    }

    /// How long it may be silent from now on.
    fn left(self) -> Result<Duration, NoReply> {
        let Some((until, limit)) = self.until else {
            return Ok(SILENCE_MAX);
        };
        let left = until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(NoReply::Late(limit)),
            false => Ok(left.min(SILENCE_MAX)),
        }
    }

    /// What an error is that came within a silence of `silence`.
    fn failed(self, error: io::Error, silence: Duration) -> NoReply {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                NoReply::Late(self.until.map_or(silence, |(_, limit)| limit))
            }
            _ => error.into(),
        }
    }
}

/// A connection whose silence is limited.
trait Stream: Read + Write {
    /// The next read or write fails if it takes longer.
    fn limit(&self, silence: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn limit(&self, silence: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(silence))?;
        self.set_write_timeout(Some(silence))
    }
}

impl Stream for UnixStream {
    fn limit(&self, silence: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(silence))?;
        self.set_write_timeout(Some(silence))
    }
}

fn speak(mut stream: impl Stream, request: &[u8], waits: Waits) -> Result<Reply, NoReply> {
    stream.limit(waits.left()?)?;
    // one that speaks another protocol may close at once: what it has said is read
    let sent = stream.write_all(request);
    let mut reply = Vec::new();
    let received = receive(&mut stream, &mut reply, waits);
    match parse(&reply) {
        Some(reply) => {
            received?;
            Ok(reply)
        }
        None if !reply.is_empty() && !matches!(received, Err(NoReply::Late(_))) => {
            Err(NoReply::Other)
        }
        None => {
            sent?;
            received?;
            Err(NoReply::Silent)
        }
    }
}

/// Reads to the end of the connection.
fn receive(stream: &mut impl Stream, reply: &mut Vec<u8>, waits: Waits) -> Result<(), NoReply> {
    let mut piece = [0; 16 << 10];
    while (reply.len() as u64) < REPLY_BYTES_MAX {
        let silence = waits.left()?;
        stream.limit(silence)?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => reply.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(waits.failed(error, silence)),
        }
    }
    Ok(())
}

/// The reply ends with the connection, as the request says.
fn parse(reply: &[u8]) -> Option<Reply> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, content) = (str::from_utf8(&reply[..end]).ok()?, &reply[end + 4..]);
    let status_line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let status = status_line.split(' ').nth(1)?.parse().ok()?;
    let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let version = fields.find(|(name, _)| name.eq_ignore_ascii_case(VERSION_FIELD));
    Some(Reply {
        status,
        body: str::from_utf8(content).unwrap_or_default().to_owned(),
        content: content.to_vec(),
        version: version.and_then(|(_, value)| value.trim().parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_parses_to_status_and_content_and_a_malformed_one_to_none() {
        let found = parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npurged 3\n");
        let (body, content) = ("purged 3\n".to_owned(), b"purged 3\n".to_vec());
        let reply = |status, body, content| {
            Some(Reply {
                status,
                body,
                content,
                version: None,
            })
        };
        assert_eq!(found, reply(200, body, content));
        let found = parse(b"HTTP/1.1 200 OK\r\n\r\n\xff\r\n\r\n");
        assert_eq!(found, reply(200, String::new(), b"\xff\r\n\r\n".to_vec()));
        for bad in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn version_of_the_interface_is_a_number_in_its_field() {
        for (field, expected) in [
            ("Weir-Admin: 1", Some(1)),
            ("weir-admin:7", Some(7)),
            ("Weir-Admin: one", None),
            ("X-Weir-Admin: 1", None),
        ] {
            let reply = format!("HTTP/1.1 404 Not Found\r\nServer: x\r\n{field}\r\n\r\n");
            let reply = parse(reply.as_bytes()).expect("a reply");
            assert_eq!(reply.version, expected, "{field}");
        }
    }

    #[test]
    fn endpoint_that_is_not_there_is_told_from_one_that_finds_nothing() {
        for (status, body, expected) in [
            (404, "no such endpoint; there are:\n\nGET  /", true),
            (405, "not by this method; there are:\n\nGET  /", true),
            (404, "nothing is counted: `admin.top` is false\n", false),
            (200, "no such endpoint; there are:\n", false),
        ] {
            let reply = format!("HTTP/1.1 {status} X\r\n\r\n{body}");
            let reply = parse(reply.as_bytes()).expect("a reply");
            assert_eq!(reply.lacks_endpoint(), expected, "{status} {body}");
        }
    }
}
