//! The figures of a section: against the number of clients, by percentile and second by second.

pub(super) mod curve;
pub(super) mod load;
pub(super) mod sweep;
pub(super) mod timeline;
