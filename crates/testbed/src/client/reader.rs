//! One client, as fast or as slow as an experiment wants it.

use super::incoming::{Incoming, request};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

/// What the receive buffer option of most clients is set to; the kernel doubles it for its own
/// needs, and lets through about as much content as was asked for.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 64 * 1024;

const SILENCE_MAX: Duration = Duration::from_secs(5);

/// A connection with a receive buffer of its own size; `None` leaves it to the kernel.
pub(crate) fn open(
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
    connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A client that has asked.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: TcpStream,
    incoming: Incoming,
    buffer: Vec<u8>,
}

impl Reader {
    /// Asks for all of a target on a new connection.
    pub(crate) fn ask(
        to: SocketAddr,
        target: &str,
        size_bytes: u64,
        receive_buffer_bytes: Option<usize>,
    ) -> Result<Self, String> {
        let opened = open(Ipv4Addr::UNSPECIFIED, to, receive_buffer_bytes);
        let mut stream = opened.map_err(|error| format!("cannot connect: {error}"))?;
        stream
            .write_all(request(target).as_bytes())
            .map_err(|error| format!("cannot ask: {error}"))?;
        Ok(Self {
            stream,
            incoming: Incoming::new(target, size_bytes),
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Content read by this program.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.incoming.read_bytes()
    }

    /// Bytes that its kernel has received and this program has not read.
    pub(crate) fn unread_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.stream).unwrap_or_default()
    }

    /// Reads once, at most so much; waits no longer than until `deadline`.
    ///
    /// # Errors
    /// Says what is wrong with the response or the connection. Silence until the deadline is not
    /// wrong.
    pub(crate) fn read(&mut self, bytes_max: usize, deadline: Instant) -> Result<(), String> {
        let left = deadline.saturating_duration_since(Instant::now());
        // a timeout of nothing would be none at all
        let left = left.max(Duration::from_millis(1));
        let limited = self.stream.set_read_timeout(Some(left));
        limited.map_err(|error| error.to_string())?;
        let bytes_max = bytes_max.min(self.buffer.len());
        match self.stream.read(&mut self.buffer[..bytes_max]) {
            Ok(0) => Err(format!("cut after {} bytes", self.read_bytes())),
            Ok(length) => self.incoming.take(&self.buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("{error} after {} bytes", self.read_bytes())),
        }
    }

    /// Reads as fast as it comes until that much content was read, and says whether it was before
    /// `deadline`.
    ///
    /// # Errors
    /// Says what is wrong with the response or the connection.
    pub(crate) fn read_until(&mut self, bytes: u64, deadline: Instant) -> Result<bool, String> {
        while self.read_bytes() < bytes {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.read(self.buffer.len(), deadline)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{in_thread, target};

    #[test]
    fn reader_takes_at_most_the_requested_bytes_and_then_the_rest() {
        let origin = in_thread();
        let target = target("/a", 50_000, None, false);
        let mut reader = Reader::ask(origin, &target, 50_000, None).expect("the origin");
        let deadline = Instant::now() + Duration::from_secs(10);
        while reader.read_bytes() == 0 {
            reader.read(1000, deadline).expect("content");
        }
        assert!(reader.read_bytes() <= 1000);
        assert_eq!(reader.read_until(50_000, deadline), Ok(true));
        assert_eq!(reader.unread_bytes(), 0);
    }

    #[test]
    fn read_deadline_that_passes_is_not_an_error() {
        let origin = in_thread();
        let target = target("/a", 50_000, Some(1), false);
        let mut reader = Reader::ask(origin, &target, 50_000, None).expect("the origin");
        assert_eq!(reader.read_until(50_000, Instant::now()), Ok(false));
    }
}
