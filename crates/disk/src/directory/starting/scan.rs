//! What lies in a segment: from its table if it was sealed, else item by item.

use crate::directory::segment::Segment;
use crate::files::{File, read_bytes};
use crate::format::{
    ALIGN_BYTES, EXTENT_HEADER_BYTES_MAX, PAGE_BYTES, Seal, Step, TRAILER_BYTES, TableEntry,
    Trailer, decode_table, step, verify_record,
};
use std::io;

/// Bytes that are read at once when a segment is scanned.
const WINDOW_BYTES: usize = 256 * 1024;

/// The items of a segment, in the order of their places.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) entries: Vec<TableEntry>,
    /// The newest purge in the journal when the last of it was written, as far as that is known.
    pub(crate) purged: u64,
}

/// What lies in `segment`.
///
/// # Errors
/// The device failed. Damage is no error: what cannot be read is not there.
pub(crate) fn contents(segment: &Segment) -> io::Result<Contents> {
    let len = segment.file.len()?;
    match sealed(&*segment.file, segment.seal, len)? {
        Some(contents) => Ok(contents),
        None => scan(&*segment.file, segment.seal, len),
    }
}

/// The trailer of a sealed segment of `len` bytes, and where it lies.
pub(crate) fn trailer(file: &dyn File, seal: Seal, len: u64) -> io::Result<Option<Trailer>> {
    let Some(at) = len.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let bytes = read_bytes(file, at, TRAILER_BYTES)?;
    Ok(Trailer::decode(&bytes, seal, at).ok())
}

fn sealed(file: &dyn File, seal: Seal, len: u64) -> io::Result<Option<Contents>> {
    let Some(trailer) = trailer(file, seal, len)? else {
        return Ok(None);
    };
    let at = u64::from(trailer.table_at);
    // the trailer was checked: the table lies before it, in the file
    let bytes = read_bytes(file, at, trailer.table_bytes as usize)?;
    let table = decode_table(&bytes, seal, at).ok();
    Ok(table.map(|entries| Contents {
        entries,
        purged: trailer.purged,
    }))
}

fn scan(file: &dyn File, seal: Seal, len: u64) -> io::Result<Contents> {
    let mut window = Window::new(file, len);
    let mut found = Contents::default();
    let mut at = PAGE_BYTES as u64;
    while at < len {
        let bytes = window.at(at, EXTENT_HEADER_BYTES_MAX)?;
        let next = match step(bytes, seal, at) {
            Ok(item) if at + item.bytes() <= len => item,
            Ok(_) | Err(_) => {
                at += skip(bytes);
                continue;
            }
        };
        if let Step::Record(record) = next {
            // the end of what was written before a crash may be torn
            let whole = window.at(at, record.bytes as usize)?;
            if verify_record(whole, seal, at).is_err() {
                at += ALIGN_BYTES as u64;
                continue;
            }
            found.purged = found.purged.max(record.purged);
        }
        found.entries.push(next.entry(at));
        at += next.bytes();
    }
    Ok(found)
}

/// Bytes to the next place that is worth a look: where not all is zero.
fn skip(bytes: &[u8]) -> u64 {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let units = (zeros / ALIGN_BYTES).max(1);
    (units * ALIGN_BYTES) as u64
}

/// A stretch of a file in memory, moved on as need be.
struct Window<'a> {
    file: &'a dyn File,
    len: u64,
    begin: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn File, len: u64) -> Self {
        Self {
            file,
            len,
            begin: 0,
            bytes: Vec::new(),
        }
    }

    /// `count` bytes at `at`, fewer at the end of the file.
    fn at(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let end = (at + count as u64).min(self.len);
        if at < self.begin || end > self.begin + self.bytes.len() as u64 {
            let most = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
            self.bytes = read_bytes(self.file, at, most.min(count.max(WINDOW_BYTES)))?;
            self.begin = at;
        }
        let from = usize::try_from(at - self.begin).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or_default();
        Ok(&rest[..rest.len().min(count)])
    }
}
