//! `weir trace` as it is used.

mod import;
mod stats;
