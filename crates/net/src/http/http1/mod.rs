//! Streams of HTTP/1.1 connections (RFC 9112), one at a time on each.

mod chunks;
mod content;
mod response;

pub(super) use content::Http1Content;
pub(super) use response::Http1Response;
pub use response::write_connection;
