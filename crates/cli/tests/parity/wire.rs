//! A connection that is read when something has come, and written as far as the other end takes it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    /// Bytes that came and were not used.
    pub(crate) came: Vec<u8>,
    /// Bytes to be sent.
    to_send: Vec<u8>,
    /// The other end has closed, or reset.
    pub(crate) is_closed: bool,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            came: Vec::new(),
            to_send: Vec::new(),
            is_closed: false,
        }
    }

    /// Sends `bytes` in one write, as far as there is room; the rest follows.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.to_send.extend_from_slice(bytes);
        self.flush();
    }

    /// Whether everything has left.
    pub(crate) fn is_flushed(&self) -> bool {
        self.to_send.is_empty() || self.is_closed
    }

    /// Sends and reads what can be.
    pub(crate) fn pump(&mut self) {
        self.flush();
        let mut buffer = [0; 64 * 1024];
        while !self.is_closed {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => self.came.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
    }

    /// Closes it by a reset: the peer notices it with its next read or write.
    pub(crate) fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket");
    }

    fn flush(&mut self) {
        while !self.is_flushed() {
            match self.stream.write(&self.to_send) {
                Ok(count) => {
                    self.to_send.drain(..count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
    }
}
