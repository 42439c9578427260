//! Content that modules change, decide by, decode and collect.

mod answers;
mod codings;
mod deciding;
pub(crate) mod random;
mod requests;
mod responses;
mod whole;
