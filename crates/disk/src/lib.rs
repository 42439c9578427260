//! Where the bytes of stored responses live when they do not live in memory.
//!
//! A log: segment files are written in sequence and never changed, an index in memory says where
//! the record of a key lies, a journal says what was purged. The store may forget anything at any
//! time; it never returns a byte that was not stored under the requested key, and never purged
//! content. Every byte is covered by a checksum that knows where it belongs, and is verified when
//! it comes from the device.
//!
//! Deliberately absent: HTTP (what a record means is its owner's `meta`), sockets, a runtime, the
//! decision what to store (`weir_policy::admission` and the caller). No call here blocks on the
//! device but [`Disk::open`] (a few small reads a directory) and [`Disk::close`]; reads and writes
//! are begun and waited for by threads of this crate.
//!
//! The one place with `unsafe` is where memory is handed to the kernel's `io_uring`
//! (`files/ring.rs`).

mod config;
mod directory;
mod disk;
mod extent;
mod failure;
pub mod files;
pub mod format;
mod index;
mod lock;
mod notice;
pub mod offline;
mod record;
mod record_writer;
#[cfg(feature = "simulated")]
pub mod stepped;
mod usage;

pub use config::{
    DirectoryConfig, DiskConfig, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MIN, SEGMENTS_MIN, Verify,
};
pub use directory::scrub::Pace;
pub use disk::inspection::{DirectoryInUse, SegmentContents, SegmentInUse};
pub use disk::{Disk, NoticeHandler, open_files_max};
pub use extent::{Extent, SendPiece};
pub use failure::{CheckError, OpenError, PurgeError, ReadError, Refused};
pub use notice::{NOTICE_INTERVAL_MS, Notice};
pub use record::{BodyBlock, Candidate, LoadedRecord, NewRecord, RecordId, Ticket};
pub use record_writer::{PendingRecord, RecordWriter};
pub use usage::{COMPLAINTS_MAX, CheckReport, DiskUse};
