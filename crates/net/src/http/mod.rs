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
//! Kinds are variants of an enum, so that calls are static. A stream of HTTP/1.1 borrows its
//! connection, which carries one at a time; those of HTTP/2 share one (`http2`). With the feature
//! `multiplexed-double` there is a third kind, a test double whose windows and resets a test
//! decides.

/// Calls a method of the kind that a half of a stream toward a next hop is of.
macro_rules! of_kind {
    ($half:ident, $kind:ident => $call:expr) => {
        of_kind!(Self of $half, $kind => $call)
    };
    ($kinds:ident of $half:expr, $kind:ident => $call:expr) => {
        match $half {
            $kinds::Http1($kind) => $call,
            $kinds::Http2($kind) => $call,
            #[cfg(feature = "multiplexed-double")]
            $kinds::Double($kind) => $call,
        }
    };
}

/// The same of a half of a stream toward a client.
macro_rules! of_client_kind {
    ($half:expr, $kind:ident => $call:expr) => {
        match $half {
            Kind::Http1($kind) => $call,
            Kind::Http2($kind) => $call,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double($kind) => $call,
        }
    };
}

mod client_stream;
mod content_form;

mod disconnect;
#[cfg(feature = "multiplexed-double")]
pub mod double;
mod governor;
mod http1;
mod http2;
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
pub use disconnect::{Disconnect, DisconnectSource};
pub use governor::Governor;
pub use http1::write_connection;
pub use http2::next_hop::{
    ConnectionNeed, HopProtocolError, has_http2_connection, is_target_of_http2,
};
pub use http2::{
    FurtherContent, HTTP2_PREFACE, Http2Accepted, Http2Answer, Http2Connection, Http2Disconnect,
    Http2Flood, Http2Form, Http2Notices, Http2Rules, Http2SendProgress, Http2Stream,
    is_websocket_accepted,
};
pub use next_hop_facts::NextHopFacts;
pub use next_hop_stream::NextHopStream;
pub use received_content::{ContentCut, ContentEnd, ContentError, ContentRead, ReceivedContent};
pub use received_head::{AcceptedHead, BufferedContent, FormerHead, ReceivedBytes, ReceivedHead};
pub use request_content::RequestContent;
pub use request_sender::RequestSender;
pub use response_receiver::ResponseReceiver;
pub use response_sender::{HopLines, ResponseSender};
