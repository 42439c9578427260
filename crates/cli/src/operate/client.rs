//! One request to an admin interface, and its reply: HTTP/1.1 as far as that needs it.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weir_proxy::admin::Token;
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
/// There is no answer at `address`, or not one of an admin interface.
pub(crate) fn send(
    address: &AdminAddress,
    (method, path): (Method, &str),
    body: &[u8],
    token: Option<&Token>,
) -> io::Result<Reply> {
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
        AdminAddress::Off => Err(io::Error::other("the admin interface is off")),
        AdminAddress::At(address) => {
            let stream = TcpStream::connect_timeout(address, CONNECT_LIMIT)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            speak(stream, &request)
        }
        AdminAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            speak(stream, &request)
        }
    }
}

fn speak(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Reply> {
    stream.write_all(request)?;
    let mut reply = Vec::new();
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply)?;
    parse(&reply).ok_or_else(|| io::Error::other("it does not answer as an admin interface does"))
}

/// The reply ends with the connection, as the request says.
fn parse(reply: &[u8]) -> Option<Reply> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, content) = (str::from_utf8(&reply[..end]).ok()?, &reply[end + 4..]);
    let status_line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let status = status_line.split(' ').nth(1)?.parse().ok()?;
    Some(Reply {
        status,
        body: str::from_utf8(content).unwrap_or_default().to_owned(),
        content: content.to_vec(),
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
}
