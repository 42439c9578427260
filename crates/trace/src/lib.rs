//! Traces of requests, one row a transaction, in Parquet files. The live proxy, importers and the
//! generator make [`Row`]s and hand them to a [`Writer`]. Statistics and the simulator get them
//! from a [`Reader`]. A field that the source does not say is `None`, and nothing here guesses it.
//! `docs/trace.md` lists the columns.
//!
//! The file is Parquet, so that DuckDB, pandas and Polars read it as it is; through the crate's own
//! column interface and not through Arrow, which would be as large as everything else here
//! together.

mod anonymiser;
mod arrival_order;
pub mod compare;
#[cfg(test)]
mod document;
mod error;
mod file;
pub mod generator;
pub mod grouping;
pub mod heavy_hitters;
pub mod import;
pub mod oracle_general;
mod row;
pub mod stats;
#[cfg(test)]
mod tests;

pub use anonymiser::{Anonymiser, KEY_BYTES};
pub use arrival_order::{ArrivalOrder, HELD_ROWS_MAX};
pub use error::{Fault, TraceError};
pub use file::meta::{Anonymisation, Meta, VERSION};
pub use file::reader::{BATCH_ROWS, Batches, Reader, Rows};
pub use file::writer::{GROUP_ROWS, WriteSummary, Writer};
pub use row::column::{ColumnInfo, ColumnType, Columns};
pub use row::directives::{RequestBit, ResponseBit};
pub use row::words::{AbortedBy, TraceMethod, TraceScheme, TraceVersion};
pub use row::{Batch, Column, Row};
