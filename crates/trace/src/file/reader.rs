//! Reads a trace.

use super::cell::Source;
use super::meta::Meta;
use super::schema::{self, Places};
use super::seal::{self, Checksums};
use super::source::Chunk;
use crate::error::{TraceError, Wrong};
use crate::row::column::Columns;
use crate::row::{Batch, Column, Row};
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Rows of a [`Batch`]: a column of them stays in the CPU's cache.
pub const BATCH_ROWS: usize = 8192;

/// A trace that was opened. It is cheap to clone, and any number of threads may read the same one.
#[derive(Clone, Debug)]
pub struct Reader(Arc<TraceFile>);

#[derive(Debug)]
struct TraceFile {
    file: File,
    file_bytes: u64,
    footer: ParquetMetaData,
    checksums: Checksums,
    places: Places,
    meta: Meta,
    rows: u64,
    /// What cannot be done, if it cannot.
    what: String,
}

impl Reader {
    /// Opens a trace and checks what its footer says.
    ///
    /// # Errors
    /// The file cannot be read, is no trace, is a newer one, or is damaged.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let what = format!("cannot read trace `{}`", path.display());
        let file = File::open(path).map_err(|error| Wrong::outside(error).at(what.clone()))?;
        Self::from_file(file, what)
    }

    /// Reads from a file that is open. `what` is what an error says first: `cannot read trace ...`.
    ///
    /// # Errors
    /// As for [`Reader::open`].
    pub fn from_file(file: File, what: String) -> Result<Self, TraceError> {
        match TraceFile::new(file, &what) {
            Ok(opened) => Ok(Self(Arc::new(opened))),
            Err(wrong) => Err(wrong.at(what)),
        }
    }

    /// What the trace says about itself.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// How many rows there are.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.0.rows
    }

    /// How many bytes the file has.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.0.file_bytes
    }

    /// Whether the file has this column at all; all its values may still be null.
    #[must_use]
    pub fn has(&self, column: Column) -> bool {
        self.0.places[column as usize].is_some()
    }

    /// The rows, in order. What is not in `columns` is `None`, and 0 where a row always has a
    /// value.
    #[must_use]
    pub fn rows(&self, columns: Columns) -> Rows {
        Rows {
            batches: self.batches(columns),
            next: 0,
        }
    }

    /// The rows, some at a time, column by column: the fast way.
    #[must_use]
    pub fn batches(&self, columns: Columns) -> Batches {
        let asked = Column::ALL.iter().copied();
        let there = asked.filter(|column| columns.has(*column) && self.has(*column));
        Batches {
            trace: Arc::clone(&self.0),
            columns: there.collect(),
            batch: Batch::default(),
            group: 0,
            sources: Vec::new(),
            left: 0,
            row: 0,
            is_broken: false,
        }
    }
}

impl TraceFile {
    fn new(file: File, what: &str) -> Result<Self, Wrong> {
        let file_bytes = file.metadata().map_err(Wrong::outside)?.len();
        let footer = guarded(|| {
            let footer = ParquetMetaDataReader::new().parse_and_finish(&file);
            footer.map_err(|error| {
                Wrong::usage(
                    format!("it is no Parquet file, or only half of one: {error}"),
                    "`weir trace import` makes a trace of a log or a capture",
                )
            })
        })?;
        let about = footer.file_metadata();
        let none = Vec::new();
        let meta = Meta::read(about.key_value_metadata().unwrap_or(&none))?;
        let checksums = seal::check(&footer)?;
        let places = schema::places(about.schema_descr())?;
        let mut rows = 0_u64;
        for group in footer.row_groups() {
            let count = u64::try_from(group.num_rows());
            rows = count
                .ok()
                .and_then(|count| rows.checked_add(count))
                .ok_or_else(|| {
                    Wrong::damaged(format!("a row group has {} rows", group.num_rows()))
                })?;
        }
        Ok(Self {
            file,
            file_bytes,
            checksums,
            places,
            meta,
            rows,
            what: what.to_owned(),
            footer,
        })
    }

