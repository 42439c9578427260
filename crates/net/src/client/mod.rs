//! Noticing that a client has disconnected while nothing is sent to it.

mod disconnect;
mod watch;

pub use disconnect::ClientDisconnect;
pub use watch::{DisconnectCause, disconnected};
