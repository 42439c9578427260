//! Reads a store that no process uses, or a copy of one. Never writes.
//!
//! It is written after `docs/store-format.md` alone, shares nothing with the store that serves but
//! `format`, and trusts nothing: so it is also the second opinion on what that one wrote.

pub(crate) mod check;
pub(crate) mod content;
pub(crate) mod directory;
mod error;
mod purges;
pub(crate) mod segment;
mod survey;
#[cfg(test)]
mod tests;

pub use check::VerifyReport;
pub use content::IntactRecord;
pub use directory::Directory;
pub use error::{OfflineError, Problem};
pub use purges::Purges;
pub use segment::{State, StoredItem};
pub use survey::{RecordState, SegmentSummary, Survey};
