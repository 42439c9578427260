//! The connection of a client, and noticing that it has disconnected while nothing is sent to it.

mod disconnect;
mod socket;
mod watch;

pub use disconnect::ClientDisconnect;
pub use socket::ClientSocket;
pub use watch::{DisconnectCause, disconnected};
