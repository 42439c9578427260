//! A connection of the attacker.

use super::attacker::Attacker;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// One connection: it never waits for the other side but within [`Attacker::goes_on`].
pub(super) struct Session {
    stream: TcpStream,
    is_open: bool,
}

impl Session {
    /// Opens one; `None`: it is not accepted.
    pub(super) fn open(attacker: &mut Attacker, to: SocketAddr) -> Option<Self> {
        let opened = TcpStream::connect(to).and_then(|stream| {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                attacker.report.connections += 1;
                Some(Self {
                    stream,
                    is_open: true,
                })
            }
            Err(_) => {
                attacker.report.refused += 1;
                attacker.rest();
                None
            }
        }
    }

    /// Whether weir has not ended it, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    fn end(&mut self, attacker: &mut Attacker) {
        if std::mem::replace(&mut self.is_open, false) {
            attacker.report.ended += 1;
        }
    }

    /// Sends bytes, and drops what has come; waits while they are not taken. `false`: weir has
    /// ended the connection, or the time is over.
    pub(super) fn send(&mut self, attacker: &mut Attacker, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(sent) => {
                    attacker.report.sent_bytes += sent as u64;
                    bytes = &bytes[sent..];
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.drain(attacker) || !attacker.goes_on() {
                        return false;
                    }
                    attacker.rest();
                }
                Err(_) => {
                    self.end(attacker);
                    return false;
                }
            }
        }
        self.drain(attacker)
    }

    /// Sends bytes as far as they are taken, and reads nothing; how many were taken.
    pub(super) fn send_unread(&mut self, attacker: &mut Attacker, bytes: &[u8]) -> usize {
        match self.stream.write(bytes) {
            Ok(sent) => {
                attacker.report.sent_bytes += sent as u64;
                return sent;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => attacker.rest(),
            Err(_) => self.end(attacker),
        }
        0
    }

    /// Sends all of these bytes, and drops nothing of what comes.
    pub(super) fn send_whole(&mut self, attacker: &mut Attacker, mut bytes: &[u8]) {
        while self.is_open && attacker.goes_on() && !bytes.is_empty() {
            let sent = self.send_unread(attacker, bytes);
            bytes = &bytes[sent..];
        }
    }

    /// What has come, if something has: so many bytes.
    pub(super) fn receive(&mut self, attacker: &mut Attacker, buffer: &mut [u8]) -> Option<usize> {
        match self.stream.read(buffer) {
            Ok(0) => self.end(attacker),
            Ok(count) => {
                attacker.report.received_bytes += count as u64;
                return Some(count);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.end(attacker),
        }
        None
    }

    /// Drops what has come; whether the connection is open.
    pub(super) fn drain(&mut self, attacker: &mut Attacker) -> bool {
        let mut buffer = [0; 16 * 1024];
        while self.is_open {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.end(attacker),
                Ok(count) => attacker.report.received_bytes += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => self.end(attacker),
            }
        }
        false
    }
}
