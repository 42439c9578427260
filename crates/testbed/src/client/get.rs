//! A client of a few lines: one GET or POST on a connection that stays open.

use rustix::net::{AddressFamily, SocketType, bind, connect as connect_socket, socket, sockopt};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::ops::ControlFlow;
use std::time::Duration;
use weir_bench::client::{Command, Connection, Ending, Event, Inspect};
use weir_wire::ResponseHead;

const SILENCE_MAX: Duration = Duration::from_secs(5);

/// From one address to one port there are some 28 000 ports, many of them in `TIME_WAIT` after
/// other measurements.
const CONNECTIONS_PER_ADDRESS: usize = 1000;

/// What is checked of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether it has a content coding.
    pub(crate) is_coded: bool,
    /// Whether a module that is measured added its field.
    pub(crate) is_probed: bool,
    pub(crate) body: Vec<u8>,
}

impl Inspect for Answer {
    fn head(&mut self, head: &ResponseHead<'_, '_>, _: &[u8]) {
        self.status = head.status;
        let has = |name: &str| {
            let mut lines = head.fields.iter();
            lines.any(|line| line.name.eq_ignore_ascii_case(name))
        };
        self.is_coded = has("content-encoding");
        self.is_probed = has("x-probe");
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

/// A connection on which nothing waits for ever.
pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    connect_from(Ipv4Addr::UNSPECIFIED, to, None)
}

/// The same from one of this machine's addresses, and with a receive buffer of its own size.
pub(crate) fn connect_from(
    from: Ipv4Addr,
    to: SocketAddr,
    receive_buffer_bytes: Option<usize>,
) -> io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    if let Some(bytes) = receive_buffer_bytes {
        // before connecting: the window is negotiated then
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    if from != Ipv4Addr::UNSPECIFIED {
        bind(&socket, &SocketAddrV4::new(from, 0))?;
    }
    // on Linux the timeout of sending is that of connecting too
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(SILENCE_MAX))?;
    connect_socket(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// An address of this machine for one of many connections.
pub(crate) fn source_address(number: usize) -> Ipv4Addr {
    let host = u8::try_from(2 + number / CONNECTIONS_PER_ADDRESS).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 0, 0, host)
}

/// Sends one request on a new connection.
pub(crate) fn get_once(to: SocketAddr, path: &str) -> io::Result<Answer> {
    get(&mut connect(to)?, path)
}

/// The host that is asked for where none is named.
pub(crate) const HOST: &str = "origin.example";

/// Sends requests on a connection that stays open.
///
/// # Errors
/// The connection broke, or the response is not framed by `Content-Length` or chunks.
pub(crate) fn get(stream: &mut TcpStream, path: &str) -> io::Result<Answer> {
    get_of(stream, HOST, path)
}

/// The same of a host.
pub(crate) fn get_of(stream: &mut TcpStream, host: &str, path: &str) -> io::Result<Answer> {
    get_with(stream, &format!("Host: {host}\r\n"), path)
}

/// The same with these field lines, each with its CRLF.
pub(crate) fn get_with(stream: &mut TcpStream, lines: &str, path: &str) -> io::Result<Answer> {
    let mut answer = Answer::default();
    get_into(stream, (lines, path), &mut answer)?;
    Ok(answer)
}

/// The same; what arrives goes to `answer`. Field lines are first, the path second.
pub(crate) fn get_into(
    stream: &mut TcpStream,
    request: (&str, &str),
    answer: &mut impl Inspect,
) -> io::Result<()> {
    ask(stream, request)?;
    read_into(stream, answer)
}

/// Sends a request whose response is read later. Field lines are first, the path second.
pub(crate) fn ask(stream: &mut TcpStream, (lines, path): (&str, &str)) -> io::Result<()> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\n{lines}\r\n").as_bytes())
}

/// Sends a POST without content on a connection that stays open.
pub(crate) fn post_of(stream: &mut TcpStream, host: &str, path: &str) -> io::Result<Answer> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Answer::default();
    read_into(stream, &mut answer)?;
    Ok(answer)
}

/// Reads one response to a request that was sent; what arrives goes to `answer`.
pub(crate) fn read_into(stream: &mut TcpStream, answer: &mut impl Inspect) -> io::Result<()> {
    let mut connection = Connection::with_get_sent();
    let mut part = [0; 16 * 1024];
    loop {
        let event = match stream.read(&mut part)? {
            0 => Event::Closed,
            length => Event::Bytes(&part[..length]),
        };
        match connection.handle(event, answer) {
            Command::Finish {
                ending: Ending::Whole { until_close: false },
                ..
            } => return Ok(()),
            Command::Finish { ending, .. } => {
                let what = format!("no whole response: {ending:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn check(response: &'static str, expected: Option<Answer>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("its address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 1024];
            let length = stream.read(&mut request).expect("a request");
            stream.write_all(response.as_bytes()).expect("a reader");
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let answer = get_once(to, "/a").ok();
        let request = server.join().expect("no panic");
        assert!(request.starts_with("GET /a HTTP/1.1\r\n"), "{request}");
        assert_eq!(answer, expected, "{response}");
    }

    #[test]
    fn content_is_read_by_content_length_or_chunks() {
        let answer = |body: &str| {
            Some(Answer {
                status: 200,
                is_coded: false,
                is_probed: false,
                body: body.as_bytes().to_vec(),
            })
        };
        check(
            "HTTP/1.1 200 OK\r\ncontent-LENGTH: 3\r\n\r\nabc",
            answer("abc"),
        );
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        check(chunked, answer("abc"));
    }

    #[test]
    fn truncated_or_unframed_response_is_an_error() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", None);
        check("HTTP/1.1 200 OK\r\n\r\nabc", None);
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            None,
        );
    }
}
