//! A trace's file: Parquet, its schema, and the checksums that find damage.

pub(crate) mod cell;
pub(crate) mod meta;
pub(crate) mod reader;
mod schema;
mod seal;
mod source;
pub(crate) mod writer;
