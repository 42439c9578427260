//! Cache digests: which responses a node holds, in 10 bits each, for nodes that choose among it and
//! others.
//!
//! A digest answers *no* or *perhaps*: at most 1.5 % of what a node does not hold is taken for
//! held. It is a blocked Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient
//! Bloom Filters. WEA 2007): all bits of a key lie in one block of 512 bits, so that a lookup reads
//! one line of the processor's cache. Squid's cache digests have 5 bits an entry and four probes
//! all over the filter.
//!
//! Nothing can be taken out of such a filter. So a node compares how much it holds with how much it
//! has added, and begins a new *epoch* with an empty filter when more than a twentieth is gone
//! ([`DigestWriter`]). Within an epoch a reader that has a digest receives the keys added since
//! ([`DigestReader`]).
//!
//! # Keys
//!
//! A node knows of most of what it holds the first 64 bits of the store's key alone, its *tag*
//! ([`tag_key`] makes a key of it). The store's key of a target is made under a secret of that
//! store, which the node gives to members, sealed with the secret of the cluster ([`SealedKey`]).
//!
//! # Messages
//!
//! Numbers are little-endian. A message begins with `weirdgst`, the version (one byte, 1) and its
//! kind (one byte):
//!
//! | kind | what follows |
//! | --- | --- |
//! | 0, *whole* | epoch (8 bytes), additions in it (8 bytes), blocks (4 bytes), the key, masked (16 bytes), and its check (16 bytes), the blocks: 64 bytes each |
//! | 1, *additions* | epoch (8 bytes), additions before these (8 bytes), how many these are (4 bytes), their keys: 16 bytes each |
//!
//! A key is two numbers of 64 bits, *a* and *b*. Its block is *a* x blocks / 2^64. Its bits in
//! there are six numbers of 9 bits: the lowest 9 of *b*, the next 9, and so on. Bit *i* of a block
//! is bit *i* mod 8 of its byte *i* / 8.

mod bloom;
mod error;
mod incoming;
mod message;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use bloom::{CacheDigest, DIGEST_BYTES_MAX, RESPONSES_MAX, tag_key};
pub use error::DigestError;
pub use incoming::{DigestUpdate, IncomingDigest};
pub use message::{DigestKeys, DigestVersion, SealedKey};
pub use reader::{Applied, DigestReader};
pub use writer::{ADDITIONS_MAX, DigestWriter};
