//! Content that modules change, decide by, decode and collect.

mod answers;
mod codings;
mod deciding;
mod memory;
pub(crate) mod random;
mod requests;
mod responses;
mod shared;
mod whole;
