//! Hits only: which requests would be hits, of a cache of so many bytes, and nothing about time.
//!
//! The catalog is the proxy's, with its eviction algorithms and rules of admission. Its budget is
//! for content alone, so that figures can be compared with the literature and with other
//! simulators: least recently used and first in first out are exact, and what is larger than the
//! whole cache is never admitted.
//!
//! Absent on purpose: whether a response may be stored, and how long it is fresh. Everything is
//! storable and stays fresh here; the simulation with packets and connections asks those questions.

mod admission;
mod crowd;
mod oracle_general;
mod parquet_trace;
mod record;
mod simulation;
mod source;
mod unit_sizes;
mod zipf;

pub use admission::{admission_from_word, admission_word};
pub(crate) use crowd::{Listener, broadcast, walk};
pub use crowd::{Summary, simulate, survey};
pub use oracle_general::OracleGeneral;
pub use parquet_trace::ParquetTrace;
pub use record::{CacheRecord, HitsRecord};
pub(crate) use simulation::digest;
pub use simulation::{Setting, Simulation, Totals};
pub use source::{AccessIterator, Accesses, BATCH, Trace, TraceError};
pub use unit_sizes::UnitSizes;
pub use zipf::ZipfTrace;
