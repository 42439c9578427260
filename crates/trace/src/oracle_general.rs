//! libCacheSim's `oracleGeneral`: records of 24 bytes, little-endian: time (u32, seconds), id
//! (u64), size (u32, bytes), number of the next record with the same id (i64; none: -1 or the
//! largest number).
//!
//! Times are those of the trace, often counted from its beginning and not from 1970. The file
//! counts its records from 1.

use std::io::{self, ErrorKind, Read};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;

/// Records of a block: one read of about 200 KB.
const BLOCK_RECORDS: usize = 8192;

/// A record in its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in seconds.
    pub time_s: u32,
    /// What was requested.
    pub id: u64,
    /// Its size in bytes.
    pub size: u32,
    /// The number of the next record with this id, as the file has it.
    pub next: i64,
}

impl Record {
    /// Reads the fields of a record.
    #[must_use]
    pub fn from_bytes(record: &[u8; RECORD_BYTES]) -> Self {
        let (mut time_s, mut id, mut size, mut next) = ([0; 4], [0; 8], [0; 4], [0; 8]);
        time_s.copy_from_slice(&record[..4]);
        id.copy_from_slice(&record[4..12]);
        size.copy_from_slice(&record[12..16]);
        next.copy_from_slice(&record[16..]);
        Self {
            time_s: u32::from_le_bytes(time_s),
            id: u64::from_le_bytes(id),
            size: u32::from_le_bytes(size),
            next: i64::from_le_bytes(next),
        }
    }

    /// The record as it stands in a file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        record[..4].copy_from_slice(&self.time_s.to_le_bytes());
        record[4..12].copy_from_slice(&self.id.to_le_bytes());
        record[12..16].copy_from_slice(&self.size.to_le_bytes());
        record[16..].copy_from_slice(&self.next.to_le_bytes());
        record
    }

    /// The place of the next record with this id, from 0; -1 if there is none.
    #[must_use]
    pub const fn next_place(&self) -> i64 {
        match self.next {
            1.. if self.next != i64::MAX => self.next - 1,
            _ => -1,
        }
    }
}

/// The records of a source, read a block at a time.
#[derive(Debug)]
pub struct Records<R> {
    source: R,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were handed out, and bytes that it holds.
    taken: usize,
    held: usize,
    /// Records handed out.
    count: u64,
    /// Reported once the whole records before it were handed out.
    failure: Option<ReadError>,
}

/// Why a source cannot be read on.
#[derive(Debug)]
pub enum ReadError {
    /// The source failed.
    Source(io::Error),
    /// The source ends inside a record.
    CutOff {
        /// The number of that record, from 1.
        record: u64,
        /// Bytes of it.
        bytes: usize,
    },
}

impl<R: Read> Records<R> {
    /// The records of `source`.
    #[must_use]
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; BLOCK_RECORDS * RECORD_BYTES],
            taken: 0,
            held: 0,
            count: 0,
            failure: None,
        }
    }

    /// How many records were read.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The source fails, or ends inside a record.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        self.fill()?;
        let record = self.buffer[self.taken..self.held].first_chunk();
        let record = record.map(Record::from_bytes);
        if record.is_some() {
            self.taken += RECORD_BYTES;
            self.count += 1;
        }
        Ok(record)
    }

    /// The next records, up to 8192; none at the end.
    ///
    /// # Errors
    /// The source fails, or ends inside a record.
    pub fn next_block(&mut self) -> Result<impl Iterator<Item = Record>, ReadError> {
        self.fill()?;
        let (records, _) = self.buffer[self.taken..self.held].as_chunks();
        self.taken = self.held;
        self.count += records.len() as u64;
        Ok(records.iter().map(Record::from_bytes))
    }

    /// Reads a block if all records were handed out. Afterwards `held` is a whole number of
    /// records; bytes behind them have become a failure.
    fn fill(&mut self) -> Result<(), ReadError> {
        if self.taken < self.held {
            return Ok(());
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        (self.taken, self.held) = (0, 0);
        // a pipe gives what it has
        while self.held < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.held..]) {
                Ok(0) => break,
                Ok(count) => self.held += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(ReadError::Source(error));
                    break;
                }
            }
        }
        let bytes = self.held % RECORD_BYTES;
        self.held -= bytes;
        if bytes > 0 && self.failure.is_none() {
            let record = self.count + (self.held / RECORD_BYTES) as u64 + 1;
            self.failure = Some(ReadError::CutOff { record, bytes });
        }
        match self.failure.take() {
            Some(failure) if self.held == 0 => Err(failure),
            failure => {
                self.failure = failure;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64) -> Record {
        Record {
            time_s: 7,
            id,
            size: 512,
            next: -1,
        }
    }

    fn file(records: u64) -> Vec<u8> {
        (0..records).flat_map(|id| record(id).to_bytes()).collect()
    }

    #[test]
    fn records_one_by_one_and_in_blocks_are_the_same() {
        let count = BLOCK_RECORDS as u64 + 3;
        let bytes = file(count);
        let mut one_by_one = Records::new(&bytes[..]);
        let mut blocks = Records::new(&bytes[..]);
        let mut read = Vec::new();
        while let block = blocks.next_block().unwrap().collect::<Vec<_>>()
            && !block.is_empty()
        {
            read.extend(block);
        }
        assert_eq!(read, (0..count).map(record).collect::<Vec<_>>());
        for expected in read {
            assert_eq!(one_by_one.next_record().unwrap(), Some(expected));
        }
        assert_eq!(one_by_one.next_record().unwrap(), None);
        assert_eq!((one_by_one.count(), blocks.count()), (count, count));
    }

    #[test]
    fn whole_records_are_read_before_a_truncated_one_is_reported() {
        let bytes = &file(3)[..RECORD_BYTES * 2 + 5];
        let mut records = Records::new(bytes);
        assert_eq!(records.next_block().unwrap().count(), 2);
        let error = records.next_block().map(Iterator::count).unwrap_err();
        assert!(
            matches!(
                error,
                ReadError::CutOff {
                    record: 3,
                    bytes: 5
                }
            ),
            "{error:?}"
        );
        assert_eq!(records.count(), 2);
    }

    #[test]
    fn next_place_counts_from_0_and_is_minus_1_without_a_next_record() {
        for (next, place) in [(1, 0), (7, 6), (0, -1), (-1, -1), (i64::MAX, -1)] {
            assert_eq!(Record { next, ..record(1) }.next_place(), place);
        }
    }
}
