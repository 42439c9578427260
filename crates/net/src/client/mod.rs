//! The connection of a client: its socket, the header of a balancer that hands it on, and noticing
//! that the client has disconnected while nothing is sent to it.

mod disconnect;
mod proxy_header;
mod socket;
mod watch;

pub use disconnect::ClientDisconnect;
pub use proxy_header::{ProxyHeaderError, read_proxy_header};
pub use socket::ClientSocket;
pub use watch::{DisconnectCause, disconnected};
