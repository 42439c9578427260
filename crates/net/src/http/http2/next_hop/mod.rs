//! HTTP/2 toward next hops (RFC 9113), by the client side of the crate `h2`.
//!
//! ```text
//! open          a stream for a request: on a connection that has room, on one that is opened for
//!               it, or an HTTP/1.1 connection if that is what the next hop speaks;
//!               `ConnectionNeed` says what it may share
//! Table         the connections of a worker, by next hop; `weir_policy::connections` chooses
//! Connection    one of them; a task of its own drives it as long as it lasts
//! Transport       its socket as `h2` sees it
//! Shared            what its streams share: the socket, the budget of frames, the windows
//! Http2NextHop  one stream, and its halves: Http2Request, Http2Reception
//! ```
//!
//! A connection belongs to the worker that opened it: its streams are never moved to another one.
//! A response becomes the text that HTTP/1.1 has for it, which the one parser of response heads
//! reads, so that it is judged by the same facts, whatever it came by ([`head`]).
//!
//! The window of a stream is its read-ahead: it is opened again as content is taken, and what a
//! stopped reader costs is that window, in memory of `h2`. The window of the connection is as large
//! as all of them may be together, so that no stream keeps another waiting.
//!
//! Dropping a stream before its response is whole resets it (`CANCEL`); the connection goes on.

mod connection;
mod driver;
mod head;
mod need;
mod open;
mod protocol_error;
mod reception;
mod request;
mod shared;
mod stream;
mod table;
mod transport;

pub use head::is_target_of_http2;
pub use need::ConnectionNeed;
pub use open::has_http2_connection;
pub(in crate::http) use open::{Opened, open};
pub use protocol_error::HopProtocolError;
pub(crate) use reception::Http2Reception;
pub(crate) use request::Http2Request;
pub(in crate::http) use stream::Http2NextHop;
