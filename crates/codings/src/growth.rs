//! How much content may grow when it is decoded or changed.

/// Bytes that a decoder or a module may put out whatever it was given.
pub const GROWTH_FREE_BYTES: u64 = 1024 * 1024;

/// Beyond that it may put out so many bytes for each byte that it was given.
pub const GROWTH_MAX: u64 = 100;
