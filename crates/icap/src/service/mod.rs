//! What a service can do, from its answer to OPTIONS (RFC 3507 §4.10.2).

pub(crate) mod options;
pub(crate) mod transfer;
