//! The bytes of a trace's file, a column chunk at a time.

use crate::error::Wrong;
use bytes::{Buf as _, Bytes, buf::Reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A column chunk in memory, which answers for its place in the file.
pub(super) struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
    /// Reads a chunk whole. Others may read the same file meanwhile.
    pub(super) fn read(
        file: &File,
        file_bytes: u64,
        chunk: &ColumnChunkMetaData,
    ) -> Result<Self, Wrong> {
        let first = chunk.data_page_offset();
        // zero stands for none in files of some writers
        let dictionary = chunk.dictionary_page_offset().filter(|at| *at > 0);
        let start = u64::try_from(dictionary.map_or(first, |at| at.min(first)));
        let length = u64::try_from(chunk.compressed_size());
        let (Ok(start), Ok(length)) = (start, length) else {
            return Err(Wrong::damaged("a column begins or ends before the file"));
        };
        if start.checked_add(length).is_none_or(|end| end > file_bytes) {
            let place = format!("a column is at {start} with {length} bytes");
            return Err(Wrong::damaged(format!(
                "{place}, the file has {file_bytes}"
            )));
        }
        let length = usize::try_from(length).map_err(Wrong::damaged)?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, start)
            .map_err(Wrong::outside)?;
        Ok(Self {
            start,
            bytes: Bytes::from(bytes),
        })
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let offset = start.checked_sub(self.start);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.filter(|offset| *offset <= self.bytes.len());
        let outside = || ParquetError::EOF(format!("byte {start} is outside of the column"));
        offset
            .map(|offset| self.bytes.slice(offset..))
            .ok_or_else(outside)
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.from(start).map(bytes::Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if bytes.remaining() < length {
            let end = start + length as u64;
            return Err(ParquetError::EOF(format!(
                "the column ends before byte {end}"
            )));
        }
        Ok(bytes.slice(..length))
    }
}
