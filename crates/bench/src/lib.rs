//! Load and origin: measures any caching proxy, and knows it by its address only.

#![forbid(unsafe_code)]

pub mod check;
pub mod client;
pub mod conduct;
pub mod descriptors;
pub mod failure;
mod link;
pub mod mark;
pub mod origin;
pub mod progress;
pub mod record;
pub mod report;
pub mod tally;
pub mod usage;
