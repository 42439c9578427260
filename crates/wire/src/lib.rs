//! How HTTP/1.1 is written: heads, framing and bodies as bytes (RFC 9112).
//!
//! Bytes go in, heads and body events come out, and heads and chunks are written back as bytes. The
//! same code reads what clients send and what next hops answer, because the next hop is as hostile
//! as the client.
//!
//! * [`parse_request`], [`parse_response`] and [`parse_fields`] read heads over borrowed bytes.
//!   They allocate for heads of more than [`REQUEST_FIELDS_CAPACITY`] lines only. [`Arrival`] keeps
//!   a head that arrives in many pieces from being read as many times.
//! * [`request_body`] and [`response_body`] say how long the content is (RFC 9112 §6.3).
//! * [`BodyReader`] takes the content out of its framing, step by step.
//! * [`write`](mod@write) appends start lines, field lines and chunks to a buffer.
//!
//! What is deliberately absent: sockets, clocks and buffers of its own (the driver lends them), the
//! meaning of fields (that is `weir-semantics`), and, in requests, every repair. RFC 9112 lets a
//! recipient repair much: bare line feeds, folded lines, repeated lengths, unknown transfer
//! codings. Two parsers that repair differently disagree about where a message ends, and that is
//! request smuggling (RFC 9112 §11.2). So every ambiguity is an error with a name, and the first
//! one in the order of the bytes is the one reported, however the bytes were cut into pieces.
//!
//! For responses there are [`parse_response_leniently`] and [`BodyReader::lenient`]. They repair
//! what the RFCs give one reading, and report that they did: the caller serialises the response
//! again and does not reuse its connection.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrival;
mod body_length;
mod body_reader;
mod chunk_line;
mod head;
mod head_error;
mod head_fault;
mod lenient_framing;
mod lenient_head;
mod line_buffer;
mod octet;
mod trailers;
pub mod write;

pub use arrival::Arrival;
pub use body_length::{BodyLength, CONTENT_LENGTH_MAX, FramingError, request_body, response_body};
pub use body_reader::{BodyError, BodyEvent, BodyReader, BodyStep, Incomplete};
pub use chunk_line::{CHUNK_PADDING_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, EXTENSION_BYTES_MAX};
pub use head::{
    EMPTY_LINES_MAX, HeadLimits, Progress, RequestHead, ResponseHead, Version, parse_fields,
    parse_request, parse_response,
};
pub use head_error::HeadError;
pub use lenient_head::{Repairs, parse_response_leniently};
pub use line_buffer::{FIELDS_CAPACITY, LineBuffer, REQUEST_FIELDS_CAPACITY};
