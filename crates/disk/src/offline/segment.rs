//! A segment: by its table if it is sealed, step by step otherwise.

use super::error::{OfflineError, Problem};
use crate::files::open_regular;
use crate::format::{
    ALIGN_BYTES, EXTENT_HEADER_BYTES_MAX, FormatError, FormatErrorKind, Item, Kind, PAGE_BYTES,
    SEGMENT_BYTES_MAX, Seal, SegmentHeader, Step, TRAILER_BYTES, TableEntry, Trailer, Volume,
    decode_table, segment_file_name, step, table_bytes,
};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use weir_policy::Digest;

/// How much is read at once when a segment is looked through.
const WINDOW_BYTES: usize = 1024 * 1024;

/// Key of records that only say which purges there were.
const MARK: Digest = Digest(0, 0);

/// A record or an extent, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Its key.
    pub key: Digest,
    /// A record's generation; the number of an extent's body.
    pub generation: u64,
    /// Number of the segment.
    pub segment: u64,
    /// Offset in the segment.
    pub at: u32,
    /// Bytes it takes there.
    pub bytes: u32,
    /// The kind of record; `None` for an extent outside of a record.
    pub kind: Option<Kind>,
}

impl StoredItem {
    /// Its key as people write it: 32 hexadecimal digits.
    #[must_use]
    pub fn key_text(&self) -> String {
        key_text(self.key)
    }

    /// Whether it is a stored response: no extent, and no mark.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.kind.is_some() && self.key != MARK
    }
}

pub(crate) fn key_text(key: Digest) -> String {
    format!("{:016x}{:016x}", key.0, key.1)
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// With a table.
    Sealed,
    /// Its writer was stopped, or has not come to its end.
    Open,
}

/// The directory that segments are read from, and the volume that it is: their checksums are made
/// with that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSource<'a> {
    pub(crate) path: &'a Path,
    pub(crate) volume: Volume,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) seal: Seal,
    pub(crate) header: SegmentHeader,
    /// Bytes of the file.
    pub(crate) len: u64,
    file: File,
}

/// What lies in a segment.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) state: State,
    pub(crate) found: Vec<StoredItem>,
    /// Newest purge that the segment knows of.
    pub(crate) purged: u64,
    pub(crate) problems: Vec<Problem>,
}

impl Segment {
    pub(crate) fn open(source: SegmentSource<'_>, number: u64) -> Result<Self, OfflineError> {
        let path = source.path.join(segment_file_name(number));
        let wrong = |error| OfflineError::io(&path, error);
        let file = open_regular(OpenOptions::new().read(true), &path).map_err(wrong)?;
        let len = file.metadata().map_err(wrong)?.len();
        let page = read(&file, 0, PAGE_BYTES).map_err(wrong)?;
        let header = SegmentHeader::decode(&page, source.volume, number)
            .map_err(|error| OfflineError::format(&path, error))?;
        Ok(Self {
            seal: source.volume.segment(number),
            len: len.min(u64::from(SEGMENT_BYTES_MAX)),
            path,
            header,
            file,
        })
    }

    pub(crate) fn name(&self) -> String {
        segment_file_name(self.seal.number())
    }

    /// At most `len` bytes from `at` on: fewer at the end of the file.
    pub(crate) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, OfflineError> {
        read(&self.file, at, len).map_err(|error| OfflineError::io(&self.path, error))
    }

    /// By the table; by looking through the segment if there is none, or it is damaged.
    pub(crate) fn contents(&self) -> Result<Contents, OfflineError> {
        match self.by_table()? {
            Ok((trailer, entries)) => Ok(Contents {
                state: State::Sealed,
                found: entries.iter().map(|entry| self.entry(entry)).collect(),
                purged: trailer.purged.max(self.header.purged),
                problems: Vec::new(),
            }),
            // no trailer: the usual end of a segment whose writer was stopped
            Err(error) if error.item == Item::Trailer && error.kind == FormatErrorKind::Absent => {
                self.by_steps()
            }
            Err(error) => {
                let mut contents = self.by_steps()?;
                contents.problems.push(Problem::of(&self.name(), &error));
                Ok(contents)
            }
        }
    }

    fn by_table(&self) -> Result<Result<(Trailer, Vec<TableEntry>), FormatError>, OfflineError> {
        let at = self.len.saturating_sub(TRAILER_BYTES as u64);
        let trailer = match Trailer::decode(&self.read(at, TRAILER_BYTES)?, self.seal, at) {
            Ok(trailer) => trailer,
            Err(error) => return Ok(Err(error)),
        };
        let bytes = self.read(u64::from(trailer.table_at), trailer.table_bytes as usize)?;
        let entries = decode_table(&bytes, self.seal, u64::from(trailer.table_at));
        Ok(entries.map(|entries| (trailer, entries)))
    }

    fn entry(&self, entry: &TableEntry) -> StoredItem {
        StoredItem {
            key: entry.key,
            generation: entry.generation,
            segment: self.seal.number(),
            at: entry.at,
            bytes: entry.bytes,
            kind: entry.kind,
        }
    }

    /// By looking through the segment.
    pub(crate) fn by_steps(&self) -> Result<Contents, OfflineError> {
        let mut contents = Contents {
            state: State::Open,
            found: Vec::new(),
            purged: self.header.purged,
            problems: Vec::new(),
        };
        let mut window = Window {
            segment: self,
            at: 0,
            bytes: Vec::new(),
        };
        let mut at = PAGE_BYTES as u64;
        let mut is_gap_told = false;
        while at < self.len {
            let bytes = window.from(at)?;
            if let Ok(bytes) = self.table_at(bytes, at) {
                at += bytes;
                continue;
            }
            match step(bytes, self.seal, at) {
                Ok(item) => {
                    if let Step::Record(record) = item {
                        contents.purged = contents.purged.max(record.purged);
                    }
                    contents.found.push(self.entry(&item.entry(at)));
                    is_gap_told = false;
                    at += item.bytes();
                }
                Err(error) => {
                    let is_free = bytes.iter().take(ALIGN_BYTES).all(|byte| *byte == 0);
                    if !is_gap_told && !is_free {
                        is_gap_told = true;
                        contents.problems.push(Problem::of(&self.name(), &error));
                    }
                    at += ALIGN_BYTES as u64;
                }
            }
        }
        Ok(contents)
    }

    /// Bytes of the table or trailer that begins here: they are no gap.
    fn table_at(&self, bytes: &[u8], at: u64) -> Result<u64, FormatError> {
        if Trailer::decode(bytes, self.seal, at).is_ok() {
            return Ok(TRAILER_BYTES as u64);
        }
        decode_table(bytes, self.seal, at).map(|entries| table_bytes(entries.len()) as u64)
    }
}

/// A stretch of a segment that moves along.
struct Window<'a> {
    segment: &'a Segment,
    at: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// What begins at `at`: at least a header, unless the file ends.
    fn from(&mut self, at: u64) -> Result<&[u8], OfflineError> {
        let end = self.at + self.bytes.len() as u64;
        let is_enough = at + EXTENT_HEADER_BYTES_MAX as u64 <= end || end == self.segment.len;
        if at < self.at || at >= end || !is_enough {
            self.bytes = self.segment.read(at, WINDOW_BYTES)?;
            self.at = at;
        }
        let skip = usize::try_from(at - self.at).unwrap_or(usize::MAX);
        Ok(self.bytes.get(skip..).unwrap_or_default())
    }
}

fn read(file: &File, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