    /// The column of a row group, to be read from its beginning; `row` is the group's first row in
    /// the file.
    fn source(&self, group: usize, column: Column, row: u64) -> Result<Source, Wrong> {
        let name = column.name();
        let missing = || Wrong::damaged(format!("column `{name}` is missing in row group {group}"));
        let place = self.places[column as usize].ok_or_else(missing)?;
        let about = self.footer.row_group(group);
        let chunk = about.columns().get(place).ok_or_else(missing)?;
        let bytes = Chunk::read(&self.file, self.file_bytes, chunk)?;
        let sum = self.checksums.get(group, about.num_columns(), place);
        if sum.is_some_and(|sum| sum != seal::checksum(bytes.bytes())) {
            let rows = format!("rows {row} to {}", row + about.num_rows().cast_unsigned());
            return Err(Wrong::damaged(format!(
                "column `{name}`, {rows}, is not what was written"
            )));
        }
        let description = chunk.column_descr_ptr();
        let is_optional = description.max_def_level() > 0;
        let rows = usize::try_from(about.num_rows()).map_err(Wrong::damaged)?;
        let pages = SerializedPageReader::new(Arc::new(bytes), chunk, rows, None)
            .map_err(|error| unreadable(name, &error))?;
        let reader = get_column_reader(description, Box::new(pages));
        Ok(Source::new(reader, is_optional, name, row))
    }
}

fn unreadable(name: &str, error: &ParquetError) -> Wrong {
    let cause = format!("column `{name}`: {error}");
    match error {
        ParquetError::NYI(_) => Wrong::usage(cause, "write it with Snappy, or uncompressed"),
        ParquetError::General(text) if text.contains("feature") => {
            Wrong::usage(cause, "write it with Snappy, or uncompressed")
        }
        _ => Wrong::damaged(cause),
    }
}

/// The decoder is not ours, and some of what other programs write, or what time does to it, makes
/// it panic: that is a damaged file then, and nothing of the decoder is used afterwards.
fn guarded<T>(decode: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(Wrong::damaged("the Parquet decoder gave up")))
}

/// The rows of a trace, up to [`BATCH_ROWS`] at a time. One row group is open at a time: its chosen
/// columns are in memory as they are in the file, compressed, and one page of each is decoded.
pub struct Batches {
    trace: Arc<TraceFile>,
    /// What is read, in the order of the file.
    columns: Vec<Column>,
    batch: Batch,
    /// The next row group.
    group: usize,
    /// One for each of `columns`, in the row group that is open.
    sources: Vec<Source>,
    /// Rows of that group that were not read yet.
    left: usize,
    /// Rows that were read.
    row: u64,
    /// An error was found: nothing more comes.
    is_broken: bool,
}

impl Batches {
    /// The next rows, at least one; `None` at the end, and after an error.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend what it has"
    )]
    pub fn next(&mut self) -> Result<Option<&Batch>, TraceError> {
        match self.advance() {
            Ok(true) => Ok(Some(&self.batch)),
            Ok(false) => Ok(None),
            Err(wrong) => Err(wrong.at(self.trace.what.clone())),
        }
    }

    fn advance(&mut self) -> Result<bool, Wrong> {
        self.batch.clear();
        if self.is_broken {
            return Ok(false);
        }
        self.is_broken = true;
        while self.left == 0 {
            if self.group >= self.trace.footer.num_row_groups() {
                return Ok(false);
            }
            self.open_group()?;
        }
        let rows = self.left.min(BATCH_ROWS);
        let (batch, sources) = (&mut self.batch, &mut self.sources);
        guarded(|| {
            let mut pairs = self.columns.iter().zip(sources);
            pairs.try_for_each(|(column, source)| batch.decode(*column, source, rows))
        })?;
        self.batch.rows = rows;
        self.left -= rows;
        self.row += rows as u64;
        self.is_broken = false;
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), Wrong> {
        // the memory of the one before first
        self.sources.clear();
        let (trace, group, row) = (&self.trace, self.group, self.row);
        let open = |column: &Column| guarded(|| trace.source(group, *column, row));
        self.sources = self.columns.iter().map(open).collect::<Result<_, _>>()?;
        let rows = self.trace.footer.row_group(self.group).num_rows();
        self.left = usize::try_from(rows).map_err(Wrong::damaged)?;
        self.group += 1;
        Ok(())
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trace, row, .. } = self;
        let mut about = f.debug_struct("Batches");
        about
            .field("trace", trace)
            .field("row", row)
            .finish_non_exhaustive()
    }
}

/// The rows of a trace, one by one. After an error nothing more comes.
#[derive(Debug)]
pub struct Rows {
    batches: Batches,
    /// The next row of the batch.
    next: usize,
}

impl Iterator for Rows {
    type Item = Result<Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.batches.batch.rows() {
            self.next = 0;
            match self.batches.next() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        self.next += 1;
        Some(Ok(self.batches.batch.take(self.next - 1)))
    }
}
