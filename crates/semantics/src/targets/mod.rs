//! The target of a request, and its host (RFC 9110 §7.1).

pub(crate) mod host;
pub(crate) mod target;
