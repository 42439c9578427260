//! The segment that is being written.

use super::Directory;
use super::segment::{NewSegment, Segment};
use crate::files::{Access, write_full};
use crate::format::{
    PAGE_BYTES, SegmentHeader, TRAILER_BYTES, TableEntry, Trailer, encode_table, segment_file_name,
    table_bytes,
};
use std::io;
use std::sync::Arc;

/// Generations that may be given out while a segment is the newest: after a crash the count
/// continues behind them, whatever of the segment was lost. Ten days at 10^5 requests a second.
pub(crate) const GENERATIONS_MAX: u64 = 1 << 36;

pub(crate) struct Active {
    pub(crate) segment: Arc<Segment>,
    /// Where the next item begins.
    pub(crate) end: u64,
    pub(crate) table: Vec<TableEntry>,
    /// Generations below may be written here.
    pub(crate) ceiling: u64,
    /// The newest purge that anything in it refers to.
    pub(crate) purged: u64,
    pub(crate) unsynced_bytes: u64,
}

impl Active {
    /// Begins segment `number`; when this returns, its header and its name are on the device.
    pub(crate) fn create(directory: &Directory, number: u64, purged: u64) -> io::Result<Self> {
        let files = &directory.files;
        let path = directory.path.join(segment_file_name(number));
        let file = files.open(&path, Access::Create)?;
        let header = SegmentHeader {
            volume: directory.volume,
            number,
            begun_s: files.wall_s(),
            generation: directory.tickets.peek() + GENERATIONS_MAX,
            purged,
            capacity: directory.limits.segment_bytes,
        };
        let begun = file
            .allocate(u64::from(header.capacity))
            .and_then(|()| write_full(&*file, &[&header.encode()], 0))
            .and_then(|()| file.sync())
            .and_then(|()| files.sync_directory(&directory.path));
        if let Err(error) = begun {
            // its number is not used again, so a remainder of it after a second failure does no
            // harm
            drop(files.unlink(&path));
            return Err(error);
        }
        directory.counters.written_bytes.add(PAGE_BYTES as u64);
        let new = NewSegment {
            number,
            seal: directory.volume.segment(number),
            path,
            file,
            bytes: u64::from(header.capacity),
            end: PAGE_BYTES as u64,
            is_sealed: false,
        };
        let segment = directory.segments.add(new);
        Ok(Self {
            segment: segment.ok_or(io::ErrorKind::QuotaExceeded)?,
            end: PAGE_BYTES as u64,
            table: Vec::new(),
            ceiling: header.generation,
            purged,
            unsynced_bytes: 0,
        })
    }

    /// Whether `items` more of `bytes` in all go in behind `end`, with the table that they make
    /// longer.
    pub(crate) fn has_room(&self, capacity: u32, end: u64, bytes: u64, items: usize) -> bool {
        let closing = table_bytes(self.table.len() + items) + TRAILER_BYTES;
        end + bytes + closing as u64 <= u64::from(capacity)
    }

    /// Writes the table and the trailer; when this returns, all of it is on the device.
    pub(crate) fn seal(&self, directory: &Directory, purged: u64) -> io::Result<()> {
        let seal = self.segment.seal;
        let table = encode_table(seal, self.end, &self.table);
        let trailer_at = self.end + table.len() as u64;
        let trailer = Trailer {
            table_at: u32::try_from(self.end).unwrap_or(u32::MAX),
            table_bytes: u32::try_from(table.len()).unwrap_or(u32::MAX),
            generation: directory.tickets.peek(),
            purged,
            sealed_s: directory.files.wall_s(),
        };
        let trailer = trailer.encode(seal, trailer_at);
        let len = trailer_at + trailer.len() as u64;
        let file = &self.segment.file;
        // what it describes must not come to the device after it
        file.sync()?;
        write_full(&**file, &[&table, &trailer], self.end)?;
        // frees the reserved room, and the bytes of a failed write
        file.truncate(len)?;
        file.sync()?;
        directory
            .counters
            .written_bytes
            .add(len.saturating_sub(self.end));
        self.segment.set_end(len);
        self.segment.seal();
        Ok(())
    }

    /// Nothing more will be written into it, sealed or not.
    pub(crate) fn close(&self) {
        let bytes = self.segment.end().max(PAGE_BYTES as u64);
        self.segment.set_bytes(bytes);
    }
}
