//! Where the bytes of stored responses live.
//!
//! The memory tier: responses with a head ready to send and content in blocks of one size, whole or
//! in part, under a byte budget that counts heads, index and allocator rounding.
//! `weir_policy::catalog` decides what is kept and what is evicted; this crate carries it out.
//! Deliberately absent: HTTP rules, time, sockets.
//!
//! Behind it may stand a disk tier (`weir_disk`). What is stored is written there too, what is
//! not in memory is looked for there ([`DiskLookup`]). Small content that was found there is in
//! memory from then on; of large content the memory tier keeps the head, and where it is on disk,
//! and loads what is requested often ([`ContentLoad`]).
//!
//! Content of some size that is requested again moves to a file in memory
//! ([`MemoryStore::move_to_file`]), from where the kernel sends it without a copy.
//!
//! A response that is arriving is a [`InFlightContent`]: filled at several places at once, read by
//! others meanwhile. Its room is a [`Reservation`]: pinned, so never taken for others, and
//! therefore limited in all ([`IN_FLIGHT_PERCENT_MAX`]).
//!
//! Sharing: the table is split into shards by digest, each behind one mutex that is held for a
//! look-up or a list operation (tens of nanoseconds) and never across an await. A mutex and not a
//! reader-writer lock, because a hit changes the state of the eviction policy, and because both
//! cost the same one contended cache line.

mod charge;
mod charged_memory;
mod content;
mod disk_lookup;
mod expected_response;
mod expiration;
mod in_flight;
mod join;
mod load;
mod memory;
mod piece_memory;
pub mod record;
mod resource;
mod shard;
mod stored;

pub use charge::allocated_bytes;
pub use charged_memory::ChargedMemory;
pub use content::file::FileFault;
pub use content::{BLOCK_BYTES, Block, FilePart, HeldContent, PieceRef, StoredContent};
pub use disk_lookup::{DiskLookup, DiskLookupResult, DiskVariants, Unusable};
pub use expected_response::ExpectedResponse;
pub use in_flight::builder::ContentBuilder;
pub use in_flight::content::{InFlightContent, InFlightPiece, WritePositionId};
pub use in_flight::reservation::Reservation;
pub use join::STORED_SPANS_MAX;
pub use load::{ContentLoad, LoadedResponse, NotLoaded};
pub use memory::{MemoryStore, MemoryUse, Purge};
pub use resource::{FORWARDED, MODULES, RULES_MAX, VARIANTS_MAX, VaryRule};
pub use shard::{LookupResult, StoredVariant};
pub use stored::StoredResponse;
pub use weir_policy::catalog::IN_FLIGHT_PERCENT_MAX;
