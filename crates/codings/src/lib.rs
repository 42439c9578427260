//! Content codings (RFC 9110 §8.4.1), undone in front of a module that wants plain content: gzip,
//! deflate, br and zstd, piece by piece, and how much content may grow in that.
//!
//! Nothing is encoded here: which coding is worth its price is the decision of a module. The crate
//! is apart from the proxy because a server of modules undoes codings, too.

#![forbid(unsafe_code)]

mod decoder;
mod growth;
mod gzip;
mod memory_gauge;

pub use decoder::Decoder;
pub use growth::{GROWTH_FREE_BYTES, GROWTH_MAX, is_excessive};
pub use memory_gauge::MemoryGauge;
