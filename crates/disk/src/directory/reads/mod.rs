//! Reading records: from the page cache, by threads and by the ring, and verifying them.

pub(crate) mod buffer;
pub(crate) mod check;
pub(crate) mod pool;
pub(crate) mod reader;
pub(crate) mod reading;
