//! Takes a TCP connection out of this kernel, and takes over one of another.
//!
//! A connection is frozen ([`FrozenConnection::freeze`]): its [`ConnectionState`] is read, and it
//! sends nothing any more. The state travels as bytes. The other machine, which has the address of
//! the service too, adopts it ([`FrozenConnection::adopt`]). Then one of the two is thawed, and the
//! other one is dropped, which tells the client nothing.
//!
//! No packet of the client may reach either machine meanwhile: one that the first kernel
//! acknowledges after the state was read is lost ([`FrozenConnection::is_unchanged`] tells), and
//! one that arrives where the connection is not answered with a reset.
//!
//! What does not travel: the congestion window and the round trip, which are measured anew; what
//! came out of order, which the client sends again; ECN; and options of the socket.

mod adopt;
mod connection;
mod freeze;
mod queue;
mod state;
mod state_bytes;

pub use connection::{FrozenConnection, check_permitted, is_under_repair};
pub use freeze::FreezeError;
pub use state::{
    AgreedOptions, ConnectionState, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX, Windows,
};
pub use state_bytes::StateError;
