//! `weir trace` as it is used.

mod import;
mod make;
#[path = "../snapshot/mod.rs"]
mod snapshot;
mod stats;
