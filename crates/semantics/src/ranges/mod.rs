//! Byte ranges, and parts of representations (RFC 9110 §14).

pub(crate) mod content_range;
pub(crate) mod part;
pub(crate) mod range;
