//! What a service says of itself (RFC 3507 §4.10.2).

pub(crate) mod options;
pub(crate) mod transfer;
