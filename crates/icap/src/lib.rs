#![cfg_attr(not(test), no_std)]
//! ICAP (RFC 3507), both sides, as values: bytes go in, events and bytes come out.
//!
//! * [`Transaction`] is the client's side of one request and its answer: OPTIONS, REQMOD or
//!   RESPMOD. [`Transaction::is_reusable`] decides whether another one may follow on the
//!   connection.
//! * [`Server`] is the server's side of one connection, with any number of requests.
//! * [`ServiceOptions`] has the fields of an answer to OPTIONS: methods, preview, connections,
//!   which files are sent, and how long all that is valid.
//!
//! An ICAP response is called an answer here, so that it is not taken for the HTTP response in it.
//!
//! Deliberately absent: sockets, clocks (times come in as values), what a service does with a
//! message, and credentials. `Allow: 206` is not sent, and 206 is refused. Trailer sections are
//! read and reported, and none is written. Heads and chunks are read by `weir-wire`, which reads
//! those of HTTP.
//!
//! Nothing is repaired, but folded lines in the ICAP heads of answers. Two readers that repair a
//! message differently disagree about where it ends, and both sides of ICAP send bytes that an
//! attacker may have written. So every ambiguity is an error with a name, and an error ends the
//! connection. What a peer can have held in memory is bounded by [`Limits`]; content is never held.
//!
//! A driver sends and receives at the same time, because an answer may begin while content is sent:
//!
//! ```
//! use weir_icap::{
//!     AdaptRequest, ClientEvent, IsTag, Limits, Server, ServerEvent, ServiceUri, Subject,
//!     Transaction,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = ServiceUri::parse(b"icap://127.0.0.1:1344/scan")?;
//! let request = AdaptRequest {
//!     service: &service,
//!     fields: &[],
//!     subject: Subject::Response {
//!         request: Some(b"GET /a.html HTTP/1.1\r\nHost: example\r\n\r\n"),
//!         head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
//!     },
//!     has_content: true,
//!     preview: Some(4),
//!     allow_204: false,
//! };
//! let mut client = Transaction::adapt(&request, Limits::default())?;
//! // four bytes are the preview; that more follows ends it
//! assert_eq!(client.offer(b"hello"), 4);
//! let sent = client.unsent().to_vec();
//! client.sent(sent.len());
//!
//! let mut server = Server::new(IsTag::new("rules-7")?, Limits::default());
//! let (mut consumed, mut answer) = (0, Vec::new());
//! while answer.is_empty() {
//!     let step = server.receive(&sent[consumed..])?;
//!     consumed += step.consumed;
//!     if let ServerEvent::PreviewEnd { .. } = step.event {
//!         server.write_unmodified(&[], &mut answer)?;
//!     }
//! }
//!
//! let step = client.receive(&answer)?;
//! assert!(matches!(step.event, ClientEvent::Unmodified(_)));
//! assert_eq!(client.receive(&answer[step.consumed..])?.event, ClientEvent::End);
//! assert!(client.is_reusable());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

extern crate alloc;

mod client;
mod limits;
mod message;
mod server;
mod service;

pub use client::answer::AnswerHead;
pub use client::error::ClientError;
pub use client::request::{AdaptRequest, RequestError, Subject};
pub use client::transaction::{ClientEvent, ClientStep, Transaction};
pub use limits::{Limits, PIECE_BYTES_MAX, PREVIEW_BYTES_MAX, SERVICE_URI_BYTES_MAX};
pub use message::chunks::CHUNK_EXTENSION_BYTES_MAX;
pub use message::encapsulated::{BodyPart, Encapsulated, EncapsulatedError, ListKind};
pub use message::encapsulated_head::EncapsulatedHeads;
pub use message::error::MessageError;
pub use message::fields::IcapFields;
pub use message::istag::{ISTAG_BYTES_MAX, IsTag, IsTagError};
pub use message::method::Method;
pub use message::service_id::SERVICE_ID_BYTES_MAX;
pub use message::service_uri::{ServiceUri, ServiceUriError};
pub use server::answer::{Adapted, AdaptedContent, OptionsAnswer};
pub use server::connection::{Server, ServerEvent, ServerStep};
pub use server::error::{AnswerError, ServerError};
pub use server::refusal::RefusalStatus;
pub use server::request::RequestHead;
pub use service::options::{
    MAX_CONNECTIONS_MAX, OPTIONS_TTL_DEFAULT, OPTIONS_TTL_MAX, OPTIONS_TTL_MIN,
    SERVICE_NAME_BYTES_MAX, ServiceOptions,
};
pub use service::transfer::{
    FILE_EXTENSION_BYTES_MAX, FILE_EXTENSIONS_MAX, TransferKind, file_extension,
};
