//! HTTP streams: one request and its response on a connection, in the word of RFC 9113 §5.
//!
//! What answers a request knows no connection and no version of HTTP. A [`ClientStream`] gives it
//! the request's content and takes the response: the head as a status line and end-to-end fields,
//! then pieces of content. The stream frames them, bounds what is unsent, and says what the peer
//! has acknowledged and when it left.
//!
//! HTTP/1.1 over plain TCP is the only kind outside tests: a stream borrows its connection, which
//! carries one at a time. Kinds are variants of an enum, so that the compiler sees through them.
//! With the feature `multiplexed-double` there is a second kind, whose streams share a connection
//! and have windows of their own: the test double of HTTP/2.

mod client_stream;
mod content_form;
mod disconnect;
#[cfg(feature = "multiplexed-double")]
pub mod double;
mod http1;
mod request_content;
mod response_sender;

pub use client_stream::{ClientStream, Http1Client};
pub use content_form::ContentForm;
pub use disconnect::{Disconnect, DisconnectSource};
pub use http1::write_connection;
pub use request_content::{ContentError, ReceivedContent, RequestContent};
pub use response_sender::ResponseSender;
