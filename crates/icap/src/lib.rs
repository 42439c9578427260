#![cfg_attr(not(test), no_std)]
//! ICAP (RFC 3507), both sides, as values: bytes go in, events and bytes come out.
//!
//! * [`Transaction`] is the client's side of one request and its answer: OPTIONS, REQMOD or
//!   RESPMOD.
//! * [`Server`] is the server's side of one connection, with any number of requests.
//! * [`ServiceOptions`] is what an answer to OPTIONS says.
//!
//! Deliberately absent: sockets, clocks (times come in as values), and what a service does with a
//! message. Heads and chunks are read by `weir-wire`, which reads those of HTTP.
//!
//! Nothing is repaired. Two readers that repair a message differently disagree about where it ends,
//! and both sides of ICAP send what they had from strangers. So every ambiguity is an error with a
//! name, and an error ends the connection. What a peer can have held in memory is bounded by
//! [`Limits`]; content is never held.

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
    MAX_CONNECTIONS_MAX, OPTIONS_TTL_DEFAULT, OPTIONS_TTL_MAX, SERVICE_NAME_BYTES_MAX,
    ServiceOptions,
};
pub use service::transfer::{
    FILE_EXTENSION_BYTES_MAX, FILE_EXTENSIONS_MAX, TransferKind, file_extension,
};
