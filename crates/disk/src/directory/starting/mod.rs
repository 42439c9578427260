//! Opening a directory, and filling its index.

pub(crate) mod loader;
pub(crate) mod open;
pub(crate) mod scan;
