//! Where the bytes of stored responses live.
//!
//! Today this is the memory tier: responses whole, head and small body in one block ready to send, larger bodies in
//! blocks of one size, under a byte budget that counts heads, index and allocator rounding. A disk tier will stand
//! behind it. What is kept and what leaves is decided by `weir_policy::catalog`; this crate only does it.
//! Deliberately absent: HTTP rules, time, sockets.
//!
//! Sharing: the table is split into shards by digest, each behind one mutex that is held for a look-up or a list
//! operation (tens of nanoseconds) and never across an await. A mutex and not a reader-writer lock, because a hit
//! tells the eviction policy about itself, and because both cost the same one contended cache line.

mod body;
mod charge;
mod memory;
mod resource;
mod shard;
mod stored;

pub use body::{BLOCK_BYTES, Body, BodyBuilder};
pub use charge::allocated_bytes;
pub use memory::{Building, MemoryStore, MemoryUse};
pub use resource::{RULES_MAX, VARIANTS_MAX, VaryRule};
pub use shard::{Found, Lookup};
pub use stored::StoredResponse;
