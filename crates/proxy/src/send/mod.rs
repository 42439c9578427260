//! What a client is sent: response heads, and content from memory and from disk.

pub(crate) mod disk_read;
pub(crate) mod framing;
pub(crate) mod heads;
pub(crate) mod outbox;
pub(crate) mod outgoing;
pub(crate) mod sink;
pub(crate) mod stored_piece;
pub(crate) mod unsent;
