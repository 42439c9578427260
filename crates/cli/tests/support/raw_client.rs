//! A client that sends the bytes it is given, for what curl would not send or do.

use super::{PATIENCE, Reply};
use socket2::{Domain, Socket, Type};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection.
#[derive(Debug)]
pub(crate) struct RawClient {
    stream: BufReader<TcpStream>,
}

impl RawClient {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the listener accepts")
    }

    /// Connects, if there is a listener.
    pub(crate) fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        Self::of(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    /// Connects from this address of IPv4.
    pub(crate) fn connect_from(from: [u8; 4], address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let from = SocketAddr::from((from, 0));
        socket.bind(&from.into()).expect("an address of loopback");
        let connected = socket.connect_timeout(&address.into(), PATIENCE);
        connected.expect("the listener accepts");
        Self::of(socket.into()).expect("a connection")
    }

    fn of(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the peer takes the bytes");
    }

    /// Sends bytes, if the peer takes them.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a GET in absolute-form and takes the answer.
    pub(crate) fn get(&mut self, url: &str) -> Reply {
        self.try_get(url).expect("an answer")
    }

    /// As [`Self::get`], or what went wrong.
    pub(crate) fn try_get(&mut self, url: &str) -> std::io::Result<Reply> {
        let host = url.split('/').nth(2).unwrap_or_default();
        self.try_send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"))?;
        self.try_reply()
    }

    /// Takes the answer to a GET.
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("an answer")
    }

    /// Takes the answer to a GET, or what went wrong.
    pub(crate) fn try_reply(&mut self) -> std::io::Result<Reply> {
        let head = self.try_head()?;
        let mut reply = Reply {
            head,
            body: Vec::new(),
        };
        self.read_body(&mut reply)?;
        Ok(reply)
    }

    /// Takes a head alone.
    pub(crate) fn head(&mut self) -> Reply {
        let head = self.try_head().expect("a head");
        let body = Vec::new();
        Reply { head, body }
    }

    fn try_head(&mut self) -> std::io::Result<String> {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "" => return Ok(head.trim_end().to_owned()),
                line => head.push_str(&format!("{line}\n")),
            }
        }
    }

    /// Takes the status of an answer, or what went wrong.
    pub(crate) fn try_status(&mut self) -> std::io::Result<u16> {
        let head = self.try_head()?;
        let body = Vec::new();
        Ok(Reply { head, body }.status())
    }

    /// Reads until the connection ends, however it does.
    pub(crate) fn read_until_cut(&mut self) {
        let mut bytes = vec![0; 64 << 10];
        while self.stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    fn read_body(&mut self, reply: &mut Reply) -> std::io::Result<()> {
        let length = reply.field("content-length");
        if matches!(reply.status(), 204 | 304 | 100..=199) {
            return Ok(());
        }
        if reply
            .field("transfer-encoding")
            .eq_ignore_ascii_case("chunked")
        {
            return self.read_chunks(&mut reply.body);
        }
        if length.is_empty() {
            return self.stream.read_to_end(&mut reply.body).map(|_| ());
        }
        reply.body = vec![0; length.parse().map_err(std::io::Error::other)?];
        self.stream.read_exact(&mut reply.body)
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> std::io::Result<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(std::io::Error::other)?;
            let start = body.len();
            body.resize(start + size, 0);
            self.stream.read_exact(&mut body[start..])?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if size == 0 {
                // a trailer section would end with one more empty line
                assert_eq!(line, "\r\n", "trailers nobody sent");
                return Ok(());
            }
        }
    }

    /// Takes exactly so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end_sending(&mut self) {
        let ended = self.stream.get_ref().shutdown(std::net::Shutdown::Write);
        ended.expect("the connection is open");
    }

    /// Whether the peer ends the connection without another byte; waits for it.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Whether nothing arrives for `limit`.
    pub(crate) fn is_silent_for(&mut self, limit: Duration) -> bool {
        let stream = self.stream.get_ref();
        stream
            .set_read_timeout(Some(limit))
            .expect("a limit can be set");
        let silent = match self.stream.fill_buf() {
            Ok(_) => false,
            Err(error) => matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ),
        };
        let stream = self.stream.get_ref();
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a limit can be set");
        silent
    }
}
