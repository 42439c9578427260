//! What the kernel has still to deliver of a socket that another part owns.

use super::socket;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// The send queue of a socket. It is to be asked only while the socket is open: its number is given
/// to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendQueue(RawFd);

impl SendQueue {
    /// That of `socket`.
    pub fn of(socket: &impl AsFd) -> Self {
        Self(socket.as_fd().as_raw_fd())
    }

    /// Whether all that was written has been acknowledged: the kernel has none of it any more
    /// (SIOCOUTQ).
    #[must_use]
    pub fn is_empty(self) -> bool {
        // what is no socket has no queue
        socket::bytes_out_of(self.0).unwrap_or(0) == 0
    }
}
