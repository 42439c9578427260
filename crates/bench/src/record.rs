//! From what was gathered to a record, and from a record to files and a table.
//!
//! The schema is [`weir_measure::record`]. Here the counts of clients and origin are
//! compared, and it is decided whether the run is valid.

mod audit;
mod file;
pub(crate) mod host;
mod phases;
pub(crate) mod samples;
mod table;
mod tool;
pub(crate) mod verdict;
mod write_up;

pub use file::write;
pub use host::look as look_at_host;
pub use samples::{SCHEMA as SAMPLES_SCHEMA, write as write_samples};
pub use table::text;
pub use write_up::{stamp, write_up};
