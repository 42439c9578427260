//! A connection under repair.

use super::queue::{self, Queue};
use super::state::ConnectionState;
use crate::flow::socket::{SocketOption, set_number};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd as _;

/// A connection that sends nothing and reads nothing. Dropping it closes it without a word to the
/// client: another machine goes on with it.
#[derive(Debug)]
pub struct FrozenConnection {
    pub(super) socket: TcpStream,
    pub(super) state: ConnectionState,
    /// Its socket was made of the state, and not the state of its socket.
    pub(super) is_adopted: bool,
}

impl FrozenConnection {
    /// What another machine has to know.
    #[must_use]
    pub fn state(&self) -> &ConnectionState {
        &self.state
    }

    /// Whether no byte was received since it was frozen. Otherwise it must be thawed here: what the
    /// client sent was acknowledged, and the other machine does not have it.
    ///
    /// # Errors
    /// The kernel no longer permits to look.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(Queue::Received.end(self.socket.as_fd())? == self.state.received_to)
    }

    /// The connection goes on here; the kernel sends a probe, whose answer tells where the client
    /// is. The socket blocks or not as before it was frozen, and does not if it was adopted.
    ///
    /// # Errors
    /// The kernel refuses it, which it has no reason for.
    pub fn thaw(self) -> io::Result<TcpStream> {
        let socket = self.socket.as_fd();
        set_number(socket, SocketOption::TCP_REPAIR, 0)?;
        if self.is_adopted {
            queue::write(socket, &self.state.unsent)?;
            // the kernel tunes them again, as those of any connection
            set_number(socket, SocketOption::SO_BUF_LOCK, 0)?;
        }
        Ok(self.socket)
    }
}
