//! Parts of ICAP messages, as both sides read and write them (RFC 3507 §4.2 to §4.4).

pub(crate) mod chunks;
pub(crate) mod encapsulated;
pub(crate) mod encapsulated_head;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod istag;
pub(crate) mod method;
pub(crate) mod section;
pub(crate) mod service_id;
pub(crate) mod service_uri;
pub(crate) mod start_line;
