//! HTTP/2 (RFC 9113) toward clients, and [toward next hops](next_hop), by the crate `h2`: it has
//! frames, HPACK, the states of streams and their windows.
//!
//! ```text
//! Http2Connection   drives `h2` over a ClientSocket, and gives a head and an Http2Stream for each
//!                   request; to be polled as long as the connection lasts
//! Transport         the socket as `h2` sees it; shows the FrameReader what passes
//! SendBuffer        frames that are gathered, and written when there are no more
//! Shared            what the streams of a connection share: the socket, the bounds, the counts
//! ReceiveWindow     for content that clients send; wider by that of streams whose content waits
//! Http2Content, Http2Response   the halves of a ClientStream
//! Http2Answer       a whole response that was made at once
//! RecentResponses   heads of these as `h2` has them, by their text
//! ```
//!
//! A head becomes the text that HTTP/1.1 has for it ([`head`]), which the one parser of request
//! heads reads: so a request is judged by the same facts, whatever it came by.
//!
//! Content that is sent is copied into pieces that `h2` holds until they are written. A stream
//! offers no more than its window and that of the connection permit, so that a client which stops
//! reading a stream stops that stream alone; what waits for the socket is bounded by stream and by
//! connection.

/// Bytes of a frame that is received, on either side (RFC 9113 §6.5.2).
const FRAME_BYTES_MAX: u32 = 16 * 1024;

/// What `h2` may hold of a stream: more than is ever given to it, as that has bounds of its own.
const SEND_BYTES_MAX: usize = 64 * 1024;

mod answer;
mod connection;
mod content;
mod frame_reader;
mod head;
pub(super) mod next_hop;
mod piece;
mod recent_responses;
mod response;
mod send_buffer;
mod shared;
mod stream_capacity;
mod transport;
pub(super) mod tunnel;
mod websocket;

pub use answer::{FurtherContent, Http2Answer};
pub use connection::{
    Http2Accepted, Http2Connection, Http2Notices, Http2Rules, Http2SendProgress, Http2Stream,
};
pub(crate) use content::Http2Content;
pub use frame_reader::PREFACE as HTTP2_PREFACE;
pub use head::Http2Form;
pub use response::Http2Disconnect;
pub(crate) use response::Http2Response;
pub use shared::Http2Flood;
pub use websocket::is_websocket_accepted;
