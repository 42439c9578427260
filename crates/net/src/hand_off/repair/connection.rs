//! A connection under repair.

use super::queue::{self, Queue};
use super::state::ConnectionState;
use crate::flow::socket::{SocketOption, bytes_unsent, number, read_option, set_number};
use rustix::net::connect_unspec;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

/// Whether this process may take connections out of the kernel.
///
/// # Errors
/// It has not `CAP_NET_ADMIN`, or the kernel has no `TCP_REPAIR`.
pub fn check_permitted() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    set_number(socket.as_fd(), SocketOption::TCP_REPAIR, 1)
}

/// Whether a socket is under repair: closing it tells the client nothing, and nothing that it has
/// is sent any more.
pub fn is_under_repair(socket: &impl AsFd) -> bool {
    number(socket.as_fd(), SocketOption::TCP_REPAIR).is_ok_and(|it| it > 0)
}

/// A connection that sends nothing and reads nothing. Dropping it ends it and sends the client
/// nothing: another machine goes on with it.
#[derive(Debug)]
pub struct FrozenConnection {
    /// `None` when it is thawed.
    pub(super) socket: Option<TcpStream>,
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

    /// Whether no byte was received since it was frozen, nor one sent that was not sent by then.
    /// Otherwise it must be thawed here: the other machine does not have what the client sent,
    /// which was acknowledged, or takes no acknowledgement of what was sent.
    ///
    /// # Errors
    /// The kernel no longer permits to look.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let socket = socket.as_fd();
        let unsent = bytes_unsent(socket)?;
        let received_to = Queue::Received.end(socket)?;
        queue::hold_back(socket)?;
        // while the queue of received bytes was chosen, nothing was held back
        let has_sent = bytes_unsent(socket)? != unsent;
        Ok(!has_sent && received_to == self.state.received_to)
    }

    /// Asks the client for a packet. The connection stays frozen.
    ///
    /// # Errors
    /// The kernel refuses it, which it has no reason for.
    pub fn probe(&self) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        // it does so when the repair ends
        set_number(socket.as_fd(), SocketOption::TCP_REPAIR, 0)?;
        set_number(socket.as_fd(), SocketOption::TCP_REPAIR, 1)?;
        queue::hold_back(socket.as_fd())
    }

    /// Whether a packet of the client was taken within the last `span`.
    ///
    /// # Errors
    /// The kernel no longer permits to look.
    pub fn was_reached_within(&self, span: Duration) -> io::Result<bool> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        // of `struct tcp_info` up to `tcpi_last_ack_recv`, in milliseconds
        let mut info = [0; 60];
        read_option(socket.as_fd(), SocketOption::TCP_INFO, &mut info)?;
        let [.., a, b, c, d] = info;
        let elapsed = Duration::from_millis(u32::from_ne_bytes([a, b, c, d]).into());
        Ok(elapsed < span)
    }

    /// The connection goes on here; the kernel sends a probe, whose answer tells where the client
    /// is. The socket blocks or not as before it was frozen, and does not if it was adopted.
    ///
    /// # Errors
    /// The kernel refuses it, which it has no reason for; the connection is lost, then.
    pub fn thaw(mut self) -> io::Result<TcpStream> {
        let stream = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let socket = stream.as_fd();
        set_number(socket, SocketOption::TCP_REPAIR, 0)?;
        if self.is_adopted {
            queue::write(socket, &self.state.unsent)?;
            // the kernel tunes them again, as those of any connection
            set_number(socket, SocketOption::SO_BUF_LOCK, 0)?;
        }
        self.socket
            .take()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Ends the connection and tells the client at once, by a reset.
    ///
    /// # Errors
    /// The kernel refuses it, which it has no reason for; the client is told nothing, then.
    pub fn reset(mut self) -> io::Result<()> {
        let stream = self.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        set_number(stream.as_fd(), SocketOption::TCP_REPAIR, OFF_WITHOUT_PROBE)?;
        // as in `drop`, but not under repair any more
        Ok(connect_unspec(&stream)?)
    }
}

/// `TCP_REPAIR_OFF_NO_WP`, -1: the connection is under repair no longer, and sends no probe.
const OFF_WITHOUT_PROBE: u32 = u32::MAX;

impl Drop for FrozenConnection {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // closing is not enough: a child that is being started has the descriptor, too, for
            // some milliseconds, and so long the kernel would have the connection
            let _ = connect_unspec(socket);
        }
    }
}
