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
/// Bytes of a reply: the longest is what is wrong with a config.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// What the admin interface said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The status code.
    pub(crate) status: u16,
    /// The text.
    pub(crate) body: String,
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
    body: &str,
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
    request.push_str(body);
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

fn speak(mut stream: impl Read + Write, request: &str) -> io::Result<Reply> {
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply)?;
    parse(&reply).ok_or_else(|| io::Error::other("it does not answer as an admin interface does"))
}

/// The reply ends with the connection, as the request says.
fn parse(reply: &[u8]) -> Option<Reply> {
    let text = str::from_utf8(reply).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status_line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let status = status_line.split(' ').nth(1)?.parse().ok()?;
    let body = body.to_owned();
    Some(Reply { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_parses_to_status_and_content_and_a_malformed_one_to_none() {
        let found = parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npurged 3\n");
        let body = "purged 3\n".to_owned();
        assert_eq!(found, Some(Reply { status: 200, body }));
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
