//! The bytes on disk: types and pure functions, no I/O. `docs/store-format.md` says the same in
//! tables of offsets.
//!
//! Everything is little endian. Everything that is read carries a checksum, and every checksum is
//! seeded with the place it belongs to ([`Seal`]): a block that the device wrote somewhere else, or
//! did not write at all, does not verify there. Keys and generations stand inside checksummed
//! headers, so that no content is ever taken for another's.
//!
//! A decoder takes bytes as they came from a device or from a stranger: it checks every length
//! against a named limit before it allocates, never panics, and its error says what is wrong and
//! where ([`FormatError`]).

mod error;
#[cfg(test)]
mod example;
mod extent;
mod journal;
mod reader;
mod record;
mod seal;
mod segment;
mod superblock;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod trailer;
mod verify;
mod writer;

pub use error::{FormatError, FormatErrorKind, Item};
pub use extent::{
    BodyId, EXTENT_HEADER_BYTES_MAX, ExtentHeader, encode_extent_header, extent_bytes,
    extent_header_bytes,
};
pub use journal::{
    JOURNAL_ENTRY_BYTES, JOURNAL_FILE, JOURNAL_MIRROR_FILE, JournalContents, JournalDamage,
    PurgeEntry, PurgeScope,
};
pub use record::{
    EXTENT_REF_BYTES, ExtentRef, Kind, NewExtent, NewRecord, RECORD_HEADER_BYTES, RecordHeader,
    embedded_bytes, embedded_content, encode_embedded, encode_listed, listed_bytes,
};
pub use seal::{Seal, StoreId, Volume};
pub use segment::{SegmentHeader, segment_file_name, segment_number};
pub use superblock::{LOCK_FILE, SUPERBLOCK_FILE, Superblock};
pub use table::{
    TABLE_ENTRY_BYTES, TABLE_RECORDS_MAX, TableEntry, decode_table, encode_table, table_bytes,
};
pub use trailer::{TRAILER_BYTES, Trailer};
pub use verify::{Step, step, verify_extent, verify_record};

/// Version of the format. A store of a newer one is refused, never guessed at. One of an older
/// version is read, and becomes one of this version when it is opened.
pub const FORMAT_VERSION: u32 = 2;

/// The oldest version that is read: it has one copy of the purge journal, and nothing else is
/// different.
pub const FORMAT_VERSION_MIN: u32 = 1;

/// Superblock and segment header take a page each: the unit of a device's writes, and the alignment
/// that `O_DIRECT` requires.
pub const PAGE_BYTES: usize = 4096;

/// Records and extents begin at multiples of this: an offset fits in 26 bits in a segment of 1 GiB,
/// and a scan for the next intact header looks at one place in sixteen.
pub const ALIGN_BYTES: usize = 16;

/// Content is checksummed in stretches of this size: what is read, verified and sent at once.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Content of one extent. Its header lists the checksums of its chunks, so that it stays small
/// enough to read in one go.
pub const EXTENT_BYTES_MAX: u32 = 1024 * 1024;

/// Chunks of one extent.
pub const CHUNKS_MAX: usize = EXTENT_BYTES_MAX as usize / CHUNK_BYTES;

/// What the tier above stores beside the content: head, facts, validators. Heads are limited to 64
/// KiB on the wire.
pub const META_BYTES_MAX: u32 = 1024 * 1024;

/// Extents of one record: 1 TiB of content in extents of 1 MiB; the list takes 32 MiB then and must
/// fit into one segment.
pub const EXTENTS_MAX: u32 = 1 << 20;

/// The largest segment that a reader must be able to handle; a writer makes them of 64 MiB.
pub const SEGMENT_BYTES_MAX: u32 = 1024 * 1024 * 1024;

/// `bytes` rounded up to [`ALIGN_BYTES`].
#[must_use]
pub const fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN_BYTES as u64)
}

/// The same for lengths in memory.
const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN_BYTES)
}
