//! Synthetic traces, seeded, and calibrated to what is published of real ones that no longer exist
//! any more.
//!
//! A [`Profile`] is a file of constants with their sources. A [`Maker`] is the trace as an iterator
//! of rows in order of arrival. A [`Measurement`] counts the rows again, by definitions that know
//! nothing of the maker, and sets each number beside the published one.

mod measurement;
mod proxy_log;

pub use measurement::Measurement;
pub use measurement::figure::{Figure, Published, Quantity, Unit};
pub use proxy_log::{Maker, Profile};
