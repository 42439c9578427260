//! HTTP streams: one request and its response on a connection, in the word of RFC 9113 §5.
//!
//! What answers a request knows no connection and no version of HTTP. A [`ClientStream`] gives it
//! the request's content and takes the response: the head as a status line and end-to-end fields,
//! then pieces of content. The stream frames them, bounds what is unsent, and says what the peer
//! has acknowledged and when it left.
//!
//! A [`NextHopStream`] is the same toward a next hop: it takes the request, and gives the response
//! as fast as it is received.
//!
//! HTTP/1.1 over plain TCP is the only kind outside tests: a stream borrows its connection, which
//! carries one at a time. Kinds are variants of an enum, so that the compiler sees through them.
//! With the feature `multiplexed-double` there is a second kind, whose streams share a connection
//! and have windows of their own: the test double of HTTP/2.

/// Calls a method of the kind that a half of a stream is of.
macro_rules! of_kind {
    ($half:ident, $kind:ident => $call:expr) => {
        match $half {
            Self::Http1($kind) => $call,
            #[cfg(feature = "multiplexed-double")]
            Self::Double($kind) => $call,
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
pub use received_head::{AcceptedHead, BufferedContent, ReceivedBytes, ReceivedHead};
pub use request_content::RequestContent;
pub use request_sender::RequestSender;
pub use response_receiver::ResponseReceiver;
pub use response_sender::ResponseSender;
