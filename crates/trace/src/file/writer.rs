//! Writes a trace.

use super::meta::Meta;
use super::schema;
use super::seal::{self, Checksums};
use crate::error::{TraceError, Wrong};
use crate::row::{Batch, Column, Row};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use std::borrow::Borrow;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use weir_workload::output::OutputFile;

/// Rows of a row group: what a reader needs to take in at once, and what a writer holds until it is
/// full. About 40 MB of rows while they are collected; `DuckDB` and pyarrow make groups of
/// twice and sixteen times that.
pub const GROUP_ROWS: usize = 64 * 1024;

/// Takes rows and writes them, a row group at a time. Dropped before [`Writer::finish`], nothing is
/// left of it.
#[derive(Debug)]
pub struct Writer {
    file: SerializedFileWriter<Box<dyn Write + Send>>,
    /// The rows of the group that is being collected.
    batch: Batch,
    group_rows: usize,
    meta: Meta,
    checksums: Checksums,
    rows: u64,
    output: Option<OutputFile>,
    /// What cannot be done, if it cannot.
    what: String,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSummary {
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Writer {
    /// Writes to `path` by the rules of [`weir_workload::output`]: a regular file is replaced when
    /// the trace is finished.
    ///
    /// # Errors
    /// The file cannot be created, or another process writes it.
    pub fn create(path: &Path, meta: Meta) -> Result<Self, TraceError> {
        let what = format!("cannot write trace `{}`", path.display());
        let opened = || {
            let output = OutputFile::create(path)?;
            output.file().map(|file| (output, file))
        };
        let (output, file) =
            opened().map_err(|error| Wrong::output(path, &error).at(what.clone()))?;
        Self::begin(Box::new(file), meta, Some(output), what)
    }

    /// Writes to whatever takes bytes.
    ///
    /// # Errors
    /// It does not take them.
    pub fn new(sink: impl Write + Send + 'static, meta: Meta) -> Result<Self, TraceError> {
        Self::begin(Box::new(sink), meta, None, "cannot write trace".into())
    }

    fn begin(
        sink: Box<dyn Write + Send>,
        meta: Meta,
        output: Option<OutputFile>,
        what: String,
    ) -> Result<Self, TraceError> {
        let properties = Arc::new(schema::properties());
        let file = schema::schema()
            .and_then(|schema| SerializedFileWriter::new(sink, schema, properties))
            .map_err(|error| Wrong::outside(error).at(what.clone()))?;
        Ok(Self {
            file,
            batch: Batch::default(),
            group_rows: GROUP_ROWS,
            meta,
            checksums: Checksums::default(),
            rows: 0,
            output,
            what,
        })
    }

    /// Makes row groups of so many rows, at least one, instead of [`GROUP_ROWS`]: fewer take less
    /// memory, here and where it is read.
    #[must_use]
    pub fn with_group_rows(mut self, group_rows: usize) -> Self {
        self.group_rows = group_rows.max(1);
        self
    }

    /// What the trace says about itself; written at the end, so that what was dropped can be
    /// counted on the way.
    pub const fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// How many rows it was given.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes the groups have that were written: rows are added to them a group at a time.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A full group cannot be written.
    pub fn push(&mut self, row: impl Borrow<Row>) -> Result<(), TraceError> {
        self.batch.push(row.borrow());
        self.rows += 1;
        if self.batch.rows() >= self.group_rows {
            return self.flush();
        }
        Ok(())
    }

    /// Writes what was collected as a row group, full or not.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        if self.batch.rows() == 0 {
            return Ok(());
        }
        let done = self.write_group();
        self.batch.clear();
        done.map_err(|error| Wrong::outside(error).at(self.what.clone()))
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let schema = self.file.schema_descr().columns().to_vec();
        let properties = Arc::clone(self.file.properties());
        let mut group = self.file.next_row_group()?;
        for (&column, description) in Column::ALL.iter().zip(schema) {
            let (bytes, close) = self
                .batch
                .encode(column, description, Arc::clone(&properties))?;
            self.checksums.push(seal::checksum(&bytes));
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the rest and gives the file its name.
    ///
    /// # Errors
    /// It cannot be written, or not be renamed; then nothing is left of it.
    pub fn finish(mut self) -> Result<WriteSummary, TraceError> {
        self.flush()?;
        let closed = self.close();
        let bytes = closed.map_err(|error| Wrong::outside(error).at(self.what.clone()))?;
        if let Some(output) = self.output.take() {
            output
                .commit()
                .map_err(|error| Wrong::outside(error).at(self.what.clone()))?;
        }
        Ok(WriteSummary {
            rows: self.rows,
            bytes,
        })
    }

    fn close(&mut self) -> Result<u64, ParquetError> {
        let pairs = self.meta.pairs();
        let seal = seal::pairs(&self.checksums, self.file.flushed_row_groups(), &pairs);
        for (key, value) in pairs.into_iter().chain(seal) {
            self.file
                .append_key_value_metadata(KeyValue::new(key, value));
        }
        self.file.finish()?;
        self.file.flush()?;
        Ok(self.file.bytes_written() as u64)
    }
}
