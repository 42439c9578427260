//! HTTP streams: one request and its response on a connection (the term of RFC 9113 §5).
//!
//! Code that answers a request depends on no connection and no version of HTTP. From a
//! [`ClientStream`] it receives the request's content, and to it it sends the response: the head as
//! a status line and end-to-end fields, then pieces of content. The stream frames them, bounds the
//! unsent bytes, and reports what the peer has acknowledged and its disconnect.
//!
//! A [`NextHopStream`] is the same toward a next hop: it sends the request, and receives the
//! response.
//!
//! HTTP/1.1 over plain TCP is the only kind outside tests: a stream borrows its connection, which
//! carries one at a time. Kinds are variants of an enum, so that calls are static. With the feature
//! `multiplexed-double` there is a second kind, whose streams share a connection and have windows
//! of their own: the test double of HTTP/2.

/// Calls a method of the kind that a half of a stream is of.
macro_rules! of_kind {
    ($half:ident, $kind:ident => $call:expr) => {
        of_kind!(Self of $half, $kind => $call)
    };
    ($kinds:ident of $half:expr, $kind:ident => $call:expr) => {
        match $half {
            $kinds::Http1($kind) => $call,
            #[cfg(feature = "multiplexed-double")]
            $kinds::Double($kind) => $call,
        }
    };
}

mod client_stream;
mod content_form;
mod content_read;
mod disconnect;
#[cfg(feature = "multiplexed-double")]
pub mod double;
mod governor;
mod http1;
mod next_hop_facts;
mod next_hop_stream;
mod received_content;
mod received_head;
mod request_content;
mod request_sender;
mod response_receiver;
mod response_sender;

pub use client_stream::{ClientStream, Http1Client};
pub use content_form::ContentForm;
pub use content_read::{ContentCut, ContentEnd, ContentRead};
pub use disconnect::{Disconnect, DisconnectSource};
pub use governor::Governor;
pub use http1::write_connection;
pub use next_hop_facts::NextHopFacts;
pub use next_hop_stream::NextHopStream;
pub use received_content::{ContentError, ReceivedContent};
pub use received_head::{AcceptedHead, BufferedContent, FormerHead, ReceivedBytes, ReceivedHead};
pub use request_content::RequestContent;
pub use request_sender::RequestSender;
pub use response_receiver::ResponseReceiver;
pub use response_sender::{HopLines, ResponseSender};
