//! What a client is sent: response heads, and content from memory and from disk.

pub(crate) mod disk_read;
pub(crate) mod heads;
pub(crate) mod stored_piece;
