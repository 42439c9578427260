//! Streams of HTTP/1.1 connections (RFC 9112), one at a time on each.

mod chunks;
mod content;
mod next_hop;
mod reception;
mod request;
mod response;
mod writer;

pub(super) use content::Http1Content;
pub(super) use next_hop::Http1NextHop;
pub(super) use reception::Http1Reception;
pub(super) use request::Http1Request;
pub(super) use response::Http1Response;
pub use response::write_connection;
